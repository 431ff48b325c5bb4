"""Readers of benchmark results, on small files in the shape each tool writes.

The samples are made by hand after the tools' own writers: vLLM benchmarks/serve.py, SGLang
bench_serving.py, GuideLLM 0.4 reports, AIPerf 0.11 and GenAI-Perf exports, llama-bench and
llama-batched-bench of llama.cpp b9187.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from planner.benchmarks import (
    Context,
    Measurements,
    MissingContext,
    UnknownResults,
    read_measurements,
    read_text,
)
from planner.benchmarks.llama_tools import weight_format
from planner.runs.predict import predict
from planner.runs.rows import Row

SAMPLES = Path(__file__).with_name("samples")
H100 = Context(gpu="h100-sxm5", tp=1)


def read(name: str, context: Context = H100) -> Measurements:
    return read_measurements(SAMPLES / name, context)


def points(rows: tuple[Row, ...]) -> list[tuple[str, ...]]:
    names = ("isl", "osl", "concurrency") if rows[0].kind == "serving" else ("batch", "context")
    return [tuple(row.inputs[name] for name in names) for row in rows]


def test_vllm() -> None:
    found = read("vllm_bench_serve.json", Context(gpu="h100-sxm5", tp=1, engine_version="0.19.0"))
    assert found.format == "vLLM bench serve"
    (row,) = found.rows
    assert points(found.rows) == [("1024", "512", "32")]  # 327,680 and 163,840 tokens of 320
    assert row.measured == {"ttft_ms": 182.4, "tpot_ms": 11.86}
    assert row.inputs["model"] == "meta-llama/Llama-3.1-8B-Instruct"
    assert row.inputs["engine"] == "vllm"
    assert row.inputs["engine_version"] == "0.19.0"
    assert row.remarks["queued"] == "0"


def test_vllm_lines_and_open_loops() -> None:
    found = read("vllm_append.jsonl")
    # The third ran at 3.9 requests/s of 182.4 + 11.86·511 ms each: 24.3 at once; the fourth at none
    assert points(found.rows) == [
        ("1024", "512", "32"),
        ("1024", "512", "64"),
        ("1024", "512", "24"),
    ]
    assert len(found.notes) == 2
    assert any("no steady state" in note for note in found.notes)


def test_sglang_says_its_engine_and_split() -> None:
    found = read("sglang_bench_serving.jsonl", Context(gpu="h100-sxm5"))
    assert found.format == "SGLang bench_serving"
    assert points(found.rows) == [("1024", "256", c) for c in ("8", "16", "64")]
    first = found.rows[0].inputs
    assert (first["model"], first["engine"], first["engine_version"], first["tp"]) == (
        "Qwen/Qwen3-8B",
        "sglang",
        "0.5.9",
        "1",
    )


def test_guidellm_takes_closed_loops() -> None:
    found = read("guidellm.json", Context(gpu="h100-sxm5", tp=1, engine="vllm"))
    assert points(found.rows) == [("512", "256", c) for c in ("1", "16", "21")]
    assert [row.measured["tpot_ms"] for row in found.rows] == [6.9, 7.6, 7.9]
    assert any("benchmark 3 sent all requests at once" in note for note in found.notes)


@pytest.mark.parametrize("name", ["aiperf.json", "genai_perf.json"])
def test_aiperf(name: str) -> None:
    found = read(name, Context(gpu="h100-sxm5", tp=1, engine="vllm"))
    assert found.format == "AIPerf"
    assert points(found.rows) == [("1024", "256", "16")]
    assert found.rows[0].measured == {"ttft_ms": 96.4, "tpot_ms": 9.8}
    assert found.rows[0].inputs["model"] == "Qwen/Qwen3-8B"


@pytest.mark.parametrize("name", ["llama_bench.json", "llama_bench.jsonl", "llama_bench.csv"])
def test_llama_bench_names_its_gpu(name: str) -> None:
    found = read(name, Context(model="meta-llama/Llama-3.1-8B-Instruct"))
    assert found.format == "llama-bench"
    assert points(found.rows) == [("1", "64"), ("1", "8256")]
    first = found.rows[0]
    assert first.inputs["gpu"] == "rtx-4090"
    assert first.inputs["weight_format"] == "q4_k_m"
    assert first.inputs["kv_dtype"] == "f16"
    assert float(first.inputs["weight_gb"]) == pytest.approx(4.913, abs=1e-3)
    assert first.measured == {"value": 161.3}
    assert len(found.notes) == 1


def test_llama_batched_bench() -> None:
    context = Context(model="meta-llama/Llama-3.1-8B-Instruct", gpu="rtx-4090", weights="q4_k_m")
    found = read("llama_batched_bench.jsonl", context)
    assert points(found.rows) == [(batch, "576") for batch in ("1", "4", "16")]
    assert [row.measured["value"] for row in found.rows] == [157.0, 520.5, 1310.2]


def test_rows() -> None:
    found = read("rows.csv", Context())
    assert found.format == "rows"
    assert points(found.rows) == [("1024", "512", "16"), ("1024", "512", "64")]
    assert found.rows[0].inputs["gpus"] == "2"


def test_rows_in_an_unknown_weight_format_are_left_out_with_a_note() -> None:
    text = (SAMPLES / "rows.csv").read_text(encoding="utf-8")
    found = read_text(text.replace("bf16", "foo", 1))
    assert points(found.rows) == [("1024", "512", "64")]
    assert found.notes == ("row 1 is left out: weight_format: unknown format 'foo'",)
    with pytest.raises(UnknownResults, match="nothing to fit: row 1 is left out: weight_format"):
        read_text(text.replace("bf16", "foo"))


def test_an_unknown_block_format_is_known_by_the_size_of_its_file() -> None:
    text = (SAMPLES / "llama_bench.json").read_text(encoding="utf-8")
    test = next(one for one in json.loads(text) if one["n_gen"] and not one["n_prompt"])
    context = Context(model="Llama-3.1-8B-Instruct", gpu="rtx-4090")
    odd = {**test, "model_type": "llama 8B IQ2_M - 2.7 bpw"}
    assert len(read_text(json.dumps([odd]), context).rows) == 1
    with pytest.raises(UnknownResults, match="a run is left out: weight_format: unknown format"):
        read_text(json.dumps([{**odd, "model_size": 0}]), context)


@pytest.mark.parametrize("name", sorted(path.name for path in SAMPLES.iterdir()))
def test_every_sample_is_predicted(name: str) -> None:
    context = Context(
        model="meta-llama/Llama-3.1-8B-Instruct", gpu="h100-sxm5", tp=1, engine="vllm"
    )
    rows = read(name, context).rows
    for row, prediction in zip(rows, predict(rows), strict=True):
        assert set(prediction.values) >= set(row.measured), prediction.notes


def test_what_is_given_wins() -> None:
    found = read("sglang_bench_serving.jsonl", Context(gpu="b200", tp=2, attention_dp=2, ep=4))
    first = found.rows[0].inputs
    assert (first["tp"], first["attention_dp"], first["moe_ep"], first["gpus"]) == (
        "2",
        "2",
        "4",
        "4",
    )


@pytest.mark.parametrize(
    ("name", "context", "field"),
    [
        ("vllm_bench_serve.json", Context(tp=1), "gpu"),
        ("vllm_bench_serve.json", Context(gpu="h100-sxm5"), "tp"),
        ("guidellm.json", Context(gpu="h100-sxm5", tp=1), "engine"),
        ("llama_bench.json", Context(), "model"),
    ],
)
def test_missing_context_names_the_option(name: str, context: Context, field: str) -> None:
    with pytest.raises(MissingContext) as caught:
        read(name, context)
    assert str(caught.value) == f"{field}: {name} does not say it; give --{field}"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "   \n",
        "hello",
        "{}",
        "[]",
        "[1, 2]",
        "null",
        '{"model_id": "x"}',
        "a,b\n1,2\n",
        '{"pp": 1}\n{"tg": 2}\n',
    ],
)
def test_other_text_is_refused_in_one_line(text: str) -> None:
    with pytest.raises(UnknownResults) as caught:
        read_text(text, H100)
    message = str(caught.value)
    assert "\n" not in message
    assert "llama-batched-bench JSONL" in message


def test_a_file_that_is_not_text(tmp_path: Path) -> None:
    path = tmp_path / "results.bin"
    path.write_bytes(b"\xff\xfe\x00\x81\x9f")
    with pytest.raises(UnknownResults, match="not text"):
        read_measurements(path)


@pytest.mark.parametrize("key", ["completed", "total_input_tokens", "mean_ttft_ms", "mean_tpot_ms"])
@pytest.mark.parametrize("value", [None, 0, -1, "nan", float("inf"), True, [], "many"])
def test_a_figure_that_is_no_measurement_is_named(key: str, value: object) -> None:
    entry = json.loads((SAMPLES / "vllm_bench_serve.json").read_text(encoding="utf-8"))
    with pytest.raises(UnknownResults, match=f"results: {key} is "):
        read_text(json.dumps(entry | {key: value}), H100)


def test_nothing_but_prompts_is_nothing_to_fit() -> None:
    first = json.loads((SAMPLES / "llama_bench.json").read_text(encoding="utf-8"))[:1]
    with pytest.raises(UnknownResults, match="nothing to fit: tests of prompts"):
        read_text(json.dumps(first), Context(model="meta-llama/Llama-3.1-8B"))


def test_times_are_converted() -> None:
    document = json.loads((SAMPLES / "aiperf.json").read_text(encoding="utf-8"))
    document["inter_token_latency"] |= {"unit": "s", "avg": 0.0098}
    context = Context(gpu="h100-sxm5", tp=1, engine="vllm")
    assert read_text(json.dumps(document), context).rows[0].measured["tpot_ms"] == pytest.approx(
        9.8
    )
    document["inter_token_latency"]["unit"] = "fortnights"
    with pytest.raises(UnknownResults, match="accepted: ms, s"):
        read_text(json.dumps(document), context)


@pytest.mark.parametrize(
    ("printed", "name"),
    [
        ("llama 8B Q4_K - Medium", "q4_k_m"),
        ("llama 70B Q8_0", "q8_0"),
        ("qwen3moe 30B.A3B Q5_K - Small", "q5_k_s"),
        ("gemma3 27B IQ4_XS - 4.25 bpw", "iq4_xs"),
        ("gpt-oss 20B MXFP4 MoE", "mxfp4"),
        ("llama 8B F16", "fp16"),
        ("llama 8B BF16", "bf16"),
        ("something else", ""),
    ],
)
def test_weight_formats_of_llama_cpp(printed: str, name: str) -> None:
    assert weight_format(printed) == name
