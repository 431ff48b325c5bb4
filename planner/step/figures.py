"""Figures of a step on its two axes, and of the points where they meet."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from planner.roofline import Array, Numeric, p_norm
from planner.step.buffers import Into, fresh
from planner.step.coefficients import BatchItems, ContextItems
from planner.step.timing import BOUNDS, Efficiency, Features

MEMORY, COMPUTE, LAUNCH, COMMUNICATION = range(len(BOUNDS))


class _Axis(ABC):
    """What both axes share: the times of items; arrays of shape (item, flat point) unless said."""

    efficiency: Efficiency
    shape: tuple[int, ...]

    @property
    @abstractmethod
    def features(self) -> Features:
        """What the items ask of the datasheet, as calibration sees them."""

    @property
    @abstractmethod
    def floor_s(self) -> Array:
        """Floors of launches and visits, before the efficiency's scale [s]."""

    def _summed(self, values: Array) -> Array:
        return np.asarray(np.add.reduce(values, axis=0)).reshape(self.shape)

    @cached_property
    def reached_compute_s(self) -> Array:
        """Time of the arithmetic alone at the rate reached [s]."""
        return np.asarray(self.features.compute_s / self.efficiency.compute)

    @cached_property
    def reached_memory_s(self) -> Array:
        """Time of the traffic alone at the bandwidth reached [s]."""
        return np.asarray(self.features.memory_s / self.efficiency.memory)

    @cached_property
    def body_s(self) -> Array:
        """Time of arithmetic and traffic together, without floors and scale [s]."""
        sharpness = self.efficiency.sharpness
        return np.asarray(p_norm(self.reached_compute_s, self.reached_memory_s, sharpness))

    @cached_property
    def item_s(self) -> Array:
        """Calibrated time of every item [s]."""
        return (self.body_s + self.floor_s) * self.efficiency.scale

    @cached_property
    def time_s(self) -> Array:
        """Calibrated time of all items, of the axis's shape [s]."""
        return self._summed(self.item_s)

    def _led(self, kernels: int) -> tuple[Array, Array]:
        """Bodies of the first `kernels` items that traffic leads, and of those arithmetic does."""
        body, n = self.body_s[:kernels], kernels
        led = np.where(self.reached_memory_s[:n] >= self.reached_compute_s[:n], body, 0.0)
        of_memory, all_of = np.add.reduce(led, axis=0), np.add.reduce(body, axis=0)
        return of_memory, all_of - of_memory


@dataclass(frozen=True, eq=False)
class BatchFigures(_Axis):
    """What of a step depends on the batch alone; arrays of `shape` unless said otherwise."""

    terms: BatchItems
    efficiency: Efficiency
    fixed_floor_s: Array
    """Floors of the items but for experts hit, shape (item, 1) [s]."""
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
    """The same as tokens really choose, on the busiest rank times the ranks that experts are spread
    over, which is what calibrated times rest on [-]."""
    busiest: Array
    """Tokens of the busiest of these ranks over those of all on average, shape (1 or routed kernel,
    1 or flat point) [-]."""

    @cached_property
    def pure(self) -> Features:
        """Features of the items where experts are chosen uniformly."""
        return self._features(self.experts_hit)

    @cached_property
    def features(self) -> Features:
        """Features of the items as calibration sees them."""
        same = self.experts_hit_skewed is self.experts_hit
        return self.pure if same else self._features(self.experts_hit_skewed, self.busiest)

    def _features(self, hit: Array, busiest: Array | None = None) -> Features:
        terms, visits = self.terms, self.terms.visits[:, None]
        compute = terms.compute_per_token_s[:, None] * self.tokens
        memory = terms.memory_s[:, None] + terms.memory_per_token_s[:, None] * self.tokens
        if terms.stage:
            compute += terms.compute_per_stage_token_s[:, None] * self.stage_tokens
            memory += terms.memory_per_stage_token_s[:, None] * self.stage_tokens
        reduced = terms.reduced.rows
        if len(reduced):
            memory[reduced] = terms.reduced.memory_s(memory[reduced], self.tokens)
        routed = terms.experts
        if routed:
            visits = np.repeat(visits, len(self.tokens), axis=1)
            memory[routed.rows] = routed.weights_s[:, None] * (hit / routed.experts[:, None])
            visits[routed.rows] = routed.visits_per_expert[:, None] * hit
            if busiest is not None:
                compute[routed.rows] *= busiest
        return Features(compute, memory, terms.launches[:, None], visits)

    @cached_property
    def floor_s(self) -> Array:
        """Floors of launches and visits, before the efficiency's scale [s]."""
        routed = self.terms.experts
        if not routed:
            return self.fixed_floor_s
        floor = np.repeat(self.fixed_floor_s, len(self.tokens), axis=1)
        cost = routed.visits_per_expert[:, None] * self.efficiency.visit_s[routed.rows]
        floor[routed.rows] += cost * self.experts_hit_skewed
        return floor

    @cached_property
    def time_s(self) -> Array:
        """Calibrated time of the batch items and of all launches [s]."""
        return self._summed(self.item_s) + self.cached_launch_s

    @property
    def kernels(self) -> int:
        """Kernels among the items, which stand first [-]."""
        return len(self.terms.kernels)

    @cached_property
    def roofline_s(self) -> Array:
        """Datasheet roofline time of the kernels [s]."""
        n = self.kernels
        return self._summed(np.maximum(self.pure.compute_s[:n], self.pure.memory_s[:n]))

    @cached_property
    def compute_s(self) -> Array:
        """Datasheet time of the kernels' arithmetic [s]."""
        return self._summed(self.pure.compute_s[: self.kernels])

    @cached_property
    def memory_s(self) -> Array:
        """Datasheet time of the kernels' traffic [s]."""
        return self._summed(self.pure.memory_s[: self.kernels])

    @cached_property
    def kernel_launch_s(self) -> Array:
        """Floors of all kernels' launches and visits, context items' launches included [s]."""
        floors = np.add.reduce(self.floor_s[: self.kernels], axis=0) * self.efficiency.scale
        return np.asarray(floors + self.cached_launch_s)

    @cached_property
    def bounds_s(self) -> Array:
        """Calibrated time by bound, shape (bound, *shape) [s]."""
        n, sent = self.kernels, self.kernels + self.terms.collectives
        bounds = np.empty((len(BOUNDS), len(self.tokens)))
        bounds[MEMORY], bounds[COMPUTE] = self._led(n)
        bounds[: COMPUTE + 1] *= self.efficiency.scale
        bounds[LAUNCH] = np.add.reduce(self.item_s[sent:], axis=0) + self.kernel_launch_s
        bounds[COMMUNICATION] = np.add.reduce(self.item_s[n:sent], axis=0)
        return bounds.reshape((len(BOUNDS), *self.shape))

    @cached_property
    def flops(self) -> Array:
        """FLOPs of the batch items over the replica [FLOP]."""
        return np.asarray(self.terms.flops_per_token * self.batch * self.queries)

    @cached_property
    def weight_bytes(self) -> Array:
        """Weights read over all ranks and microbatches [byte]."""
        experts = self.terms.experts
        if not experts:
            return np.asarray(self.terms.weight_bytes * self.microbatches)
        share = experts.weight_bytes[:, None] * (self.experts_hit / experts.experts[:, None])
        return np.asarray((self.terms.weight_bytes + self._summed(share)) * self.microbatches)


@dataclass(frozen=True, eq=False)
class ContextFigures(_Axis):
    """What one sequence on a rank adds to a step; arrays of `shape` unless said otherwise.

    Launches of context items are a step's whatever its sequences: they are counted with the batch.
    """

    terms: ContextItems
    efficiency: Efficiency
    fixed_floor_s: Array
    """Cost of a sequence's visits, before the efficiency's scale, shape (item, 1) [s]."""
    shape: tuple[int, ...]
    attended: Array
    """Cached tokens a query attends to, shape (item, flat point) [token]."""
    moved: Array
    """Cached tokens that are read or written, shape (item, flat point) [token]."""
    queries: Array
    """Tokens the sequence puts through the step, shape (flat point,) or none [-]."""

    @property
    def floor_s(self) -> Array:
        """Floors of a sequence's visits, before the efficiency's scale, shape (item, 1) [s]."""
        return self.fixed_floor_s

    @cached_property
    def features(self) -> Features:
        """Features of one sequence."""
        terms = self.terms
        compute = terms.compute_per_token_s[:, None] + (
            terms.compute_per_cached_s[:, None] * self.attended
        )
        memory = terms.memory_s[:, None] + terms.memory_per_cached_s[:, None] * self.moved
        return Features(
            compute * self.queries, memory, terms.launches[:, None], terms.visits[:, None]
        )

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
    def visit_s(self) -> float:
        """Cost of a sequence's visits [s]."""
        return float(self.floor_s.sum() * self.efficiency.scale)

    @cached_property
    def bounds_s(self) -> Array:
        """Calibrated time by bound, shape (bound, *shape) [s]."""
        bounds = np.zeros((len(BOUNDS), self.attended.shape[1]))
        bounds[MEMORY], bounds[COMPUTE] = self._led(len(self.floor_s))
        bounds[: COMPUTE + 1] *= self.efficiency.scale
        bounds[LAUNCH] = self.visit_s
        return bounds.reshape((len(BOUNDS), *self.shape))

    @cached_property
    def flops(self) -> Array:
        """FLOPs of one sequence over the replica [FLOP]."""
        each = self.terms.flops_per_token.sum() + self.terms.flops_per_cached @ self.attended
        return np.asarray(each * self.queries).reshape(self.shape)

    @cached_property
    def cache_bytes(self) -> Array:
        """Cache and state one sequence moves over all ranks, copies included [byte]."""
        moved = self.terms.bytes_per_sequence.sum() + self.terms.bytes_per_cached @ self.moved
        return np.asarray(moved).reshape(self.shape)


class TimedBatch(Protocol):
    """What of a batch axis the time of a step rests on; `BatchFigures` has it."""

    @property
    def sequences(self) -> Array:
        """Sequences on a rank, s [-]."""

    @property
    def time_s(self) -> Array:
        """Calibrated time of what depends on the batch alone [s]."""

    @property
    def roofline_s(self) -> Array:
        """Datasheet roofline time of the same [s]."""


def total_time(of_batch: TimedBatch, of_context: ContextFigures) -> Array:
    """Return the calibrated time of a step, never below the roofline [s].

    max(x + s·y, the same of the roofline), by broadcasting.
    """
    s = of_batch.sequences
    calibrated = meet(of_batch.time_s, s, of_context.time_s)
    return np.maximum(calibrated, meet(of_batch.roofline_s, s, of_context.roofline_s))


def meet(x: Array, s: Array, y: Numeric, out: Array | None = None) -> Array:
    """Return x + s·y, by broadcasting; into `out` where it is given."""
    return np.asarray(np.add(x, np.multiply(s, y, out=out), out=out))


@dataclass(frozen=True, eq=False)
class StepPoints:
    """A step wherever a batch meets a context: x(batch) + s(batch)·y(context), by broadcasting."""

    of_batch: BatchFigures
    of_context: ContextFigures
    into: Into = fresh
    """Where figures of every point are written."""

    def _meet(self, x: Array, y: Array, name: str) -> Array:
        return meet(x, self.of_batch.sequences, y, self.into(name, float))

    @cached_property
    def roofline_s(self) -> Array:
        """Datasheet roofline time, without launches and collectives [s]."""
        return self._meet(self.of_batch.roofline_s, self.of_context.roofline_s, "roofline_s")

    @cached_property
    def total_s(self) -> Array:
        """Calibrated time of the step, never below the roofline [s]."""
        calibrated = self._meet(self.of_batch.time_s, self.of_context.time_s, "total_s")
        return np.maximum(calibrated, self.roofline_s, out=self.into("total_s", float))

    @cached_property
    def bounds_s(self) -> Array:
        """Calibrated time by bound, shape (bound, *points) [s]."""
        of_context = self.of_context.bounds_s
        missing = max(len(self.of_batch.shape) - len(self.of_context.shape), 0)
        of_context = of_context.reshape((len(BOUNDS), *(1,) * missing, *self.of_context.shape))
        return meet(self.of_batch.bounds_s, self.of_batch.sequences, of_context)

    @cached_property
    def bound_codes(self) -> NDArray[np.int8]:
        """What most of the step's time goes to, as positions in `timing.BOUNDS`.

        The first of `bounds_s` that is largest. Launches and collectives depend on the batch alone.
        """
        x, y = self.of_batch.bounds_s, self.of_context.bounds_s
        memory = self._meet(x[MEMORY], y[MEMORY], "bound_memory_s")
        compute = self._meet(x[COMPUTE], y[COMPUTE], "bound_compute_s")
        launch = meet(x[LAUNCH], self.of_batch.sequences, self.of_context.visit_s)
        is_compute = np.greater(compute, memory, out=self.into("bound", np.bool_))
        codes = np.asarray(is_compute).view(np.int8)
        most = np.maximum(memory, compute, out=self.into("bound_memory_s", float))
        other = np.maximum(launch, x[COMMUNICATION])
        others = np.where(x[COMMUNICATION] > launch, COMMUNICATION, LAUNCH).astype(np.int8)
        beyond = np.greater(other, most, out=self.into("bound_other", np.bool_))
        np.copyto(codes, others, where=beyond)
        return codes

    @cached_property
    def kernel_launch_s(self) -> Array:
        """Floors of all kernels' launches and visits [s]."""
        of_batch = self.of_batch.kernel_launch_s.reshape(self.of_batch.shape)
        return of_batch + self.of_batch.sequences * self.of_context.visit_s

    @cached_property
    def flops(self) -> Array:
        """FLOPs over the replica; what replicated ranks repeat counts once [FLOP]."""
        each, out = self.of_context.flops, self.into("flops", float)
        return meet(self.of_batch.flops, self.of_batch.batch, each, out)

    @cached_property
    def cache_bytes(self) -> Array:
        """Cache and state moved over the replica, copies on replicating ranks included [byte]."""
        return np.asarray(self.of_batch.batch * self.of_context.cache_bytes)

    @cached_property
    def bytes(self) -> Array:
        """Bytes moved over the replica [byte]."""
        each, out = self.of_context.cache_bytes, self.into("bytes", float)
        return meet(self.of_batch.weight_bytes, self.of_batch.batch, each, out)

    @cached_property
    def intensity(self) -> Array:
        """Arithmetic intensity of the whole step [FLOP/byte]."""
        return np.asarray(np.divide(self.flops, self.bytes))
