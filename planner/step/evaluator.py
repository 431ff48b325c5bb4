"""One step of a deployment, evaluated: every figure of it is x(batch) + s(batch)·y(context).

Kernels that read no cache depend on the batch alone. Those that do are proportional to s, the
sequences on a rank, and depend on the cached length through min(context, window); the smooth
roofline (a^p + b^p)^(1/p) is homogeneous of degree one, so that their time is s·y exactly, at any
sharpness. Batch and context are evaluated on axes of their own and meet by broadcasting: a point is
a grid of one by one, and there is no other path.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

import numpy as np

from planner.hw import Accelerator
from planner.kernels import Kernel, expected_distinct_experts, skewed_distinct_experts
from planner.models.spec import Note
from planner.roofline import Array, Numeric
from planner.step.buffers import Into, fresh
from planner.step.busiest import experts_on_busiest, tokens_on_busiest
from planner.step.coefficients import (
    BatchItems,
    ContextItems,
    Layout,
    batch_items,
    context_items,
    kernel_table,
)
from planner.step.figures import BatchFigures, ContextFigures, StepPoints
from planner.step.parallel import Collective, Sharding
from planner.step.timing import Efficiency, Features, Item


@dataclass(frozen=True, eq=False)
class Step:
    """A decode or prompt step of one replica on an accelerator; compared by identity."""

    kernels: tuple[Kernel, ...]
    """Over all layers."""
    collectives: tuple[Collective, ...]
    sharding: Sharding
    accelerator: Accelerator
    formats: tuple[str, ...]
    """Arithmetic each kernel runs in."""
    peaks_flops_per_s: Array
    """Shape (kernel,)."""
    notes: tuple[Note, ...]
    """What is emulated."""
    batch_items: BatchItems
    context_items: ContextItems
    routing_spread: float
    """How unequally tokens choose experts, see `skewed_distinct_experts` [-]."""
    efficiency: Efficiency
    """What the items reach, in the order of `items`."""

    @property
    def items(self) -> tuple[Item, ...]:
        """What time is spent on: batch items, then context items."""
        return self.batch_items.items + self.context_items.items

    def reaching(self, efficiency: Efficiency) -> Step:
        """Return the same step reaching what `efficiency` says of each of `items`."""
        return replace(self, efficiency=efficiency)

    @cached_property
    def highest_peak_flops_per_s(self) -> float:
        """Peak of the fastest arithmetic that a kernel runs in [FLOP/s]."""
        return float(self.peaks_flops_per_s.max())

    @cached_property
    def of_items(self) -> tuple[Efficiency, Efficiency]:
        """What batch items and context items reach, arrays of shape (item, 1)."""
        n = len(self.batch_items.items)
        return self.efficiency.column(slice(None, n)), self.efficiency.column(slice(n, None))

    @cached_property
    def _floors_s(self) -> tuple[Array, Array]:
        """Floors of batch items but for experts hit, and of a sequence's visits, (item, 1) [s]."""
        of_batch, of_context = self.of_items
        alone, cached = self.batch_items, self.context_items
        return (
            alone.launches[:, None] * of_batch.launch_s + alone.visits[:, None] * of_batch.visit_s,
            cached.visits[:, None] * of_context.visit_s,
        )

    @cached_property
    def _cached_launch_s(self) -> float:
        e = self.of_items[1]
        return float(self.context_items.launches @ e.launch_s[:, 0]) * e.scale

    def unrouted(self) -> Step:
        """Return the same step reading all experts whatever the batch."""
        return replace(self, batch_items=self.batch_items.unrouted(self.sharding))

    def of_batch(self, batch: Numeric, queries: Numeric = 1.0) -> BatchFigures:
        """Return the figures that depend on the batch, of shape (*batch).

        `batch` is the sequences of the replica [-], `queries` the tokens each puts through the step
        [-]; they broadcast.
        """
        batch, queries = np.asarray(batch, float), np.asarray(queries, float)
        split = self.sharding
        micro = np.maximum(batch / split.pp, np.minimum(batch, 1.0)) if split.pp > 1 else batch
        sequences = micro
        if split.attention_dp > 1:
            sequences = np.maximum(micro / split.attention_dp, np.minimum(micro, 1.0))
        shape = np.broadcast_shapes(batch.shape, queries.shape)
        tokens = (sequences * queries).ravel()
        stage_tokens = tokens if micro is sequences else (micro * queries).ravel()
        hit = self._experts_hit(stage_tokens, 0.0)
        skewed = hit
        busiest = np.ones((1, 1))
        if self.routing_spread and self.batch_items.experts:
            skewed = self._experts_hit(stage_tokens, self.routing_spread)
            if split.ep > 1:
                skewed, busiest = self._on_busiest(skewed, stage_tokens)
        return BatchFigures(
            terms=self.batch_items,
            efficiency=self.of_items[0],
            fixed_floor_s=self._floors_s[0],
            cached_launch_s=self._cached_launch_s,
            shape=shape,
            batch=batch,
            queries=queries,
            microbatches=batch / micro if split.pp > 1 else np.ones(shape),
            sequences=sequences,
            tokens=tokens,
            stage_tokens=stage_tokens,
            experts_hit=hit,
            experts_hit_skewed=skewed,
            busiest=busiest,
        )

    def _on_busiest(self, hit: Array, tokens: Array) -> tuple[Array, Array]:
        """Experts hit and tokens of the rank that gets most, over a rank's share of them [-]."""
        routed, ranks = self.batch_items.experts, self.sharding.ep
        experts, top_k = routed.experts[:, None], routed.top_k[:, None]
        most = tokens_on_busiest(experts, top_k, tokens, ranks, self.routing_spread)
        return experts_on_busiest(experts, hit, ranks), most

    def _experts_hit(self, tokens: Array, spread: float) -> Array:
        """Distinct experts that `tokens` tokens hit, shape (routed kernel, point) [-]."""
        routed = self.batch_items.experts
        if not routed:
            return np.zeros((0, len(tokens)))
        experts, top_k = routed.experts[:, None], routed.top_k[:, None]
        if spread == 0:
            return np.asarray(expected_distinct_experts(experts, top_k, tokens))
        return np.asarray(skewed_distinct_experts(experts, top_k, tokens, spread))

    def of_context(self, context: Numeric, queries: Numeric = 1.0) -> ContextFigures:
        """Return the figures of one sequence with `context` cached tokens [token].

        `queries` is the tokens it puts through the step [-]; they broadcast.
        """
        context, queries = np.asarray(context, float), np.asarray(queries, float)
        shape = np.broadcast_shapes(context.shape, queries.shape)
        flat = (context if context.shape == shape else np.broadcast_to(context, shape)).ravel()
        if queries.ndim:
            queries = np.broadcast_to(queries, shape).ravel()
        attended = np.minimum(flat, self.context_items.window[:, None])
        return self._of_sequence(shape, attended, attended, queries)

    def of_prompt(self, isl: Numeric) -> ContextFigures:
        """Return the figures of one sequence that is all prompt, of `isl` tokens [token].

        A token attends to those before it and itself, and at most to the window w: on average
        m·(2n − m + 1)/(2n) for m = min(n, w), which is (n + 1)/2 without one. All n are cached.
        """
        isl = np.asarray(isl, float)
        flat = isl.ravel()
        reach = np.minimum(flat, self.context_items.window[:, None])
        attended = reach * (2 * flat - reach + 1) / (2 * flat)
        return self._of_sequence(isl.shape, attended, np.broadcast_to(flat, reach.shape), flat)

    def _of_sequence(
        self, shape: tuple[int, ...], attended: Array, moved: Array, queries: Array
    ) -> ContextFigures:
        return ContextFigures(
            terms=self.context_items,
            efficiency=self.of_items[1],
            fixed_floor_s=self._floors_s[1],
            shape=shape,
            attended=attended,
            moved=moved,
            queries=queries,
        )

    def on_grid(
        self, batches: tuple[float, ...], contexts: tuple[float, ...], queries: float = 1.0
    ) -> StepPoints:
        """Return every figure where each batch meets each context, shape (batch, context).

        The axes are kept, so that a grid with an axis seen before evaluates the other alone.
        """
        return StepPoints(batch_axis(self, batches, queries), context_axis(self, contexts, queries))

    def at(
        self, batch: Numeric, context: Numeric, queries: Numeric = 1.0, into: Into = fresh
    ) -> StepPoints:
        """Return every figure of the step where `batch` sequences meet `context` cached tokens.

        A grid is given as a column of batches and a row of contexts, and costs two axes. Figures
        of its points are written `into` arrays of their shape.
        """
        return StepPoints(self.of_batch(batch, queries), self.of_context(context, queries), into)

    def features(self, batch: Array, context: Array, queries: Numeric = 1.0) -> Features:
        """Return what `items` ask of the datasheet at points of equal shape, (item, point)."""
        of_batch, of_context = self.of_batch(batch, queries), self.of_context(context, queries)
        alone, cached = of_batch.features, of_context.features
        s = np.broadcast_to(of_batch.sequences, of_batch.shape).ravel()
        points = (len(s),)

        def joined(of_batch: Array, of_context: Array) -> Array:
            parts = (of_batch, of_context)
            return np.concatenate([np.broadcast_to(x, (len(x), *points)) for x in parts])

        return Features(
            compute_s=joined(alone.compute_s, cached.compute_s * s),
            memory_s=joined(alone.memory_s, cached.memory_s * s),
            launches=joined(alone.launches, cached.launches),
            visits=joined(alone.visits, cached.visits * s),
        )


@lru_cache(maxsize=4096)
def batch_axis(step: Step, batches: tuple[float, ...], queries: float = 1.0) -> BatchFigures:
    """Return the figures of a step that depend on the batch, as a column (batch, 1); kept."""
    return step.of_batch(np.array(batches, float)[:, None], queries)


@lru_cache(maxsize=4096)
def context_axis(step: Step, contexts: tuple[float, ...], queries: float = 1.0) -> ContextFigures:
    """Return the figures of a sequence of a step at every context, as a row (context,); kept."""
    return step.of_context(np.array(contexts, float), queries)


def make_step(
    kernels: Sequence[Kernel],
    collectives: Sequence[Collective],
    sharding: Sharding,
    accelerator: Accelerator,
    layout: Layout,
    routing_spread: float = 0.0,
) -> Step:
    """Return a step at the datasheet's rates; `Step.reaching` calibrates it.

    Raises UnsupportedFormat where the accelerator cannot run a kernel's arithmetic, MissingFigure
    where collectives have no link on record, InseparableKernel (all are ValueErrors).
    """
    table = kernel_table(tuple(kernels))
    wanted = dict.fromkeys(k.compute for k in kernels)
    resolved = {name: accelerator.compute_format(name) for name in wanted}
    formats = tuple(resolved[k.compute][0] for k in kernels)
    emulated = dict.fromkeys(text for _, text in resolved.values() if text)
    peaks = np.array([accelerator.peak(name) for name in formats])
    batch = batch_items(table, collectives, sharding, peaks, accelerator, layout)
    context = context_items(table, sharding, peaks, accelerator.bandwidth_bytes_per_s)
    return Step(
        kernels=tuple(kernels),
        collectives=tuple(collectives),
        sharding=sharding,
        accelerator=accelerator,
        formats=formats,
        peaks_flops_per_s=peaks,
        notes=tuple(Note("emulated_format", text) for text in emulated),
        batch_items=batch,
        context_items=context,
        routing_spread=routing_spread,
        efficiency=Efficiency.ideal(len(batch.items) + len(context.items)),
    )
