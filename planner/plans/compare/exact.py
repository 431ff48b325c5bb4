"""Floating-point numbers whose sums and differences are exact."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

BITS = 46
"""Bits kept of the largest value: 1.4e-14 of it; 7 are left to add up 128 values."""


@dataclass(frozen=True, slots=True)
class Grid:
    """Multiples of one power of two, small enough for doubles to add without rounding."""

    quantum: float

    @classmethod
    def over(cls, values: Iterable[float]) -> Grid:
        """Return the grid for values of these magnitudes."""
        largest = max((abs(value) for value in values), default=0.0)
        if largest == 0.0:
            return cls(1.0)
        return cls(math.ldexp(1.0, math.frexp(largest)[1] - BITS))

    def snap(self, value: float) -> float:
        """Return the nearest point of the grid.

        >>> grid = Grid.over([0.1, 0.2, 0.3])
        >>> a, b, c = map(grid.snap, (0.1, 0.2, 0.3))
        >>> (b - a) + (c - b) == c - a
        True
        """
        return round(value / self.quantum) * self.quantum
