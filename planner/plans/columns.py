"""Answers for many batches and contexts of one deployment at once, as columns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from planner.deployment import Deployment, ModelPass
from planner.roofline import Array
from planner.step.figures import StepPoints

Column = np.ndarray[Any, np.dtype[Any]]


def columns(
    deployment: Deployment, replicas: int, passes: Sequence[ModelPass], batch: Array
) -> dict[str, Column]:
    """Return the figures of points by name, each of the shape in which batch and context meet.

    `passes` is what a step of the deployment runs at `batch` sequences. FLOPs and bytes are one
    step's over all GPUs of a replica, times are per token; `bound` is a position in
    `timing.BOUNDS`. MFU is of the highest peak the step's kernels run at, MBU of the datasheet
    bandwidth. No percentile is below the roofline.
    """
    gpus, tokens = deployment.sharding.gpus, deployment.tokens_per_step
    flops = _over(passes, lambda points: points.flops)
    moved = _over(passes, lambda points: points.bytes)
    step_s = _over(passes, lambda points: points.total_s)
    roofline_s = _over(passes, lambda points: points.roofline_s)
    seconds = step_s
    if tokens != 1.0:
        seconds, roofline_s = step_s / tokens, roofline_s / tokens
    rate = batch / seconds
    low, high = deployment.interval()
    fast_s = np.maximum(seconds * low, roofline_s)
    peak = float(deployment.step.peaks_flops_per_s.max())
    bandwidth = deployment.accelerator.bandwidth_bytes_per_s
    return {
        "flops": flops,
        "bytes": moved,
        "arithmetic_intensity": flops / moved,
        "bound": passes[0].points.bound_codes,
        "roofline_tpot_s": roofline_s,
        "tpot_p10_s": fast_s,
        "tpot_p50_s": seconds,
        "tpot_p90_s": seconds * high,
        "tokens_per_s": rate * replicas,
        "tokens_per_s_p10": rate * (replicas / high),
        "tokens_per_s_p90": batch / fast_s * replicas,
        "tokens_per_s_per_gpu": rate / gpus,
        "tokens_per_s_per_user": 1.0 / seconds,
        "mbu": _share(moved, bandwidth * gpus * step_s),
        "mfu": _share(flops, peak * gpus * step_s),
    }


def grid_columns(
    deployment: Deployment, replicas: int, batches: Array, contexts: Array
) -> dict[str, Column]:
    """Return the figures of a grid by name, as arrays of shape (batch, context).

    `batches` [-] and `contexts` [token] are one-dimensional. `fits` says whether memory holds a
    point; the rest is as in `columns`.
    """
    batch = batches[:, None]
    figures = columns(deployment, replicas, deployment.passes(batch, contexts), batch)
    most = deployment.memory.max_batch(contexts)
    return {**figures, "fits": batch <= most}


def _over(passes: Sequence[ModelPass], read: Callable[[StepPoints], Array]) -> Array:
    if len(passes) == 1:
        return read(passes[0].points)
    return np.asarray(sum(each.share * read(each.points) for each in passes))


def _share(used: Array, offered: Array) -> Array:
    """Return used/offered [-], at most 1.

    A step takes at least its kernels' times at peak, each rounded before they are summed; the sum
    of what they use is rounded once, so that a step on the roofline may seem to use a last bit more
    than there is.
    """
    return np.minimum(used / offered, 1.0)
