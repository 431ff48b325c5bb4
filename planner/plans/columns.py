"""Answers for many batches and contexts of one deployment at once, as columns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from planner.deployment import Deployment, ModelPass
from planner.roofline import Array
from planner.step.buffers import Buffers, Into, fresh
from planner.step.figures import StepPoints

Column = np.ndarray[Any, np.dtype[Any]]
FIGURES = (
    "flops",
    "bytes",
    "arithmetic_intensity",
    "bound",
    "roofline_tpot_s",
    "tpot_p10_s",
    "tpot_p50_s",
    "tpot_p90_s",
    "tokens_per_s",
    "tokens_per_s_p10",
    "tokens_per_s_p90",
    "tokens_per_s_per_gpu",
    "tokens_per_s_per_user",
    "mbu",
    "mfu",
)
"""Names that `columns` returns, in its order."""


def columns(
    deployment: Deployment,
    replicas: int,
    passes: Sequence[ModelPass],
    batch: Array,
    into: Into = fresh,
) -> dict[str, Column]:
    """Return the figures of points by name, each of the shape in which batch and context meet.

    `passes` is what a step of the deployment runs at `batch` sequences. FLOPs and bytes are one
    step's over all GPUs of a replica, times are per token; `bound` is a position in
    `timing.BOUNDS`. MFU is of the highest peak the step's kernels run at, MBU of the datasheet
    bandwidth. No percentile is below the roofline. Figures are written `into` arrays.
    """
    gpus, tokens = deployment.sharding.gpus, deployment.tokens_per_step

    def out(name: str) -> Column | None:
        return into(name, float)

    flops = _over(passes, lambda points: points.flops, out("flops"))
    moved = _over(passes, lambda points: points.bytes, out("bytes"))
    step_s = _over(passes, lambda points: points.total_s, out("step_s"))
    roofline_s = _over(passes, lambda points: points.roofline_s, out("roofline_s"))
    seconds = step_s
    if tokens != 1.0:
        seconds = np.divide(step_s, tokens, out=out("tpot_p50_s"))
        roofline_s = np.divide(roofline_s, tokens, out=out("roofline_s"))
    rate = np.divide(batch, seconds, out=out("rate"))
    low, high = deployment.tpot_interval
    fast_s = np.multiply(seconds, low, out=out("tpot_p10_s"))
    fast_s = np.maximum(fast_s, roofline_s, out=out("tpot_p10_s"))
    best = np.divide(batch, fast_s, out=out("tokens_per_s_p90"))
    peak = deployment.step.highest_peak_flops_per_s
    bandwidth = deployment.accelerator.bandwidth_bytes_per_s
    return {
        "flops": flops,
        "bytes": moved,
        "arithmetic_intensity": np.divide(flops, moved, out=out("arithmetic_intensity")),
        "bound": passes[0].points.bound_codes,
        "roofline_tpot_s": roofline_s,
        "tpot_p10_s": fast_s,
        "tpot_p50_s": seconds,
        "tpot_p90_s": np.multiply(seconds, high, out=out("tpot_p90_s")),
        "tokens_per_s": np.multiply(rate, replicas, out=out("tokens_per_s")),
        "tokens_per_s_p10": np.multiply(rate, replicas / high, out=out("tokens_per_s_p10")),
        "tokens_per_s_p90": np.multiply(best, replicas, out=out("tokens_per_s_p90")),
        "tokens_per_s_per_gpu": np.divide(rate, gpus, out=out("tokens_per_s_per_gpu")),
        "tokens_per_s_per_user": np.divide(1.0, seconds, out=out("tokens_per_s_per_user")),
        "mbu": _share(moved, bandwidth * gpus, step_s, out("mbu")),
        "mfu": _share(flops, peak * gpus, step_s, out("mfu")),
    }


def grid_columns(
    deployment: Deployment,
    replicas: int,
    batches: Array,
    contexts: Array,
    buffers: Buffers | None = None,
) -> dict[str, Column]:
    """Return the figures of a grid by name, as arrays of shape (batch, context).

    `batches` [-] and `contexts` [token] are one-dimensional. `fits` says whether memory holds a
    point; the rest is as in `columns`. With `buffers` the arrays are theirs, and hold until the
    next grid is written into them.
    """
    batch = batches[:, None]
    into = buffers.shaped((batches.size, contexts.size)) if buffers else fresh
    figures = columns(deployment, replicas, deployment.passes(batch, contexts, into), batch, into)
    most = deployment.memory.max_batch(contexts)
    return {**figures, "fits": np.less_equal(batch, most, out=into("fits", np.bool_))}


def _over(
    passes: Sequence[ModelPass], read: Callable[[StepPoints], Array], out: Column | None
) -> Array:
    """Return a figure of a step: the sum of its passes' by their shares."""
    if len(passes) == 1:
        return read(passes[0].points)
    total = np.multiply(passes[0].share, read(passes[0].points), out=out)
    for each in passes[1:]:
        total = np.add(total, each.share * read(each.points), out=out)
    return np.asarray(total)


def _share(used: Array, rate: float, seconds: Array, out: Column | None) -> Array:
    """Return used/(rate·seconds) [-], at most 1.

    A step takes at least its kernels' times at peak, each rounded before they are summed; the sum
    of what they use is rounded once, so that a step on the roofline may seem to use a last bit more
    than there is.
    """
    offered = np.multiply(rate, seconds, out=out)
    return np.minimum(np.divide(used, offered, out=out), 1.0, out=out)
