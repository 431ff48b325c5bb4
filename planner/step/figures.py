"""Figures of a step on its two axes, and of the points where they meet."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from planner.roofline import Array
from planner.step.coefficients import BatchItems, ContextItems
from planner.step.timing import Efficiency, Features, item_time


@dataclass(frozen=True, slots=True, eq=False)
class Bounds:
    """Calibrated time by what it is bound by, each of the shape of the axis [s]."""

    memory_s: Array
    compute_s: Array
    launch_s: Array
    communication_s: Array

    def columns(self) -> tuple[Array, Array, Array, Array]:
        """Return the times in the order of `timing.BOUNDS`."""
        return self.memory_s, self.compute_s, self.launch_s, self.communication_s


class _Axis(ABC):
    """What both axes share: items' times from their features; arrays of (item, flat point)."""

    efficiency: Efficiency
    shape: tuple[int, ...]

    @property
    @abstractmethod
    def features(self) -> Features:
        """Features of the items, (item, flat point)."""

    def _summed(self, values: Array) -> Array:
        return np.asarray(values.sum(axis=0)).reshape(self.shape)

    @cached_property
    def item_s(self) -> Array:
        """Calibrated time of every item, shape (item, flat point) [s]."""
        return item_time(self.features, self.efficiency) * self.efficiency.scale

    @cached_property
    def time_s(self) -> Array:
        """Calibrated time of all items [s]."""
        return self._summed(self.item_s)

    @cached_property
    def launch_s(self) -> Array:
        """Floors of launches and visits in `item_s`, shape (item, flat point) [s]."""
        f, e = self.features, self.efficiency
        return np.asarray((f.launches * e.launch_s + f.visits * e.visit_s) * e.scale)

    @cached_property
    def memory_led(self) -> NDArray[np.bool_]:
        """Whether an item's traffic takes longer than its arithmetic, (item, flat point)."""
        f, e = self.features, self.efficiency
        return np.asarray(f.memory_s / e.memory >= f.compute_s / e.compute)


@dataclass(frozen=True, eq=False)
class BatchFigures(_Axis):
    """What of a step depends on the batch alone; arrays of `shape` unless said otherwise."""

    terms: BatchItems
    efficiency: Efficiency
    cached_launch_s: float
    """Floors of the launches of context items, which a step pays whatever its sequences [s]."""
    shape: tuple[int, ...]
    batch: Array
    """Sequences of the replica [-]."""
    queries: Array
    """Tokens each puts through the step [-]."""
    microbatches: Array
    """Microbatches of a pipeline [-]."""
    sequences: Array
    """Sequences on a rank, s [-]."""
    tokens: Array
    """Tokens of a microbatch on one attention-DP rank, shape (flat point,) [token]."""
    stage_tokens: Array
    """Tokens of a microbatch on all ranks of a stage, shape (flat point,) [token]."""
    experts_hit: Array
    """Distinct experts hit where routing is uniform, shape (routed kernel, flat point) [-]."""
    experts_hit_skewed: Array
    """The same as tokens really choose, which is what calibrated times rest on [-]."""

    @cached_property
    def pure(self) -> Features:
        """Features of the items where experts are chosen uniformly."""
        return self._features(self.experts_hit)

    @cached_property
    def features(self) -> Features:
        """Features of the items as calibration sees them."""
        same = self.experts_hit_skewed is self.experts_hit
        return self.pure if same else self._features(self.experts_hit_skewed)

    def _features(self, hit: Array) -> Features:
        terms = self.terms
        compute = terms.compute_per_token_s[:, None] * self.tokens
        memory = terms.memory_s[:, None] + terms.memory_per_token_s[:, None] * self.tokens
        visits = np.broadcast_to(terms.visits[:, None], compute.shape)
        routed = terms.experts
        if routed or terms.collectives:
            compute += terms.compute_per_stage_token_s[:, None] * self.stage_tokens
            memory += terms.memory_per_stage_token_s[:, None] * self.stage_tokens
        if routed:
            visits = visits.copy()
            memory[routed.rows] = routed.weights_s[:, None] * (hit / routed.experts[:, None])
            visits[routed.rows] = routed.visits_per_expert[:, None] * hit
        return Features(compute, memory, terms.launches[:, None], visits)

    @cached_property
    def time_s(self) -> Array:
        """Calibrated time of the batch items and of all launches [s]."""
        return self._summed(self.item_s) + self.cached_launch_s

    @cached_property
    def _kernels(self) -> int:
        return len(self.terms.kernels)

    @cached_property
    def roofline_s(self) -> Array:
        """Datasheet roofline time of the kernels [s]."""
        n = self._kernels
        return self._summed(np.maximum(self.pure.compute_s[:n], self.pure.memory_s[:n]))

    @cached_property
    def compute_s(self) -> Array:
        """Datasheet time of the kernels' arithmetic [s]."""
        return self._summed(self.pure.compute_s[: self._kernels])

    @cached_property
    def memory_s(self) -> Array:
        """Datasheet time of the kernels' traffic [s]."""
        return self._summed(self.pure.memory_s[: self._kernels])

    @cached_property
    def kernel_launch_s(self) -> Array:
        """Floors of all kernels' launches and visits, context items' launches included [s]."""
        return self._summed(self.launch_s[: self._kernels]) + self.cached_launch_s

    @cached_property
    def collective_s(self) -> Array:
        """Calibrated time of the collectives [s]."""
        n = self._kernels
        return self._summed(self.item_s[n : n + self.terms.collectives])

    @cached_property
    def bounds(self) -> Bounds:
        """Calibrated time by bound."""
        n, sent = self._kernels, self._kernels + self.terms.collectives
        body = self.item_s[:n] - self.launch_s[:n]
        led = np.where(self.memory_led[:n], body, 0.0)
        return Bounds(
            memory_s=self._summed(led),
            compute_s=self._summed(body - led),
            launch_s=self.kernel_launch_s + self._summed(self.item_s[sent:]),
            communication_s=self.collective_s,
        )

    @cached_property
    def flops(self) -> Array:
        """FLOPs of the batch items over the replica [FLOP]."""
        return np.asarray(self.terms.flops_per_token * self.batch * self.queries)

    @cached_property
    def weight_bytes(self) -> Array:
        """Weights read over all ranks and microbatches [byte]."""
        terms = self.terms
        read = np.full(self.shape, terms.weight_bytes)
        if terms.experts:
            share = self.experts_hit / terms.experts.experts[:, None]
            read = read + self._summed(terms.experts.weight_bytes[:, None] * share)
        return np.asarray(read * self.microbatches)


@dataclass(frozen=True, eq=False)
class ContextFigures(_Axis):
    """What one sequence on a rank adds to a step; arrays of `shape` unless said otherwise."""

    terms: ContextItems
    efficiency: Efficiency
    shape: tuple[int, ...]
    attended: Array
    """Cached tokens a query attends to, shape (context item, flat point) [token]."""
    queries: Array

    @cached_property
    def features(self) -> Features:
        """Features of one sequence; launches are a step's and are not summed here."""
        terms, q = self.terms, self.queries.ravel()
        compute = terms.compute_per_token_s[:, None] + (
            terms.compute_per_cached_s[:, None] * self.attended
        )
        memory = terms.memory_s[:, None] + terms.memory_per_cached_s[:, None] * self.attended
        visits = np.broadcast_to(terms.visits[:, None], memory.shape)
        return Features(compute * q, memory, terms.launches[:, None], visits)

    @cached_property
    def launch_s(self) -> Array:
        """Cost of a sequence's visits, shape (context item, flat point) [s]."""
        e = self.efficiency
        return np.asarray(self.features.visits * e.visit_s * e.scale)

    @cached_property
    def item_s(self) -> Array:
        """Calibrated time of a sequence without launches, (context item, flat point) [s]."""
        e, f = self.efficiency, self.features
        none = np.zeros((len(self.attended), 1))
        return item_time(Features(f.compute_s, f.memory_s, none, f.visits), e) * e.scale

    @cached_property
    def roofline_s(self) -> Array:
        """Datasheet roofline time of a sequence [s]."""
        return self._summed(np.maximum(self.features.compute_s, self.features.memory_s))

    @cached_property
    def compute_s(self) -> Array:
        """Datasheet time of a sequence's arithmetic [s]."""
        return self._summed(self.features.compute_s)

    @cached_property
    def memory_s(self) -> Array:
        """Datasheet time of a sequence's traffic [s]."""
        return self._summed(self.features.memory_s)

    @cached_property
    def bounds(self) -> Bounds:
        """Calibrated time by bound."""
        body = self.item_s - self.launch_s
        led = np.where(self.memory_led, body, 0.0)
        launch = self._summed(self.launch_s)
        return Bounds(self._summed(led), self._summed(body - led), launch, np.zeros_like(launch))

    @cached_property
    def flops(self) -> Array:
        """FLOPs of one sequence over the replica [FLOP]."""
        terms = self.terms
        each = terms.flops_per_token.sum() + self._summed(
            terms.flops_per_cached[:, None] * self.attended
        )
        return np.asarray(each * self.queries)

    @cached_property
    def cache_bytes(self) -> Array:
        """Cache and state one sequence moves over all ranks, copies included [byte]."""
        terms = self.terms
        return np.asarray(
            terms.bytes_per_sequence.sum()
            + self._summed(terms.bytes_per_cached[:, None] * self.attended)
        )


@dataclass(frozen=True, eq=False)
class StepPoints:
    """A step wherever a batch meets a context: x(batch) + s(batch)·y(context), by broadcasting."""

    of_batch: BatchFigures
    of_context: ContextFigures

    def _meet(self, of_batch: Array, of_context: Array) -> Array:
        return np.asarray(of_batch + self.of_batch.sequences * of_context)

    @cached_property
    def roofline_s(self) -> Array:
        """Datasheet roofline time, without launches and collectives [s]."""
        return self._meet(self.of_batch.roofline_s, self.of_context.roofline_s)

    @cached_property
    def total_s(self) -> Array:
        """Calibrated time of the step, never below the roofline [s]."""
        calibrated = self._meet(self.of_batch.time_s, self.of_context.time_s)
        return np.maximum(calibrated, self.roofline_s)

    @cached_property
    def bounds(self) -> Bounds:
        """Calibrated time by bound [s]."""
        pairs = zip(self.of_batch.bounds.columns(), self.of_context.bounds.columns(), strict=True)
        return Bounds(*(self._meet(x, y) for x, y in pairs))

    @cached_property
    def kernel_launch_s(self) -> Array:
        """Floors of all kernels' launches and visits [s]."""
        return self._meet(self.of_batch.kernel_launch_s, self.of_context.bounds.launch_s)

    @cached_property
    def bound_codes(self) -> NDArray[np.int8]:
        """What most of the step's time goes to, as positions in `timing.BOUNDS`."""
        best = self.bounds.memory_s
        codes = np.zeros(best.shape, np.int8)
        for code, seconds in enumerate(self.bounds.columns()[1:], start=1):
            codes = np.where(seconds > best, np.int8(code), codes)
            best = np.maximum(best, seconds)
        return np.asarray(codes)

    @cached_property
    def flops(self) -> Array:
        """FLOPs over the replica; what replicated ranks repeat counts once [FLOP]."""
        return np.asarray(self.of_batch.flops + self.of_batch.batch * self.of_context.flops)

    @cached_property
    def cache_bytes(self) -> Array:
        """Cache and state moved over the replica, copies on replicating ranks included [byte]."""
        return np.asarray(self.of_batch.batch * self.of_context.cache_bytes)

    @cached_property
    def bytes(self) -> Array:
        """Bytes moved over the replica [byte]."""
        return self.of_batch.weight_bytes + self.cache_bytes

    @cached_property
    def intensity(self) -> Array:
        """Arithmetic intensity of the whole step [FLOP/byte]."""
        return np.asarray(np.divide(self.flops, self.bytes))
