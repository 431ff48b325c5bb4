"""Options as a shell user types them: numbers, repeats, completion, and refusals in one line."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import click
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.cli import main
from planner.commands.completion import accelerators, models
from planner.commands.loads import pool
from planner.commands.numbers import NotANumber, whole, wholes
from planner.commands.options import LORA, NUMBERS, Whole, together

MODEL = "meta-llama/Llama-3.1-8B-Instruct"


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("8", 8),
        (" 8 ", 8),
        ("8k", 8192),
        ("8K", 8192),
        ("1M", 1_048_576),
        ("-3", -3),
        ("+3", 3),
        ("0", 0),
        ("2 k", 2048),
    ],
)
def test_numbers(text: str, number: int) -> None:
    assert whole(text) == number


@pytest.mark.parametrize("text", ["", "k", "1.5", "1e3", "8kk", "8g", "1_000", "0x10", "9" * 19])
def test_no_numbers(text: str) -> None:
    with pytest.raises(NotANumber, match="is not a number; accepted: a whole number such as 8192"):
        whole(text)


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("1-8", [1, 2, 4, 8]),
        ("1-6", [1, 2, 4, 6]),  # it ends with its last one
        ("3-3", [3]),
        ("1k-4k", [1024, 2048, 4096]),
        ("1,4-8,100", [1, 4, 8, 100]),
        ("-3", [-3]),
    ],
)
def test_lists_and_ranges(text: str, numbers: list[int]) -> None:
    assert wholes(text) == numbers


@pytest.mark.parametrize("text", ["8-1", "0-8", "1-", "1,,2", "1-2-3"])
def test_no_lists(text: str) -> None:
    with pytest.raises(NotANumber, match="accepted: "):
        wholes(text)


@settings(max_examples=60)
@given(st.integers(1, 10**6), st.integers(0, 10**6))
def test_a_range_doubles_between_its_ends(low: int, more: int) -> None:
    numbers = wholes(f"{low}-{low + more}")
    assert (numbers[0], numbers[-1]) == (low, low + more)
    assert numbers == sorted(set(numbers))
    assert all(b == 2 * a for a, b in pairwise(numbers[:-1]))


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("0", "value: 0; accepted: 1 to 10"),
        ("11", "value: 11; accepted: 1 to 10"),
        ("ten", "value: 'ten' is not a number"),
    ],
)
def test_bounds_of_a_number(value: str, message: str) -> None:
    with pytest.raises(click.BadParameter, match=message):
        Whole(1, 10).convert(value, None, None)
    assert Whole(1, 10).convert(10, None, None) == 10


def test_what_is_read_already_stays_as_it_is() -> None:
    assert NUMBERS.convert([1, 2], None, None) == [1, 2]
    assert LORA.convert({"adapters": 1, "rank": 8}, None, None) == {"adapters": 1, "rank": 8}
    with pytest.raises(click.BadParameter, match="value: 'x'; accepted: ADAPTERS:RANK as 4:16"):
        LORA.convert("x", None, None)


@pytest.mark.parametrize(
    ("text", "fields"),
    [
        ("h100-sxm5", {"gpu": "h100-sxm5"}),
        ("h100-sxm5:tp=4:engine=vllm", {"gpu": "h100-sxm5", "tp": "4", "engine": "vllm"}),
        ("l4:isl-up-to=2000", {"gpu": "l4", "isl_up_to": "2000"}),
        ("l4:name=a=b", {"gpu": "l4", "name": "a=b"}),
    ],
)
def test_pools(text: str, fields: dict[str, Any]) -> None:
    assert pool(text) == fields


@pytest.mark.parametrize("text", [":tp=4", "l4:tp", "l4:tp=", "l4:"])
def test_no_pools(text: str) -> None:
    with pytest.raises(ValueError, match="accepted: GPU, and fields as in h100-sxm5:tp=4"):
        pool(text)


def test_options_keep_their_order() -> None:
    @click.command()
    @together(click.option("--a"), click.option("--b"), click.option("--c"))
    def command() -> None:
        """Nothing."""

    assert [option.name for option in command.params] == ["a", "b", "c"]


def completed(function: Any, typed: str) -> list[str]:
    known: list[str] = function(None, None, typed)
    return known


def test_completion_begins_with_what_begins_so() -> None:
    """bash offers nothing else; other shells also those that hold it."""
    ids = completed(accelerators, "H100")
    assert "h100-sxm5" in ids
    assert all("h100" in one for one in ids)
    begins = [one.startswith("h100") for one in ids]
    assert begins == sorted(begins, reverse=True)
    assert MODEL in completed(models, "llama-3.1-8b-inst")
    assert completed(models, "no such model") == []
    assert len(completed(accelerators, "")) > 100


def refused(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    with pytest.raises(SystemExit) as ended:
        main([*words])
    assert ended.value.code == 2
    error = capsys.readouterr().err
    assert error.startswith("planner: ")
    assert error.count("\n") == 1
    return error


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["plan", MODEL, "--gpu", "l4", "--tp", "1", "--tp", "2"], "tp: given 2 times; accepted"),
        (["gpus", "list", "--vendor", "a", "--vendor", "b"], "vendor: given 2 times"),
        (["plan", MODEL, "--gpu", "l4", "--batch", "8-1"], "batch: '8-1' is not a range"),
        (["plan", MODEL, "--gpu", "l4", "--isl", "many"], "isl: 'many' is not a length"),
        (["plan", MODEL, "--gpu", "l4", "--graphs", "some"], "graphs: 'some'; accepted: on, off"),
        (["plan", MODEL, "--gpu", "l4", "--prefix-caching", "maybe"], "prefix-caching"),
        (["plan", MODEL], "--gpu"),
        (["plan", "nobody/nothing", "--gpu", "l4"], "model"),
        (["recommend", MODEL], "gpu: give --gpu once or more, or --all"),
        (["recommend", MODEL, "--gpu", "l4", "--all"], "gpu: give --gpu once or more, or --all"),
        (["fleet", MODEL, "--pool", "l4"], "trace or requests_per_s_by_window: needed"),
        (["fleet", MODEL, "--pool", "l4:tp", "--rates", "1"], "pools: 'tp'; accepted: GPU, and"),
        (["engines", "show", "nothing"], "engine"),
        (["gpus", "show", "nothing"], "gpu"),
        (["nothing"], "nothing"),
        (["validate", "nowhere.csv"], "nowhere.csv"),
        (["calibrate", "--engine", "vllm"], "engine: says what results ran, and there are none"),
    ],
)
def test_what_is_refused_names_the_option(
    words: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert message in refused(capsys, *words)


def test_a_flag_may_be_repeated(capsys: pytest.CaptureFixture[str]) -> None:
    main(["models", "show", MODEL, "--json", "--json"])
    assert '"total_params"' in capsys.readouterr().out
