"""Whole numbers as people write them: `8192`, `8k`, `1,8,64`, `1-64`."""

from __future__ import annotations

import re

from planner.errors import InvalidInput

SUFFIXES = {"": 1, "k": 2**10, "m": 2**20}
"""Tokens and batches come in powers of two: 8k is 8192."""
MOST_DOUBLINGS = 64
ACCEPTED = (
    "accepted: a whole number such as 8192 or 8k, a list as in 1,8,64, or a range that doubles as "
    "in 1-64"
)


class NotANumber(InvalidInput):
    """A text is no whole number, and no list or range of them."""


def whole(text: str) -> int:
    """Return a whole number; `8k` is 8192, `1M` is 1,048,576. Raises NotANumber."""
    match = re.fullmatch(r"\s*([+-]?\d{1,18})\s*([kKmM]?)\s*", text)
    if match is None:
        raise NotANumber(f"{text[:40]!r} is not a number; {ACCEPTED}")
    return int(match[1]) * SUFFIXES[match[2].lower()]


def wholes(text: str) -> list[int]:
    """Return the numbers of a list; `1-64` is 1, 2, 4 … 64. Raises NotANumber.

    A range doubles from its first number and ends with its last one.
    """
    numbers: list[int] = []
    for part in text.split(","):
        low, dash, high = part.strip().partition("-")
        if low and dash:
            numbers += _doubling(whole(low), whole(high), part)
        else:
            numbers.append(whole(part))
    return numbers


def _doubling(low: int, high: int, text: str) -> list[int]:
    if not 1 <= low <= high:
        raise NotANumber(f"{text[:40]!r} is not a range; {ACCEPTED}")
    steps = (low * 2**step for step in range(MOST_DOUBLINGS))
    return [*(number for number in steps if number < high), high]
