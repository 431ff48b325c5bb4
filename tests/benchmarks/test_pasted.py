"""What people paste, and what a run can tell: text, Markdown, contradictions, tiny runs."""

from __future__ import annotations

import json

import pytest

from planner.benchmarks import Context, UnknownResults, read_text
from planner.benchmarks.pasted import pasted
from planner.calibration import shipped
from planner.calibration.own import applied
from planner.fitting.own import fitted
from planner.runs.predict import predict
from planner.runs.rows import Row

CONTEXT = Context(model="meta-llama/Llama-3.1-8B-Instruct", gpu="h100-sxm5", engine="vllm", tp=1)

PRINTED = """\
INFO: done
============ Serving Benchmark Result ============
Successful requests:                     64
Maximum request concurrency:             8
Total input tokens:                      65536
Total generated tokens:                  16384
Request throughput (req/s):              3.10
---------------Time to First Token----------------
Mean TTFT (ms):                          64.20
Median TTFT (ms):                        61.00
-----Time per Output Token (excl. 1st token)------
Mean TPOT (ms):                          8.90
==================================================
"""

TABLE = """\
| model         |      size |  params | backend | test         |           t/s |
| ------------- | --------: | ------: | ------- | -----------: | ------------: |
| llama 8B Q4_0 |  4.33 GiB |  8.03 B | CUDA    | pp512        | 9000.1 ± 20.0 |
| llama 8B Q4_0 |  4.33 GiB |  8.03 B | CUDA    | tg128 @ d512 |  150.25 ± 0.3 |
"""


def test_printed_results_are_those_of_the_json() -> None:
    (row,) = read_text(PRINTED, CONTEXT).rows
    # 65,536 and 16,384 tokens of 64 requests.
    assert (row.inputs["isl"], row.inputs["osl"], row.inputs["concurrency"]) == ("1024", "256", "8")
    assert row.measured == {"ttft_ms": 64.2, "tpot_ms": 8.9}
    assert row.remarks["requests"] == "64"


def test_markdown_of_llama_bench() -> None:
    found = read_text(TABLE, Context(model=CONTEXT.model, gpu="h100-sxm5"))
    (row,) = found.rows
    assert row.measured == {"value": 150.25}
    assert row.inputs["context"] == "576"  # 512 before, and half of 128
    assert row.inputs["weight_format"] == "q4_0"


def test_a_name_that_its_size_contradicts_is_not_believed() -> None:
    named = TABLE.replace("Q4_0", "F16")
    found = read_text(named, Context(model=CONTEXT.model, gpu="h100-sxm5"))
    # 4.33 GiB over 8.03e9 parameters are 4.63 bits.
    assert any("4.63 bits a parameter" in note for note in found.notes)
    assert found.rows[0].inputs["weight_format"] == ""


def test_drafts_are_named_and_medians_stand_for_means() -> None:
    line = {
        "completed": 10,
        "total_input_tokens": 1000,
        "total_output_tokens": 1010,
        "median_ttft_ms": 100.0,
        "mean_e2e_latency_ms": 1100.0,
        "max_concurrency": 4,
        "backend": "sglang",
    }
    found = read_text(json.dumps(line), CONTEXT)
    assert found.rows[0].measured == {"ttft_ms": 100.0, "tpot_ms": 10.0}  # 1000 ms, 100 tokens
    assert any("medians" in note for note in found.notes)
    with pytest.raises(UnknownResults, match=r"3.29 tokens a step"):
        read_text(json.dumps(line | {"spec_decode_acceptance_length": 3.285}), CONTEXT)


@pytest.mark.parametrize("text", ["", "hello", "| a | b |\n|---|---|\n| 1 | 2 |"])
def test_other_text_is_none(text: str) -> None:
    assert pasted(text) is None


def run(model: str, tp: int, requests: str = "") -> Row:
    text = PRINTED if not requests else PRINTED.replace("64\n", f"{requests}\n", 1)
    context = Context(model=model, gpu="h100-sxm5", engine="vllm", tp=tp)
    return read_text(text, context).rows[0]


def test_a_tiny_run_moves_no_large_model_beyond_its_interval() -> None:
    """A public run of 8 requests of a 125M model doubled Llama-70B's time."""
    tiny, large = run("facebook/opt-125m", 1, "8"), run("meta-llama/Llama-3.1-70B-Instruct", 4)
    before = predict([tiny, large], shipped())
    slow = {name: 4 * before[0].values[name] for name in tiny.measured}
    local = applied(shipped(), fitted([Row("serving", tiny.inputs, slow, tiny.remarks)], shipped()))
    after = predict([large], local)[0].values["tpot_ms"]
    assert after < 1.1 * before[1].values["tpot_ms"]
    assert after < before[1].values["tpot_p90_ms"]


def test_a_run_with_the_predicted_values_changes_nothing() -> None:
    row = run("meta-llama/Llama-3.1-8B-Instruct", 1)
    said = predict([row], shipped())[0].values
    same = Row("serving", row.inputs, {n: said[n] for n in row.measured}, row.remarks)
    for level in fitted([same], shipped()):
        assert level.values() == pytest.approx([1.0] * len(level), abs=1e-3)


def test_the_order_of_runs_does_not_matter() -> None:
    rows = [run("facebook/opt-125m", 1, "8"), run("meta-llama/Llama-3.1-8B-Instruct", 1)]
    one, other = fitted(rows, shipped()), fitted(rows[::-1], shipped())
    for level, same in zip(one, other, strict=True):
        assert level == pytest.approx(same, rel=2e-3)
