"""Where decode goes as the batch grows: saturation, crossover, weights-equal-KV and knee."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from planner.roofline import Array
from planner.step.evaluator import Step, context_axis
from planner.step.figures import BatchFigures, ContextFigures, total_time

LARGEST_BATCH = 2**31
"""Batches beyond this are not looked for [-]."""

POWERS: Array = 2.0 ** np.arange(LARGEST_BATCH.bit_length(), dtype=np.float64)
"""Batches between which crossover and weights-equal-KV are bracketed [-]."""

KNEE_GRID = np.array(sorted({round(2.0 ** (n / 2)) for n in range(41)}), dtype=float)
"""Batches between which the knee is bracketed [-]."""

TRIED = 34
"""Batches of one round of a bracketed search [-]."""

ROUNDING = 1e-9
"""Share by which a whole batch may fall short of a limit and still count as reaching it [-]."""


@dataclass(frozen=True, slots=True, eq=False)
class DecodeLimits:
    """DecodeLimits of decode at one context."""

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


@lru_cache(maxsize=4096)
def limits(step: Step, context: float, queries: float = 1.0) -> DecodeLimits:
    """Return the limits of a step at `context` cached tokens.

    `queries` is the tokens a sequence puts through the step [-]. Kept per step and context: every
    plan states them, whatever batch it is about.
    """
    search = _search(step, queries)
    of_context = context_axis(step, (context,), queries)
    ridge_format = search.main_format(context)
    ridge = step.accelerator.ridge_point(ridge_format)
    saturation = saturation_intensity(step, context, queries)
    crossover = search.crossover_batch(of_context)
    return DecodeLimits(
        ridge_point=ridge,
        ridge_format=ridge_format,
        saturation_intensity=saturation if math.isfinite(saturation) else None,
        crossover_batch=crossover,
        crossover_reason=_reason(crossover, saturation, ridge),
        weights_equal_kv_batch=search.weights_equal_kv_batch(of_context),
        knee_batch=search.knee_batch(of_context),
    )


def saturation_intensity(step: Step, context: float, queries: float = 1.0) -> float:
    """Return the limit of FLOPs/bytes as the batch goes to infinity [FLOP/byte], in closed form.

    Per sequence, ΣFLOPs over Σ(cache and state bytes), the cache as often as it is replicated:
    (2P + 4·L·h·layers)/(L·KV bytes per token) for a dense model. Infinite without cache and state.
    `queries` is the tokens a sequence puts through a step [-].
    """
    of_context = context_axis(step, (context,), queries)
    flops = step.batch_items.flops_per_token * queries + of_context.flops.item()
    moved = of_context.cache_bytes.item()
    return flops / moved if moved > 0 else math.inf


def _reason(crossover: int | None, saturation: float, ridge: float) -> str:
    if crossover is None:
        why = f"intensity saturates at {saturation:.3g} FLOP/byte, the ridge is {ridge:.3g}"
        if saturation >= ridge:
            why += ", but part of the arithmetic runs in a faster format"
        return f"memory-bound at every batch: {why}"
    if crossover == 1:
        return "compute-bound from the first sequence on"
    return f"compute-bound from batch {crossover} on"


@lru_cache(maxsize=1024)
def _search(step: Step, queries: float) -> BatchSearch:
    return BatchSearch(step, queries)


Balance = Callable[[BatchFigures], tuple[Array, Array]]
"""What grows with the batch, and what it has to reach."""


@dataclass(frozen=True, eq=False)
class BatchSearch:
    """Searches over whole batches of a step, whose brackets are evaluated once for all contexts."""

    step: Step
    queries: float

    @cached_property
    def powers(self) -> BatchFigures:
        """The step at powers of two."""
        return self.step.of_batch(POWERS, self.queries)

    @cached_property
    def whole_weights(self) -> TimeAxis:
        """The step with one sequence that reads all weights, experts not yet hit included."""
        return TimeAxis.of(self.step.unrouted().of_batch(1.0, self.queries))

    @cached_property
    def _flops(self) -> tuple[Array, Array, Array]:
        """FLOPs a token, FLOPs a cached token, and window, of every kernel."""
        kernels = self.step.kernels
        rows = [(k.flops_per_token, k.flops_per_cached, k.window) for k in kernels]
        per_token, per_cached, window = np.array(rows, dtype=float).T
        return per_token, per_cached, window

    def main_format(self, context: float) -> str:
        """Return the format most of a sequence's FLOPs run in at `context` cached tokens."""
        per_token, per_cached, window = self._flops
        flops = (per_token + per_cached * np.minimum(context, window)).tolist()
        totals: dict[str, float] = {}
        for name, value in zip(self.step.formats, flops, strict=True):
            totals[name] = totals.get(name, 0.0) + value
        return max(totals, key=lambda name: totals[name])

    def crossover_batch(self, of_context: ContextFigures) -> int | None:
        """Return the smallest batch at which arithmetic takes as long as traffic, or None.

        Compute time is proportional to the batch; memory time is the weights' (concave in the batch
        where experts are routed) plus a share proportional to it.
        """
        compute, memory = of_context.compute_s, of_context.memory_s

        def balance(figures: BatchFigures) -> tuple[Array, Array]:
            s = figures.sequences
            return figures.compute_s + s * compute - s * memory, figures.memory_s

        return self._first_batch(balance)

    def weights_equal_kv_batch(self, of_context: ContextFigures) -> int | None:
        """Return the smallest batch that moves as many bytes of cache and state as of weights."""

        def balance(figures: BatchFigures) -> tuple[Array, Array]:
            return figures.batch * of_context.cache_bytes, figures.weight_bytes

        return self._first_batch(balance)

    def _first_batch(self, balance: Balance) -> int | None:
        """Return the smallest whole batch at which the first of `balance` reaches the second.

        Their difference is convex in the batch and negative at zero, so it has one sign change at
        most: it is bracketed between powers of two, then between whole batches.
        """
        grown, wanted = balance(self.powers)
        if grown[-1] < wanted[-1]:
            return None
        above = int((grown >= wanted).argmax())
        if above == 0:
            return 1
        low, high = POWERS[above - 1], POWERS[above]
        excess = (grown - wanted)[above - 1 : above + 1]
        chord = low - excess[0] * (high - low) / (excess[1] - excess[0])
        guess = min(max(math.ceil(chord * (1 - ROUNDING)), low + 1), high)
        tried = np.array([guess - 1, guess])
        while high - low > 1:
            grown, wanted = balance(self.step.of_batch(tried, self.queries))
            reached = grown >= wanted * (1 - ROUNDING)
            if reached.any():
                high = min(high, tried[reached.argmax()])
            if not reached.all():
                low = max(low, tried[~reached][-1])
            tried = np.linspace(low, high, TRIED).round()
        return int(high)

    def knee_batch(self, of_context: ContextFigures) -> int:
        """Return the last batch at which one more sequence adds half of the first one's rate.

        The first one's rate is that of a step that reads all weights, so that experts not yet hit
        do not count as an advantage of batch 1. Rests on the step's calibrated times.
        """
        half = 0.5 / total_time(self.whole_weights, of_context).item()
        pairs = knee_pairs(self, None)
        while True:
            rate = pairs.batch / total_time(pairs, of_context)
            worth = (rate[1] - rate[0] >= half).nonzero()[0]
            last = int(worth[-1]) if len(worth) else 0
            tried = pairs.batch[0]
            low, high = float(tried[last]), float(tried[min(last + 1, len(tried) - 1)])
            if high - low <= 1:
                return int(low)
            pairs = knee_pairs(self, (low, high))


@dataclass(frozen=True, slots=True, eq=False)
class TimeAxis:
    """Times of a step on its batch axis, all that a search over calibrated times needs."""

    batch: Array
    sequences: Array
    time_s: Array
    roofline_s: Array

    @classmethod
    def of(cls, figures: BatchFigures) -> TimeAxis:
        """Return the times of an evaluated axis."""
        return cls(figures.batch, figures.sequences, figures.time_s, figures.roofline_s)


@lru_cache(maxsize=4096)
def knee_pairs(search: BatchSearch, bracket: tuple[float, float] | None) -> TimeAxis:
    """Return the step at batches within a bracket, and with one more sequence each, (2, batch).

    Without a bracket at those of `KNEE_GRID`. Kept, as many contexts have their knee in one.
    """
    tried = np.linspace(*bracket, TRIED).round() if bracket else KNEE_GRID
    return TimeAxis.of(search.step.of_batch(np.stack([tried, tried + 1]), search.queries))
