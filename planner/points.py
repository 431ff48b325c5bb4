"""Answers for many batches and contexts of one deployment at once, as columns."""

from __future__ import annotations

from typing import Any

import numpy as np

from planner.decode import StepWork
from planner.resolve import Deployment
from planner.roofline import Array
from planner.timing import StepTime


def evaluate(deployment: Deployment, batch: Array, context: Array) -> tuple[StepWork, StepTime]:
    """Return work and (calibrated) time of a step at every batch and context, which broadcast."""
    work = deployment.step.work(batch, context)
    return work, deployment.machine.time(work)


def columns(deployment: Deployment, replicas: int, work: StepWork, time: StepTime,
            batch: Array) -> dict[str, np.ndarray[Any, Any]]:  # fmt: skip
    """Return the figures of a plan's points by name, each of shape (*points).

    FLOPs and bytes are one step's over all GPUs of a replica; MFU is taken of the highest peak the
    step's kernels run at, MBU of the datasheet bandwidth. No percentile is below the roofline.
    """
    gpus = deployment.sharding.gpus
    flops, moved = work.flops.sum(axis=0), work.bytes.sum(axis=0)
    seconds = time.total_s
    rate = batch / seconds
    low, high = deployment.interval()
    roofline_s = deployment.machine.time(work, pure=True).total_s
    return {
        "flops": flops,
        "bytes": moved,
        "arithmetic_intensity": flops / moved,
        "bound": time.bound,
        "roofline_tpot_s": roofline_s,
        "tpot_p10_s": np.maximum(seconds * low, roofline_s),
        "tpot_p50_s": seconds,
        "tpot_p90_s": seconds * high,
        "tokens_per_s": rate * replicas,
        "tokens_per_s_per_gpu": rate / gpus,
        "tokens_per_s_per_user": 1.0 / seconds,
        "mbu": _share(moved, deployment.accelerator.bandwidth_bytes_per_s * gpus * seconds),
        "mfu": _share(flops, float(deployment.machine.peak.max()) * gpus * seconds),
    }


def _share(used: Array, offered: Array) -> Array:
    """Return used/offered [-], at most 1.

    A step takes at least its kernels' times at peak, each rounded before they are summed; the sum
    of what they use is rounded once, so that a step on the roofline may seem to use a last bit more
    than there is.
    """
    return np.minimum(used / offered, 1.0)
