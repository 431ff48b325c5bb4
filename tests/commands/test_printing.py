"""What commands print and read: tables, notes, and loads as a shell user writes them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.cli import main
from planner.commands.loads import InvalidLoad, disaggregated, graphs, lengths, lora, speculation
from planner.commands.options import NUMBERS
from planner.commands.output import GAP, WIDTH, fitted, print_notes, print_table, print_verdict
from planner.models.spec import Note

MODEL, GPU = "meta-llama/Llama-3.1-8B-Instruct", "h100-sxm5"


def test_a_plain_table_is_aligned(capsys: pytest.CaptureFixture[str]) -> None:
    """The first and the last column to the left, figures to the right; no trailing blanks."""
    print_table(["name", "GB", "note"], [("a", "1.5", "x"), ("longer", "120", "")], title="Title")
    assert capsys.readouterr().out.splitlines() == [
        "Title",
        "name     GB  note",
        "a       1.5  x",
        "longer  120",
    ]


def test_a_long_cell_is_folded_within_the_line(capsys: pytest.CaptureFixture[str]) -> None:
    words = " ".join(["word"] * 40)
    print_table(["a", "b", "c"], [("x", "1.5 GB", words)])
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= WIDTH
    assert " ".join(lines[1:]).split().count("word") == 40
    # What is folded stays below its own column.
    assert {line.index("word") for line in lines[1:]} == {lines[0].index("c")}


@pytest.mark.parametrize(
    ("columns", "widths"),
    [
        # What fits is as wide as its widest cell.
        ([["a", "xx"], ["b", "1.25"]], [2, 4]),
        # 80 characters less one gap: the text gives way, and the figure beside it does not.
        ([["a", "x"], ["b", "w " * 100]], [1, WIDTH - GAP - 1]),
        ([["a", "x"], ["b", "123.4 GB"], ["c", "w " * 100]], [1, 8, WIDTH - 2 * GAP - 9]),
    ],
)
def test_widths_of_columns(columns: list[list[str]], widths: list[int]) -> None:
    assert fitted(columns) == widths


@given(st.lists(st.tuples(*[st.text("ab ", max_size=60)] * 3), min_size=1, max_size=4))
def test_a_table_of_text_is_never_wider_than_a_line(rows: list[tuple[str, str, str]]) -> None:
    columns = list(zip(("a", "b", "c"), *rows, strict=True))
    assert sum(fitted(columns)) + 2 * GAP <= WIDTH


def test_an_empty_table_has_its_head(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(["a", "b"], [])
    assert capsys.readouterr().out == "a  b\n"


def test_notes_and_verdicts_are_one_line_each(capsys: pytest.CaptureFixture[str]) -> None:
    print_notes([Note("code", "what to know"), Note("other", "more")])
    print_verdict("It fits.")
    assert capsys.readouterr().out.splitlines() == [
        "note: what to know [code]",
        "note: more [other]",
        "It fits.",
    ]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1024", 1024),
        ("lognormal:1024:0.6", {"lognormal": {"mean": 1024.0, "cv": 0.6}}),
        ("uniform:10:20", {"uniform": {"low": 10.0, "high": 20.0}}),
        ("-5", -5),  # whose range the scenario checks
    ],
)
def test_lengths(text: str, value: Any) -> None:
    assert lengths(text) == value


@pytest.mark.parametrize(
    "text",
    [
        "",
        "many",
        "10.5",
        "lognormal:1",
        "lognormal:1:2:3",
        "normal:1:2",
        "uniform:a:b",
        "lognormal:nan:1",
        "uniform:1:inf",
        "@/no/such/file",
    ],
)
def test_what_is_no_length(text: str) -> None:
    with pytest.raises(InvalidLoad, match="accepted: TOKENS, lognormal:MEAN:CV") as raised:
        lengths(text)
    assert "\n" not in str(raised.value)


def test_a_file_of_lengths(tmp_path: Path) -> None:
    path = tmp_path / "lengths"
    path.write_text("10\n\n 20 \n30", encoding="utf-8")
    assert lengths(f"@{path}") == {"trace": [10, 20, 30]}
    path.write_text("10\ntwenty\n", encoding="utf-8")
    with pytest.raises(InvalidLoad, match=r"line 2 of .* is 'twenty'; accepted: whole tokens"):
        lengths(f"@{path}")
    path.write_text("12345678901\n", encoding="utf-8")
    with pytest.raises(InvalidLoad, match="line 1 of"):
        lengths(f"@{path}")


@pytest.mark.parametrize(
    ("parse", "text", "value"),
    [
        (speculation, "3", {"drafts": 3}),
        (speculation, "1:1.8", {"drafts": 1, "accepted": 1.8}),
        (disaggregated, "same", {}),
        (disaggregated, "tp=4:busy=0.7", {"tp": 4, "busy": 0.7}),
        (disaggregated, "attention-dp=2", {"attention_dp": 2}),
        (disaggregated, "transfer_bytes_per_s=5e10", {"transfer_bytes_per_s": 5e10}),
        (lora, "4:16", {"adapters": 4, "rank": 16}),
        (graphs, "on", "on"),
        (graphs, "off", "off"),
        (graphs, "512", 512),
    ],
)
def test_other_loads(parse: Any, text: str, value: Any) -> None:
    assert parse(text) == value


@pytest.mark.parametrize(
    ("parse", "text", "accepted"),
    [
        (speculation, "x", "accepted: DRAFTS, or DRAFTS:ACCEPTED as 1:1.8"),
        (speculation, "1:nan", "accepted: DRAFTS"),
        (speculation, "1.5", "accepted: DRAFTS"),
        (disaggregated, "tp=x", "accepted: same, or figures as in tp=4:busy=0.7"),
        (disaggregated, "gpus=4", "of tp, pp, ep, attention_dp, busy, transfer_bytes_per_s"),
        (disaggregated, "", "accepted: same"),
        (lora, "4", "accepted: ADAPTERS:RANK as 4:16"),
        (lora, "a:b", "accepted: ADAPTERS:RANK"),
        (graphs, "some", "accepted: on, off or the largest batch captured"),
    ],
)
def test_loads_that_are_none(parse: Any, text: str, accepted: str) -> None:
    with pytest.raises(InvalidLoad) as raised:
        parse(text)
    assert accepted in str(raised.value)


@given(st.lists(st.integers(-5, 10**9), min_size=1, max_size=8))
def test_numbers_are_read_as_written(numbers: list[int]) -> None:
    assert NUMBERS.convert(",".join(map(str, numbers)), None, None) == numbers
    assert NUMBERS.convert(numbers, None, None) == numbers


@pytest.mark.parametrize(
    ("text", "numbers"),
    # 8k is 8192; a range doubles, and ends where it says.
    [("8k", [8192]), ("1-64", [1, 2, 4, 8, 16, 32, 64]), ("2-10", [2, 4, 8, 10]), ("3-3", [3])],
)
def test_short_ways_to_write_numbers(text: str, numbers: list[int]) -> None:
    assert NUMBERS.convert(text, None, None) == numbers


@pytest.mark.parametrize("text", ["", "1,", "a", "1.5", "1;2"])
def test_what_are_no_numbers(text: str) -> None:
    with pytest.raises(click.BadParameter, match="is not a number; accepted: a whole number"):
        NUMBERS.convert(text, click.Option(["--batch"]), None)


def test_json_of_a_plan_is_what_it_prints(capsys: pytest.CaptureFixture[str]) -> None:
    """8,030,261,248 parameters of two bytes; 32·2·8·128 values of two bytes a token."""
    main(["plan", MODEL, "--gpu", GPU, "--batch", "1,8", "--context", "1024", "--json"])
    answer = json.loads(capsys.readouterr().out)
    assert [point["batch"] for point in answer["points"]] == [1, 8]
    assert answer["memory"]["kv_bytes_per_token"] == 131_072
    assert answer["memory"]["weights_bytes_per_gpu"] == pytest.approx(16_060_522_496, rel=0.01)
    assert answer["limits"]["ridge_point"] == pytest.approx(295, abs=1)


def test_a_table_of_ridge_points(capsys: pytest.CaptureFixture[str]) -> None:
    main(["gpus", "show", GPU, "--json"])
    answer = json.loads(capsys.readouterr().out)
    assert answer["bandwidth_bytes_per_s"] == 3.35e12
    assert answer["ridge_point"]["bf16"] == pytest.approx(295.3, abs=0.3)
    main(["gpus", "show", GPU])
    assert "3.35 TB/s" in capsys.readouterr().out
