"""Lengths of inputs and outputs that are not all equal: what a serving model needs of them.

A decode step sees sequences as often as they have steps, a prompt's attention grows with the square
of its length: of a distribution, the mean and the mean square are enough.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from planner.errors import InvalidInput


class InvalidLengths(InvalidInput):
    """Lengths that are no distribution; the message says what is accepted."""


@dataclass(frozen=True, slots=True)
class Lengths:
    """A distribution of lengths by its first two moments."""

    mean: float
    """E[X] [token]."""
    mean_square: float
    """E[X²] [token²]."""

    @property
    def of_a_step(self) -> float:
        """Mean length of the sequence a random step belongs to, E[X²]/E[X] [token].

        Halfway through it a sequence has half of this behind it (inspection paradox).
        """
        return self.mean_square / self.mean

    @classmethod
    def fixed(cls, length: float) -> Lengths:
        """Return equal lengths [token]."""
        return cls(*_checked(float(length), float(length) ** 2))

    @classmethod
    def uniform(cls, low: float, high: float) -> Lengths:
        """Return lengths uniform between two [token]."""
        return cls(*_checked((low + high) / 2, (low * low + low * high + high * high) / 3))

    @classmethod
    def lognormal(cls, mean: float, cv: float) -> Lengths:
        """Return log-normal lengths of a mean [token] and coefficient of variation [-]."""
        return cls(*_checked(mean, mean * mean * (1 + cv * cv)))

    @classmethod
    def histogram(cls, counts: Mapping[float, float]) -> Lengths:
        """Return lengths by how often each occurs; counts need not sum to one."""
        import numpy as np  # slow to import, and few questions need it

        lengths, weights = np.array(list(counts), float), np.array(list(counts.values()), float)
        if not len(lengths) or (weights < 0).any() or weights.sum() <= 0:
            raise InvalidLengths("lengths: expected lengths with counts that are not negative")
        weights = weights / weights.sum()
        return cls(*_checked(float(weights @ lengths), float(weights @ lengths**2)))

    @classmethod
    def trace(cls, lengths: Sequence[float]) -> Lengths:
        """Return the lengths of a trace, each request once [token]."""
        import numpy as np

        if not len(lengths):
            raise InvalidLengths("lengths: the trace is empty; expected one length a request")
        values = np.asarray(lengths, dtype=float)
        return cls(*_checked(float(values.mean()), float((values**2).mean())))


def _checked(mean: float, mean_square: float) -> tuple[float, float]:
    if not (math.isfinite(mean_square) and mean > 0 and mean_square >= mean * mean * (1 - 1e-9)):
        raise InvalidLengths(f"lengths: mean {mean} is not accepted; expected a positive length")
    return mean, max(mean_square, mean * mean)
