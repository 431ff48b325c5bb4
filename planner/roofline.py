"""The roofline: the only place where work becomes time.

S. Williams, A. Waterman, D. Patterson, "Roofline: an insightful visual performance model for
multicore architectures", Communications of the ACM 52(4), 2009. The smooth form with
efficiencies and a launch floor is this project's; see ``docs/physics.md``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

Array: TypeAlias = "NDArray[np.float64]"
Words: TypeAlias = "NDArray[np.str_]"
Mask: TypeAlias = "NDArray[np.bool_]"
Bools: TypeAlias = "NDArray[np.bool_]"
Numeric: TypeAlias = "float | NDArray[np.float64]"
"""A scalar or an array; functions broadcast over all their Numeric arguments."""


@dataclass(frozen=True, slots=True, eq=False)
class Work:
    """What a kernel must do: arithmetic and compulsory memory traffic."""

    flops: Numeric
    """Floating-point operations, a multiply-add counting two [FLOP]."""
    bytes: Numeric
    """Bytes moved to and from memory [byte]."""

    @property
    def intensity(self) -> Numeric:
        """Arithmetic intensity, FLOPs/bytes [FLOP/byte]."""
        return np.divide(self.flops, self.bytes)

    def __add__(self, other: Work) -> Work:
        return Work(self.flops + other.flops, self.bytes + other.bytes)

    def __mul__(self, factor: float) -> Work:
        return Work(self.flops * factor, self.bytes * factor)


@dataclass(frozen=True, slots=True, eq=False)
class Roof:
    """What a machine offers, as a datasheet states it or as a kernel reaches it."""

    peak_flops_per_s: Numeric
    bandwidth_bytes_per_s: Numeric
    launch_s: Numeric = 0.0
    """Floor under every launch [s]."""
    sharpness: Numeric = np.inf
    """Exponent p of the knee between the two limits; infinity is the textbook roofline [-]."""

    @property
    def ridge(self) -> Numeric:
        """Ridge point, peak/bandwidth [FLOP/byte]."""
        return np.divide(self.peak_flops_per_s, self.bandwidth_bytes_per_s)

    def attainable(self, intensity: Numeric) -> Numeric:
        """Attainable rate, min(peak, bandwidth·intensity) [FLOP/s]."""
        return np.minimum(self.peak_flops_per_s, self.bandwidth_bytes_per_s * intensity)

    def compute_time(self, work: Work) -> Numeric:
        """Time the arithmetic alone takes [s]."""
        return np.divide(work.flops, self.peak_flops_per_s)

    def memory_time(self, work: Work) -> Numeric:
        """Time the traffic alone takes [s]."""
        return np.divide(work.bytes, self.bandwidth_bytes_per_s)

    def time(self, work: Work) -> Numeric:
        """Time of one launch, launch + (compute^p + memory^p)^(1/p) [s]; max at p = infinity."""
        return self.launch_s + p_norm(
            self.compute_time(work), self.memory_time(work), self.sharpness
        )


SMALLEST = 1e-300
"""Keeps 0/0 from being taken where both limits are nought [s]."""


def p_norm(a: Numeric, b: Numeric, p: Numeric) -> Numeric:
    """Return (a^p + b^p)^(1/p), computed from the larger so that it neither overflows nor vanishes.

    Parameters broadcast; a and b must not be negative. p = infinity gives max(a, b).
    """
    high = np.maximum(a, b)
    ratio = np.minimum(a, b) / np.maximum(high, SMALLEST)
    return high * (1.0 + ratio**p) ** np.divide(1.0, p)


def bound(compute_s: Numeric, memory_s: Numeric) -> Words:
    """Return which limit holds, "compute" or "memory", element by element."""
    return np.where(np.asarray(compute_s) > np.asarray(memory_s), "compute", "memory")
