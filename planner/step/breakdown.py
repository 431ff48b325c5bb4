"""A step at one point, kernel by kernel."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from planner.roofline import Array
from planner.step.evaluator import Step
from planner.step.figures import StepPoints


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
    peaks_flops_per_s: Array
    floors_s: Array
    """Launches of context items, which a step pays whatever its sequences; shape (kernel,) [s]."""


@lru_cache(maxsize=1024)
def _grouping(step: Step) -> _Grouping:
    order = np.concatenate([step.batch_items.kernels, step.context_items.kernels])
    kernels = [step.kernels[i] for i in order]
    names = list(dict.fromkeys(kernel.name for kernel in step.kernels))
    members = np.array([[float(k.name == name) for k in kernels] for name in names])
    of_context = step.of_items[1]
    floors = step.context_items.launches * of_context.launch_s[:, 0] * of_context.scale
    return _Grouping(
        names=names,
        launches=(members @ np.array([k.launches for k in kernels])).tolist(),
        members=members,
        peaks_flops_per_s=step.peaks_flops_per_s[order],
        floors_s=np.concatenate([np.zeros(len(step.batch_items.kernels)), floors]),
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
    alone, cached = points.of_batch, points.of_context
    grouping, scale = _grouping(step), step.efficiency.scale
    n = alone.kernels
    s = float(alone.sequences.flat[-1])
    table = np.empty((len(step.kernels), 6))
    columns = (
        (alone.pure.compute_s, cached.features.compute_s),
        (alone.pure.memory_s, cached.features.memory_s),
        (alone.item_s, cached.item_s),
        (alone.reached_compute_s, cached.reached_compute_s),
        (alone.reached_memory_s, cached.reached_memory_s),
        (alone.floor_s, cached.floor_s),
    )
    for column, (of_kernels, of_sequence) in enumerate(columns):
        table[:n, column] = of_kernels[:n, -1]
        table[n:, column] = s * of_sequence[:, -1]
    table[:, 0] *= grouping.peaks_flops_per_s
    table[:, 1] *= step.accelerator.bandwidth_bytes_per_s
    table[:, 3:] *= scale
    table[:, 2] += grouping.floors_s
    table[:, 5] += grouping.floors_s
    return Breakdown(grouping.names, grouping.launches, *(grouping.members @ table).T)
