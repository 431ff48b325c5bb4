"""A step at one point, kernel by kernel."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from planner.roofline import Array
from planner.step.evaluator import Step
from planner.step.figures import BatchFigures, ContextFigures, StepPoints
from planner.step.timing import Features


@dataclass(frozen=True, slots=True, eq=False)
class Breakdown:
    """One rank's figures at one point, of the kernels that share a name; shape (name,)."""

    names: list[str]
    launches: list[float]
    flops: Array
    """[FLOP]."""
    bytes: Array
    """[byte]."""
    time_s: Array
    """Calibrated [s]."""
    compute_s: Array
    """Of the arithmetic alone, as reached [s]."""
    memory_s: Array
    """Of the traffic alone, as reached [s]."""
    launch_s: Array
    """Floors of launches and visits [s]."""


@dataclass(frozen=True, slots=True, eq=False)
class _Grouping:
    """Which kernels of a step share a name; batch items stand before context items."""

    names: list[str]
    launches: list[float]
    members: Array
    """Whether a kernel has a name, shape (name, kernel)."""
    units: Array
    """Factors from the rows of `_last_point` to those of a `Breakdown`, shape (row, kernel)."""
    floors_s: Array
    """Launches of context items, which a step pays whatever its sequences, in the rows that hold
    floors; shape (row, kernel) [s]."""


@lru_cache(maxsize=1024)
def _grouping(step: Step) -> _Grouping:
    order = np.concatenate([step.batch_items.kernels, step.context_items.kernels])
    kernels = [step.kernels[i] for i in order]
    names = list(dict.fromkeys(kernel.name for kernel in step.kernels))
    members = np.array([[float(k.name == name) for k in kernels] for name in names])
    of_context = step.of_items[1]
    units, floors = np.ones((ROWS, len(kernels))), np.zeros((ROWS, len(kernels)))
    units[0] = step.peaks_flops_per_s[order]
    units[1] = step.accelerator.bandwidth_bytes_per_s
    units[3:] = step.efficiency.scale
    launch_s = step.context_items.launches * of_context.launch_s[:, 0] * of_context.scale
    floors[(2, 5), len(step.batch_items.kernels) :] = launch_s
    return _Grouping(
        names=names,
        launches=(members @ np.array([k.launches for k in kernels])).tolist(),
        members=members,
        units=units,
        floors_s=floors,
    )


def kernel_work(step: Step, points: StepPoints) -> tuple[list[float], list[float]]:
    """Return FLOPs and bytes of every kernel at the last point, of one rank, in step order."""
    alone, cached = points.of_batch, points.of_context
    s = float(alone.sequences.flat[-1])
    flops, moved = np.empty(len(step.kernels)), np.empty(len(step.kernels))
    at = step.batch_items.kernels
    flops[at] = alone.pure.compute_s[: alone.kernels, -1]
    moved[at] = alone.pure.memory_s[: alone.kernels, -1]
    at = step.context_items.kernels
    flops[at] = s * cached.features.compute_s[:, -1]
    moved[at] = s * cached.features.memory_s[:, -1]
    flops *= step.peaks_flops_per_s
    return flops.tolist(), (moved * step.accelerator.bandwidth_bytes_per_s).tolist()


def breakdown(step: Step, points: StepPoints) -> Breakdown:
    """Return the figures of the kernels at the last point of a grid, those of one name together."""
    alone, grouping = points.of_batch, _grouping(step)
    n = alone.kernels
    table = np.empty(grouping.units.shape)
    _last_point(alone, alone.pure, table[:, :n])
    np.multiply(alone.sequences.flat[-1], _of_sequence(points.of_context), out=table[:, n:])
    table *= grouping.units
    table += grouping.floors_s
    return Breakdown(grouping.names, grouping.launches, *(grouping.members @ table.T).T)


ROWS = 6
"""Rows of `_last_point`, which are the arrays of a `Breakdown` in order."""


@lru_cache(maxsize=256)
def _of_sequence(cached: ContextFigures) -> Array:
    table = np.empty((ROWS, len(cached.item_s)))
    _last_point(cached, cached.features, table)
    return table


def _last_point(axis: BatchFigures | ContextFigures, features: Features, table: Array) -> None:
    """Write the figures of an axis's first items at its last point, shape (row, item).

    Arithmetic and traffic at the datasheet's rates, time, arithmetic and traffic as reached, and
    floors; without the scale of the whole step but for the time [s].
    """
    items = table.shape[1]
    table[0] = features.compute_s[:items, -1]
    table[1] = features.memory_s[:items, -1]
    table[2] = axis.item_s[:items, -1]
    table[3] = axis.reached_compute_s[:items, -1]
    table[4] = axis.reached_memory_s[:items, -1]
    table[5] = axis.floor_s[:items, -1]
