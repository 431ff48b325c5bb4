"""Where decode goes as the batch grows: saturation, crossover, weights-equal-KV and knee."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from planner.roofline import Array
from planner.step.decode import Step
from planner.step.timing import Machine

LARGEST_BATCH = 2**31
"""Batches beyond this are not looked for [-]."""

KNEE_GRID = np.array(sorted({round(2.0 ** (n / 2)) for n in range(41)}), dtype=float)
"""Batches between which the knee is looked for [-]."""


@dataclass(frozen=True, slots=True, eq=False)
class Limits:
    """Limits of decode at one context."""

    ridge_point: float
    """Peak/bandwidth of the format most of the step's FLOPs run in [FLOP/byte]."""
    ridge_format: str
    saturation_intensity: float | None
    """Intensity as the batch grows without bound; None where nothing grows with it [FLOP/byte]."""
    crossover_batch: int | None
    """Smallest batch at which the arithmetic takes as long as the traffic [-]."""
    crossover_reason: str
    weights_equal_kv_batch: int | None
    """Smallest batch whose cache and state traffic equals the weights' [-]."""
    knee_batch: int
    """Last batch at which one more sequence adds half of what the first one added [-]."""


def saturation_intensity(step: Step, context: float, queries: float = 1.0) -> float:
    """Return the limit of FLOPs/bytes as the batch goes to infinity [FLOP/byte], in closed form.

    Per sequence, ΣFLOPs over Σ(cache and state bytes), the cache as often as it is replicated:
    (2P + 4·L·h·layers)/(L·KV bytes per token) for a dense model. Infinite without cache and state.
    `queries` is the tokens a sequence puts through a step [-], here as below.
    """
    law = step.laws(0)
    attended = np.minimum(context, law.window)
    flops = (law.flops_per_token + law.flops_per_cached * attended) * queries
    copies = step.sharding.tp / np.minimum(step.sharding.tp, law.cache_ways)
    moved = (law.bytes_per_sequence + law.bytes_per_cached * attended) * copies
    total = moved.sum()
    return float(flops.sum() / total) if total > 0 else math.inf


@lru_cache(maxsize=256)
def limits(step: Step, machine: Machine, context: float, queries: float = 1.0) -> Limits:
    """Return the limits of a step on a machine at `context` cached tokens.

    Kept per deployment and context: every plan states them, whatever batch it asks about.
    """
    main = int(_by_format(step, machine, context).argmax())
    ridge_format = machine.formats[main]
    ridge = machine.accelerator.ridge_point(ridge_format)
    saturation = saturation_intensity(step, context, queries)
    crossover, reason = crossover_batch(step, machine, context, ridge, saturation, queries)
    return Limits(
        ridge_point=ridge,
        ridge_format=ridge_format,
        saturation_intensity=saturation if math.isfinite(saturation) else None,
        crossover_batch=crossover,
        crossover_reason=reason,
        weights_equal_kv_batch=weights_equal_kv_batch(step, context, queries),
        knee_batch=knee_batch(step, machine, context, queries),
    )


def _by_format(step: Step, machine: Machine, context: float) -> Array:
    """FLOPs a sequence does in the format of each kernel, summed over kernels of that format."""
    law = step.laws(0)
    flops = law.flops_per_token + law.flops_per_cached * np.minimum(context, law.window)
    formats = np.array(machine.formats)
    return np.array([flops[formats == name].sum() for name in machine.formats])


def crossover_batch(
    step: Step,
    machine: Machine,
    context: float,
    ridge: float,
    saturation: float,
    queries: float = 1.0,
) -> tuple[int | None, str]:
    """Return the smallest batch whose total compute time reaches its total memory time, and why.

    None where compute never catches up. Compute time is proportional to the batch; memory time is
    the weights' (concave in the batch where experts are routed) plus a share proportional to it.
    """

    def excess(batch: Array) -> Array:
        roof = machine.roof(1, pure=True)
        work = step.work(batch, context, queries).rank
        return np.asarray(np.sum(roof.compute_time(work) - roof.memory_time(work), axis=0))

    found = _first_batch(excess)
    if found is None:
        why = f"intensity saturates at {saturation:.3g} FLOP/byte, the ridge is {ridge:.3g}"
        if saturation >= ridge:
            why += ", but part of the arithmetic runs in a faster format"
        return None, f"memory-bound at every batch: {why}"
    if found == 1:
        return 1, "compute-bound from the first sequence on"
    return found, f"compute-bound from batch {found} on"


def weights_equal_kv_batch(step: Step, context: float, queries: float = 1.0) -> int | None:
    """Return the smallest batch that moves as many bytes of cache and state as of weights."""

    def excess(batch: Array) -> Array:
        work = step.work(batch, context, queries)
        return np.asarray((work.cache_bytes - work.weight_bytes).sum(axis=0))

    return _first_batch(excess)


def _first_batch(excess: Callable[[Array], Array]) -> int | None:
    """Return the smallest whole batch at which `excess` is not negative, or None.

    `excess` is convex in the batch and negative at zero, so it has one sign change at most.
    """
    grid: Array = 2.0 ** np.arange(LARGEST_BATCH.bit_length(), dtype=np.float64)
    values = excess(grid)
    if values[-1] < 0:
        return None
    first = int((values >= 0).argmax())
    if first == 0:
        return 1
    root = _root(excess, grid[first - 1 : first + 1], values[first - 1 : first + 1])
    nearest = round(root)
    return nearest if math.isclose(root, nearest, rel_tol=1e-9) else math.ceil(root)


def _root(excess: Callable[[Array], Array], ends: Array, values: Array) -> float:
    """Find the root between two batches: by the chord where that is exact, else with SciPy."""
    chord = ends[0] - values[0] * (ends[1] - ends[0]) / (values[1] - values[0])
    if abs(excess(np.array([chord]))[0]) <= 1e-12 * (values[1] - values[0]):
        return float(chord)
    from scipy.optimize import brentq  # slow to import, and dense models never need it

    def at(batch: float) -> float:
        return float(excess(np.array([batch]))[0])

    return float(brentq(at, float(ends[0]), float(ends[1]), xtol=1e-3, rtol=1e-9))


def knee_batch(step: Step, machine: Machine, context: float, queries: float = 1.0) -> int:
    """Return the last batch at which one more sequence still adds half of the first one's rate.

    The first one's rate is that of a step that reads all weights, so that experts not yet hit do
    not count as an advantage of batch 1. Uses the machine's own (calibrated) times.
    """

    def gain(batch: Array) -> Array:
        pair = np.stack([batch, batch + 1])
        rate = pair / machine.time(step.work(pair, context, queries)).total_s
        return np.asarray(rate[1] - rate[0])

    half = 0.5 / float(machine.time(step.unrouted.work(1.0, context, queries)).total_s)
    tried = KNEE_GRID
    while True:
        worth = np.flatnonzero(gain(tried) >= half)
        last = int(worth[-1]) if len(worth) else 0
        low, high = tried[last], tried[min(last + 1, len(tried) - 1)]
        if high - low <= 1:
            return int(low)
        tried = np.round(np.linspace(low, high, 34))
