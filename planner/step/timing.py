"""From work to time: what a step asks of a datasheet machine, and what is reached of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from planner.roofline import Array, p_norm

Bound = Literal["memory", "compute", "launch", "communication"]

BOUNDS: tuple[Bound, ...] = ("memory", "compute", "launch", "communication")
"""What can bind a step; `StepPoints.bound_codes` are positions in it."""


@dataclass(frozen=True, slots=True)
class Item:
    """Something a step spends time on, as calibration knows it."""

    kind: str
    """A kernel's kind, a collective's op, or one of the overheads `layer` and `step`."""
    format: str = ""
    """Format of a kernel's weights, or of the cache it reads."""


OVERHEADS = (Item("layer"), Item("step"))
"""What runs beside the kernels that are modelled: norms, rotary embedding, residuals and
activation functions of every layer; scheduler and sampling of every step."""


@dataclass(frozen=True, slots=True, eq=False)
class Features:
    """What the items of a step ask of a datasheet machine; arrays of shape (item, *points)."""

    compute_s: Array
    """FLOPs/peak [s]."""
    memory_s: Array
    """Bytes/bandwidth, or bytes on the wire/link bandwidth [s]."""
    launches: Array
    """Launches [-]."""
    visits: Array
    """Pieces of work with a cost of their own: experts hit on a rank, (sequence, KV head) pairs,
    doublings of a collective's group [-]."""


@dataclass(frozen=True, eq=False)
class Efficiency:
    """What items reach of a datasheet, and their floors; arrays of shape (item,)."""

    memory: Array
    """Bandwidth reached/peak bandwidth [-]."""
    compute: Array
    """Rate reached/peak rate [-]."""
    launch_s: Array
    """Floor under one launch [s]."""
    visit_s: Array
    """Cost of one visit, see `Features.visits` [s]."""
    sharpness: Array
    """Exponent of the knee between the limits [-]."""
    scale: float = 1.0
    """Factor on the whole step [-]."""

    @classmethod
    def ideal(cls, items: int) -> Efficiency:
        """Return the pure roofline: everything at its datasheet figure, launches free."""
        ones, zeros = np.ones(items), np.zeros(items)
        return cls(ones, ones, zeros, zeros, np.full(items, np.inf))

    def column(self, at: slice) -> Efficiency:
        """Return the figures of the items `at`, of shape (item, 1) to broadcast over points."""
        return Efficiency(
            memory=self.memory[at, None],
            compute=self.compute[at, None],
            launch_s=self.launch_s[at, None],
            visit_s=self.visit_s[at, None],
            sharpness=self.sharpness[at, None],
            scale=self.scale,
        )


def item_time(features: Features, e: Efficiency) -> Array:
    """Return the time of every item, all launches together, before `Efficiency.scale` [s].

    launches·t0 + visits·t1 + ((compute/e_c)^p + (memory/e_m)^p)^(1/p); arrays broadcast.
    """
    body = p_norm(features.compute_s / e.compute, features.memory_s / e.memory, e.sharpness)
    return np.asarray(features.launches * e.launch_s + features.visits * e.visit_s + body)
