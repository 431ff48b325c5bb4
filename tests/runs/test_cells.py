"""Rows of runs read from text, kept and joined; what their words for engines and formats mean."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.engines.setting_columns import settings_of
from planner.engines.settings import InvalidSetting, Lora
from planner.models import get_model
from planner.runs.entries import entry_of, joined, row_of
from planner.runs.rows import BadCell, Row, UnknownRows, numbers, read_rows, recognise, rows_of
from planner.runs.setup import as_stored, backend, engine_name, in_words, setup

SERVING = "row,model,gpu,engine,isl,osl,concurrency,ttft_ms,tpot_ms,queued,remark"
LLAMA = "meta-llama/Llama-3.1-8B-Instruct"


def serving(*lines: str) -> list[Row]:
    return rows_of([SERVING, *lines])


def test_a_row_holds_question_answer_and_remarks_apart() -> None:
    (row,) = serving("7, m ,h100,vllm,1024,128,16,350.5,12.25,1,odd")
    assert row.kind == "serving"
    assert row.inputs["model"] == "m"
    assert (row.inputs["isl"], row.inputs["tp"]) == ("1024", "")
    assert row.measured == {"ttft_ms": 350.5, "tpot_ms": 12.25}
    assert row.remarks == {"queued": "1", "remark": "odd"}


def test_blank_results_are_left_out() -> None:
    (row,) = serving("1,m,h100,vllm,1024,128,16,,12,,")
    assert row.measured == {"tpot_ms": 12.0}


@pytest.mark.parametrize(
    ("name", "number", "count"),
    [("isl", 1024.0, 1024), ("concurrency", 16.0, 16), ("tp", None, 3), ("pp", None, 3)],
)
def test_numbers_of_a_row(name: str, number: float | None, count: int) -> None:
    (row,) = serving("1,m,h100,vllm,1024,128,16,1,1,,")
    assert row.number(name) == number
    assert row.number(name, 5.0) == (5.0 if number is None else number)
    assert row.count(name, 3) == count


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("1,m,g,e,many,128,16,1,1,,", "isl: 'many' in row 1 of this column; accepted: a number"),
        ("1,m,g,e,0,128,16,1,1,,", "isl: '0' in row 1"),
        ("1,m,g,e,1024,128,-3,1,1,,", "concurrency: '-3' in row 1"),
        ("1,m,g,e,1024,128,16,nan,1,,", "ttft_ms: 'nan' in row 1 of this column; accepted: a"),
        ("1,m,g,e,1024,128,16,1,-2,,", "tpot_ms: '-2' in row 1"),
        ("1,m,g,e,1e9,128,16,1,1,,", "accepted: a number of 1 to 16777216"),
        ("1,m,g,e,inf,128,16,1,1,,", "isl: 'inf' in row 1"),
    ],
)
def test_a_bad_cell_names_column_and_row(line: str, message: str) -> None:
    with pytest.raises(BadCell) as raised:
        serving(line)
    assert message in str(raised.value)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("columns", "kind"),
    [
        (["isl", "osl", "concurrency"], "serving"),
        (["metric", "batch", "model"], "decode"),
        (["max_model_len", "engine"], "memory"),
        # The first that all columns of are there.
        (["isl", "osl", "concurrency", "metric", "batch"], "serving"),
    ],
)
def test_kinds_by_their_columns(columns: list[str], kind: str) -> None:
    assert recognise(columns) == kind
    with pytest.raises(UnknownRows, match="rows: columns of none of the three kinds"):
        recognise(columns[1:2])


@pytest.mark.parametrize("name", ["rows.csv", "rows.csv.gz"])
def test_files_may_be_packed_and_marked(tmp_path: Path, name: str) -> None:
    text = ("\ufeff" + SERVING + "\n1,m,g,e,10,20,3,4,5,,\n").encode()
    path = tmp_path / name
    path.write_bytes(gzip.compress(text) if name.endswith("gz") else text)
    (row,) = read_rows(path)
    assert row.number("osl") == 20
    assert numbers([row, row], "isl", 1.0).tolist() == [10.0, 10.0]
    assert numbers([row], "tp", 1.0).tolist() == [1.0]


cells = st.text(st.characters(codec="ascii", categories=["L", "N"]), min_size=1, max_size=8)


@given(cells, st.floats(0, 1e6), st.booleans())
def test_a_row_is_kept_and_read_again(model: str, tpot: float, queued: bool) -> None:
    (blank,) = serving("1,m,g,e,10,20,3,,,,")
    row = Row(
        "serving",
        {**blank.inputs, "model": model},
        {"tpot_ms": tpot},
        {"queued": "1"} if queued else {},
    )
    assert row_of(entry_of(row)) == row
    assert "" not in entry_of(row)["inputs"].values()


def test_each_run_counts_once() -> None:
    """Rows that differ in their number alone are one; in a result or an input they are two."""
    rows = serving(
        "1,m,g,e,10,20,3,4,5,,",
        "2,m,g,e,10,20,3,4,5,,",
        "3,m,g,e,10,20,3,4,6,,",
        "4,m,g,e,10,20,4,4,5,,",
    )
    assert [row.inputs["row"] for row in joined(rows)] == ["1", "3", "4"]
    assert joined([*rows, *rows]) == joined(rows)


@pytest.mark.parametrize(
    ("printed", "name"),
    [
        ("vLLM", "vllm"),
        ("vllm 0.9", "vllm"),
        ("TensorRT-LLM", "trtllm"),
        ("trt-llm", "trtllm"),
        ("SGLang (main)", "sglang"),
        ("llama.cpp", "llama.cpp"),
        (" MLX ", "mlx"),
        ("", ""),
    ],
)
def test_names_of_engines(printed: str, name: str) -> None:
    assert engine_name(printed) == name


@pytest.mark.parametrize(
    ("printed", "family"),
    [
        ("CUDA", "cuda"),
        ("HIP", "rocm"),
        ("ROCm 6.2", "rocm"),
        ("rocWMMA", "rocm"),
        ("Vulkan_RADV", "vulkan"),
        ("metal-2", "metal"),
        ("main", ""),
        ("", ""),
    ],
)
def test_families_of_backends(printed: str, family: str) -> None:
    assert backend(printed) == family


@pytest.mark.parametrize(
    ("stated", "word"),
    [("Q4_K_XL", "q4_k_m"), ("EXL2_4.0bpw", "4.0bit"), ("4.65bpw", "4.65bit"), ("fp8", "fp8")],
)
def test_formats_in_the_words_of_the_table(stated: str, word: str) -> None:
    assert in_words(stated) == word


@pytest.mark.parametrize(
    ("model", "stated", "stored", "override"),
    [
        # In its own format nothing is overridden; half precision counts as bfloat16.
        (LLAMA, "", LLAMA, None),
        (LLAMA, "bf16", LLAMA, None),
        (LLAMA, "fp16", LLAMA, None),
        # No checkpoint of it in 4-bit blocks is on record: the weights are overridden.
        (LLAMA, "q4_k", LLAMA, "q4_k"),
        # Mixtures are published with a scale a block.
        ("deepseek-ai/DeepSeek-V3", "fp8", "deepseek-ai/DeepSeek-V3", None),
        ("openai/gpt-oss-120b", "mxfp4", "openai/gpt-oss-120b", None),
        # A quantised checkpoint that is published beside it is taken.
        ("Qwen/Qwen3-32B", "fp8", "Qwen/Qwen3-32B-FP8", None),
        ("Qwen/Qwen3-235B-A22B", "fp8", "Qwen/Qwen3-235B-A22B-FP8", None),
        ("deepseek-ai/DeepSeek-V4-Flash", "fp8", "sgl-project/DeepSeek-V4-Flash-FP8", None),
        ("Qwen/Qwen2.5-72B-Instruct", "awq", "Qwen/Qwen2.5-72B-Instruct-AWQ", None),
    ],
)
def test_the_checkpoint_that_holds_a_format(
    model: str, stated: str, stored: str, override: str | None
) -> None:
    spec, weights, notes = as_stored(get_model(model), stated)
    assert spec.id.endswith(stored.rpartition("/")[2])
    assert (weights, notes) == (override, ())


def test_an_unknown_format_is_taken_as_four_bits_and_said() -> None:
    _, weights, notes = as_stored(get_model(LLAMA), "foo")
    assert weights == "int4"
    assert notes == ("weight_format foo is not known: int4 assumed",)


def run(**inputs: str) -> Row:
    (row,) = serving(f"1,{LLAMA},h100-sxm5,vllm,1024,128,16,1,1,,")
    return Row(row.kind, {**row.inputs, **inputs}, row.measured, row.remarks)


@pytest.mark.parametrize(
    ("inputs", "split"),
    [
        ({}, (1, 1, 1, 1)),
        # GPUs that no split explains hold layers' shares.
        ({"gpus": "4"}, (4, 1, 1, 1)),
        ({"gpus": "8", "pp": "2"}, (4, 2, 1, 1)),
        ({"gpus": "8", "attention_dp": "4"}, (2, 1, 1, 4)),
        ({"gpus": "4", "tp": "2"}, (2, 1, 1, 1)),
        # A split of more GPUs than there were is cut.
        ({"gpus": "2", "tp": "8"}, (2, 1, 1, 1)),
        ({"gpus": "8", "tp": "8", "moe_ep": "8"}, (8, 1, 8, 1)),
        # An expert split that does not divide the ranks is all of them.
        ({"gpus": "8", "tp": "8", "moe_ep": "3"}, (8, 1, 8, 1)),
    ],
)
def test_splits_of_runs(inputs: dict[str, str], split: tuple[int, ...]) -> None:
    found = setup(run(**inputs)).deployment.sharding
    assert (found.tp, found.pp, found.ep, found.attention_dp) == split


def test_a_split_that_the_heads_do_not_take_is_narrowed_and_said() -> None:
    found = setup(run(gpus="3", tp="3"))
    assert found.deployment.sharding.tp == 2
    assert found.notes == (f"{LLAMA} cannot be split 3 ways: 2 assumed",)


def test_a_card_without_a_link_is_joined_by_pcie() -> None:
    found = setup(run(gpu="l2", gpus="2", tp="2"))
    assert found.deployment.accelerator.link.bytes_per_s == 32e9
    assert "PCIe 4.0 x16 assumed" in found.notes[0]


@pytest.mark.parametrize(
    ("row", "name", "value"),
    [
        ({"gpu_memory_utilization": "0.9"}, "memory_fraction", 0.9),
        ({"memory_fraction": "1"}, "memory_fraction", 1.0),
        ({"max_model_len": "8192"}, "max_model_len", 8192),
        ({"max_sequences": "1e3"}, "max_sequences", 1000),
        ({"prefix_caching": "off"}, "prefix_caching", False),
        ({"vision": "1"}, "vision", True),
        ({"graphs": "OFF"}, "graphs", "off"),
        ({"graphs": "512"}, "graphs", 512),
        ({"lora": "4:16"}, "lora", Lora(4, 16)),
        ({"block_size": " "}, "block_size", None),
    ],
)
def test_settings_of_columns(row: dict[str, str], name: str, value: object) -> None:
    assert getattr(settings_of(row), name) == value


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"memory_fraction": "1.2"}, "memory_fraction: '1.2' is not .* accepted: a share"),
        ({"memory_fraction": "0"}, "memory_fraction: '0'"),
        ({"max_model_len": "8192.5"}, "max_model_len: '8192.5' is not .* accepted: a whole number"),
        ({"max_sequences": "-1"}, "max_sequences: '-1'"),
        ({"prefix_caching": "maybe"}, "prefix_caching: 'maybe' .* accepted: on or off"),
        ({"graphs": "some"}, "graphs: 'some' .* accepted: on, off or a batch"),
        ({"lora": "4"}, "lora: '4' .* accepted: ADAPTERS:RANK"),
    ],
)
def test_settings_that_are_none_name_the_column(row: dict[str, str], message: str) -> None:
    with pytest.raises(InvalidSetting, match=message):
        settings_of(row)
