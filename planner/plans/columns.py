"""Answers for many batches and contexts of one deployment at once, as columns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from planner.deployment import Deployment, Part
from planner.roofline import Array


def columns(
    deployment: Deployment, replicas: int, parts: Sequence[Part], batch: Array
) -> dict[str, np.ndarray[Any, Any]]:
    """Return the figures of a plan's points by name, each of shape (*points).

    `parts` is what a step of the deployment runs. FLOPs and bytes are one step's over all GPUs of a
    replica, times are per token; MFU is taken of the highest peak the step's kernels run at, MBU of
    the datasheet bandwidth. No percentile is below the roofline.
    """
    gpus, tokens = deployment.sharding.gpus, deployment.tokens_per_step
    flops = _over(parts, lambda part: part.work.flops.sum(axis=0))
    moved = _over(parts, lambda part: part.work.bytes.sum(axis=0))
    step_s = _over(parts, lambda part: part.time.total_s)
    pure_s = _over(parts, lambda part: deployment.machine.time(part.work, pure=True).total_s)
    seconds, roofline_s = step_s / tokens, pure_s / tokens
    rate = batch / seconds
    low, high = deployment.interval()
    fast_s = np.maximum(seconds * low, roofline_s)
    return {
        "flops": flops,
        "bytes": moved,
        "arithmetic_intensity": flops / moved,
        "bound": parts[0].time.bound,
        "roofline_tpot_s": roofline_s,
        "tpot_p10_s": fast_s,
        "tpot_p50_s": seconds,
        "tpot_p90_s": seconds * high,
        "tokens_per_s": rate * replicas,
        "tokens_per_s_p10": rate / high * replicas,
        "tokens_per_s_p90": batch / fast_s * replicas,
        "tokens_per_s_per_gpu": rate / gpus,
        "tokens_per_s_per_user": 1.0 / seconds,
        "mbu": _share(moved, deployment.accelerator.bandwidth_bytes_per_s * gpus * step_s),
        "mfu": _share(flops, float(deployment.machine.peak.max()) * gpus * step_s),
    }


def _over(parts: Sequence[Part], read: Callable[[Part], Array]) -> Array:
    return np.asarray(sum(part.share * read(part) for part in parts))


def _share(used: Array, offered: Array) -> Array:
    """Return used/offered [-], at most 1.

    A step takes at least its kernels' times at peak, each rounded before they are summed; the sum
    of what they use is rounded once, so that a step on the roofline may seem to use a last bit more
    than there is.
    """
    return np.minimum(used / offered, 1.0)
