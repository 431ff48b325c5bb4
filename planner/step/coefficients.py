"""The items of a step as arrays of coefficients, in the two kinds that a step's time separates in.

Items without a cached operand (products with weights, experts, collectives, overheads) depend on
the batch alone. Kernels with one (attention of every sort, recurrent states) do the same work for
every sequence of a rank, which depends on the cached length alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from planner.hw import Accelerator
from planner.kernels import Kernel
from planner.roofline import Array
from planner.step.parallel import (
    ACTIVATION_BYTES,
    NETWORK,
    NETWORK_BYTES_PER_S,
    Collective,
    Sharding,
    link_bandwidth,
)
from planner.step.timing import OVERHEADS, Item

Ints = NDArray[np.int64]


class InseparableKernel(RuntimeError):
    """A kernel that reads both weights and a cache: its time is no sum of the two."""


@dataclass(frozen=True, slots=True)
class Layout:
    """The size of what runs beside the modelled kernels, over all layers."""

    layers: int = 0
    hidden: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class RoutedItems:
    """The routed kernels among the batch items; arrays of shape (routed kernel,)."""

    rows: Ints
    """Their positions among the batch items."""
    experts: Array
    top_k: Array
    weights_s: Array
    """Time one rank takes to read its share of all experts at datasheet bandwidth [s]."""
    weight_bytes: Array
    """Bytes of all experts, over all ranks [byte]."""
    visits_per_expert: Array
    """Visits for each expert hit in the model [-]."""

    def __bool__(self) -> bool:
        """Whether any kernel is routed."""
        return len(self.rows) > 0

    def none(self) -> RoutedItems:
        """Return the same of no kernel."""
        empty = np.zeros(0)
        return RoutedItems(np.zeros(0, np.int64), empty, empty, empty, empty, empty)


@dataclass(frozen=True, slots=True, eq=False)
class ReducedItems:
    """The all-reduces among the batch items; arrays of shape (all-reduce,).

    Messages are sent to every rank at once, or in two exchanges with less in all: whichever ends
    first, as engines choose.
    """

    rows: Ints
    """Their positions among the batch items."""
    one_shot_per_token_s: Array
    """Time a token's bytes take in one exchange at the links' bandwidth [s/token]."""
    turn_s: Array
    """What the second of two exchanges costs whatever the message [s]."""

    def memory_s(self, two_shot_s: Array, tokens: Array) -> Array:
        """Return the time on the links, of messages that take `two_shot_s` without the turn [s]."""
        one_shot_s = self.one_shot_per_token_s[:, None] * tokens
        return np.minimum(one_shot_s, two_shot_s + self.turn_s[:, None])


@dataclass(frozen=True, slots=True, eq=False)
class BatchItems:
    """Items that depend on the batch alone: kernels, then collectives, then overheads.

    compute = compute_per_token·tokens + compute_per_stage_token·stage tokens, and memory likewise
    on top of `memory_s`, what a step moves whatever the batch; all at datasheet rates, of one rank.
    """

    items: tuple[Item, ...]
    kernels: Ints
    """Positions of its kernels among the step's."""
    collectives: int
    compute_per_token_s: Array
    compute_per_stage_token_s: Array
    memory_s: Array
    memory_per_token_s: Array
    memory_per_stage_token_s: Array
    launches: Array
    visits: Array
    experts: RoutedItems
    reduced: ReducedItems
    stage: bool
    """Whether anything depends on the tokens of a whole stage: experts, some collectives."""
    flops_per_token: float
    """Over the whole replica [FLOP/token]."""
    weight_bytes: float
    """Read by one microbatch over all ranks, routed experts aside [byte]."""

    def unrouted(self, sharding: Sharding) -> BatchItems:
        """Return the same items with all experts read as dense weights are, split `tp` ways."""
        rows, spread = self.experts.rows, sharding.ranks / sharding.tp
        compute, stage, memory = (
            values.copy()
            for values in (self.compute_per_token_s, self.compute_per_stage_token_s, self.memory_s)
        )
        compute[rows], stage[rows] = stage[rows] * spread, 0.0
        memory[rows] = self.experts.weights_s * spread
        return replace(
            self,
            compute_per_token_s=compute,
            compute_per_stage_token_s=stage,
            memory_s=memory,
            weight_bytes=self.weight_bytes + float(self.experts.weight_bytes.sum()) * spread,
            experts=self.experts.none(),
        )


@dataclass(frozen=True, slots=True, eq=False)
class ContextItems:
    """Kernels with a cached operand; figures of one sequence on one rank at datasheet rates.

    compute = (compute_per_token + compute_per_cached·attended)·queries, memory = memory +
    memory_per_cached·attended, attended = min(context, window).
    """

    items: tuple[Item, ...]
    kernels: Ints
    """Positions among the step's kernels."""
    window: Array
    compute_per_token_s: Array
    compute_per_cached_s: Array
    memory_s: Array
    memory_per_cached_s: Array
    launches: Array
    """Per step, whatever its sequences [-]."""
    visits: Array
    flops_per_token: Array
    """One sequence's over the replica [FLOP/token]."""
    flops_per_cached: Array
    bytes_per_sequence: Array
    """One sequence's over all ranks that hold a copy [byte]."""
    bytes_per_cached: Array


def is_cached(kernel: Kernel) -> bool:
    """Return whether a kernel reads a cache or state; raises InseparableKernel for one with both.

    A kernel that reads weights as well has a time that is not x(batch) + sequences·y(context).
    """
    cached = kernel.bytes_per_sequence or kernel.bytes_per_cached or kernel.flops_per_cached
    if cached and (kernel.weight_bytes or kernel.experts):
        raise InseparableKernel(
            f"kernel {kernel.name} reads weights and a cache; describe it as two kernels"
        )
    return bool(cached)


@dataclass(frozen=True, slots=True, eq=False)
class KernelTable:
    """The laws of kernels as columns, and which of them read a cache."""

    columns: Mapping[str, Array]
    """Figures by name, arrays of shape (kernel,)."""
    items: tuple[Item, ...]
    cached: Ints
    """Positions of the kernels with a cached operand."""
    alone: Ints
    """Positions of the others."""

    def of(self, positions: Ints) -> Callable[[str], Array]:
        """Return a function from names to the figures of the kernels at `positions`."""
        return lambda name: self.columns[name][positions]


@lru_cache(maxsize=256)
def kernel_table(kernels: tuple[Kernel, ...]) -> KernelTable:
    """Return kernels as columns, kept: all splits on all accelerators run the same.

    Raises InseparableKernel.
    """
    cached = np.array([is_cached(kernel) for kernel in kernels], dtype=bool)
    return KernelTable(
        columns={
            name: np.array([getattr(kernel, name) for kernel in kernels], dtype=float)
            for name in COLUMNS
        },
        items=tuple(item_of(kernel) for kernel in kernels),
        cached=np.flatnonzero(cached).astype(np.int64),
        alone=np.flatnonzero(~cached).astype(np.int64),
    )


COLUMNS = tuple(f.name for f in fields(Kernel) if f.type in ("float", "int"))
"""Figures of a kernel's law."""


def item_of(kernel: Kernel) -> Item:
    """Return a kernel as calibration knows it; the LM head is a kind of its own."""
    return Item("head" if kernel.name == "lm_head" else kernel.kind, kernel.weight_format)


def context_items(
    table: KernelTable, sharding: Sharding, peaks: Array, bandwidth: float
) -> ContextItems:
    """Return the coefficients of the kernels with a cached operand."""
    positions = table.cached
    peak, of = peaks[positions], table.of(positions)
    ways = of("cache_ways")
    share = 1.0 / np.minimum(sharding.tp, ways)
    per_flop = 1.0 / np.minimum(sharding.tp, of("flop_ways")) / peak
    heads = np.where(np.isfinite(ways), ways, 0.0)
    launches = of("launches")
    copies = sharding.tp * share
    flops_per_token, flops_per_cached = of("flops_per_token"), of("flops_per_cached")
    bytes_per_sequence, bytes_per_cached = of("bytes_per_sequence"), of("bytes_per_cached")
    return ContextItems(
        items=tuple(table.items[i] for i in positions),
        kernels=positions,
        window=of("window"),
        compute_per_token_s=flops_per_token * per_flop,
        compute_per_cached_s=flops_per_cached * per_flop,
        memory_s=bytes_per_sequence * share / bandwidth,
        memory_per_cached_s=bytes_per_cached * share / bandwidth,
        launches=launches,
        visits=launches * heads * share,
        flops_per_token=flops_per_token,
        flops_per_cached=flops_per_cached,
        bytes_per_sequence=bytes_per_sequence * copies,
        bytes_per_cached=bytes_per_cached * copies,
    )


def batch_items(
    table: KernelTable,
    collectives: Sequence[Collective],
    sharding: Sharding,
    peaks: Array,
    accelerator: Accelerator,
    layout: Layout,
) -> BatchItems:
    """Return the coefficients of kernels without a cache, of collectives and of overheads."""
    positions = table.alone
    peak, of, bandwidth = peaks[positions], table.of(positions), accelerator.bandwidth_bytes_per_s
    flops, weights = of("flops_per_token"), of("weight_bytes")
    routed = of("experts") > 0
    split = 1.0 / np.minimum(sharding.tp, of("flop_ways"))
    held = 1.0 / np.minimum(sharding.tp, of("weight_ways"))
    launches = of("launches")
    beside = np.zeros(len(collectives) + len(OVERHEADS))
    rank_wire, stage_wire = _wires(collectives, accelerator)
    glue = layout.layers * layout.hidden * ACTIVATION_BYTES / bandwidth
    doublings = [c.count * np.log2(c.ranks) for c in collectives]
    return BatchItems(
        items=(
            *(table.items[i] for i in positions),
            *(Item(c.op) for c in collectives),
            *OVERHEADS,
        ),
        kernels=positions,
        collectives=len(collectives),
        compute_per_token_s=np.concatenate([np.where(routed, 0, flops * split) / peak, beside]),
        compute_per_stage_token_s=np.concatenate(
            [np.where(routed, flops / sharding.ranks, 0) / peak, beside]
        ),
        memory_s=np.concatenate([np.where(routed, 0, weights * held) / bandwidth, beside]),
        memory_per_token_s=np.concatenate([np.zeros(len(positions)), rank_wire, [glue, 0.0]]),
        memory_per_stage_token_s=np.concatenate([np.zeros(len(positions)), stage_wire, [0.0, 0.0]]),
        launches=np.concatenate([launches, [c.count for c in collectives], [layout.layers, 1.0]]),
        visits=np.concatenate([np.zeros(len(positions)), doublings, [0.0, 0.0]]),
        experts=_experts(of, routed, sharding, bandwidth),
        reduced=_reduced(collectives, accelerator, len(positions)),
        stage=bool(routed.any() or stage_wire.any()),
        flops_per_token=float(flops.sum()),
        weight_bytes=float(np.where(routed, 0, weights * held).sum()) * sharding.ranks,
    )


def _experts(
    of: Callable[[str], Array], routed: NDArray[np.bool_], sharding: Sharding, bandwidth: float
) -> RoutedItems:
    weights = of("weight_bytes")[routed]
    return RoutedItems(
        rows=np.flatnonzero(routed),
        experts=of("experts")[routed],
        top_k=of("top_k")[routed],
        weights_s=weights / sharding.ranks / bandwidth,
        weight_bytes=weights,
        visits_per_expert=of("launches")[routed] / 2 / sharding.ep,
    )


def _reduced(
    collectives: Sequence[Collective], accelerator: Accelerator, first: int
) -> ReducedItems:
    """Return the all-reduces of collectives that follow `first` other items."""
    at = [i for i, c in enumerate(collectives) if np.isfinite(c.one_shot_factor)]
    link = link_bandwidth(accelerator) if at else np.inf
    sent = [collectives[i] for i in at]
    return ReducedItems(
        rows=np.array(at, dtype=np.int64) + first,
        one_shot_per_token_s=np.array(
            [c.count * c.one_shot_factor * c.bytes_per_token / link for c in sent]
        ),
        turn_s=np.array([c.count * c.turn_bytes / link for c in sent]),
    )


def _wires(collectives: Sequence[Collective], accelerator: Accelerator) -> tuple[Array, Array]:
    """Time a token's bytes take on the links, of a rank's tokens and of a stage's [s/token]."""
    if not collectives:
        return np.zeros(0), np.zeros(0)
    link = link_bandwidth(accelerator)
    rates = np.array(
        [min(link, NETWORK_BYTES_PER_S) if c.op == NETWORK else link for c in collectives]
    )
    wires = np.array([c.count * c.wire_factor * c.bytes_per_token for c in collectives]) / rates
    of_stage = np.array([c.tokens_of == "stage" for c in collectives])
    return np.where(of_stage, 0.0, wires), np.where(of_stage, wires, 0.0)
