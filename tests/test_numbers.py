"""Whole numbers as people write them."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.commands.numbers import NotANumber, whole, wholes


@pytest.mark.parametrize(
    ("text", "number"), [("8192", 8192), ("8k", 8192), ("128K", 131_072), ("1M", 1_048_576)]
)
def test_a_number(text: str, number: int) -> None:
    assert whole(text) == number


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("1,8,64", [1, 8, 64]),
        ("1-64", [1, 2, 4, 8, 16, 32, 64]),
        ("3-20", [3, 6, 12, 20]),
        ("1k-4k,9", [1024, 2048, 4096, 9]),
        ("5-5", [5]),
    ],
)
def test_lists_and_ranges(text: str, numbers: list[int]) -> None:
    assert wholes(text) == numbers


@pytest.mark.parametrize("text", ["", "many", "8 k b", "1.5k", "64-1", "0-4", "1,,2", "9" * 30])
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(NotANumber, match="accepted: a whole number such as 8192 or 8k"):
        wholes(text)


@given(low=st.integers(1, 2**20), high=st.integers(1, 2**20))
def test_a_range_rises_by_doubling_and_ends_with_its_end(low: int, high: int) -> None:
    low, high = sorted((low, high))
    numbers = wholes(f"{low}-{high}")
    assert (numbers[0], numbers[-1]) == (low, high)
    assert all(b <= 2 * a for a, b in itertools.pairwise(numbers))
    assert numbers == sorted(set(numbers))
