"""A step at one point, kernel by kernel."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from planner.roofline import Array
from planner.step.evaluator import Step
from planner.step.figures import StepPoints


@dataclass(frozen=True, slots=True, eq=False)
class KernelFigures:
    """One rank's figures of every kernel, in the step's order; arrays of shape (kernel,)."""

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


def kernel_figures(
    step: Step, points: StepPoints, batch: int = -1, context: int = -1
) -> KernelFigures:
    """Return the figures of a step's kernels where its flat `batch` and `context` meet."""
    alone, cached = points.of_batch, points.of_context
    n, scale = len(step.batch_items.kernels), step.efficiency.scale
    s = float(alone.sequences.ravel()[batch])
    order = np.argsort(np.concatenate([step.batch_items.kernels, step.context_items.kernels]))
    of_batch, of_context = step.of_items
    launches = step.context_items.launches * of_context.launch_s[:, 0] * scale

    def joined(of_kernels: Array, of_sequence: Array) -> Array:
        return np.concatenate([of_kernels[:n, batch], s * of_sequence[:, context]])[order]

    work = joined(alone.pure.compute_s, cached.features.compute_s)
    traffic = joined(alone.pure.memory_s, cached.features.memory_s)
    floors = np.concatenate([np.zeros(n), launches])[order]
    reached_compute = joined(
        alone.features.compute_s / of_batch.compute, cached.features.compute_s / of_context.compute
    )
    reached_memory = joined(
        alone.features.memory_s / of_batch.memory, cached.features.memory_s / of_context.memory
    )
    return KernelFigures(
        flops=work * step.peaks_flops_per_s,
        bytes=traffic * step.accelerator.bandwidth_bytes_per_s,
        time_s=joined(alone.item_s, cached.item_s) + floors,
        compute_s=reached_compute * scale,
        memory_s=reached_memory * scale,
        launch_s=joined(alone.launch_s, cached.launch_s) + floors,
    )
