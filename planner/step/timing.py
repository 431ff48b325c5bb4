"""From work to time: every kernel on its machine's roof, every collective on its link."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from planner.hw import Accelerator, MissingFigure
from planner.kernels import Kernel, expected_distinct_experts, skewed_distinct_experts
from planner.models.spec import Note
from planner.roofline import Array, Roof, Words, p_norm
from planner.step.decode import StepWork
from planner.step.parallel import ACTIVATION_BYTES, Collective

BOUNDS = ("memory", "compute", "launch", "communication")


@dataclass(frozen=True, slots=True, eq=False)
class Item:
    """Something a step spends time on, as calibration knows it."""

    kind: str
    """A kernel's kind, a collective's op, or one of the overheads `layer` and `step`."""
    format: str = ""
    """Format of a kernel's weights, or of the cache it reads."""


OVERHEADS = (Item("layer"), Item("step"))
"""What runs beside the kernels that are modelled: norms, rotary embedding, residuals and
activation functions of every layer; scheduler and sampling of every step."""


@dataclass(frozen=True, slots=True, eq=False)
class Layout:
    """The size of what runs beside the modelled kernels, over all layers."""

    layers: int = 0
    hidden: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class Features:
    """What the items of a step ask of a datasheet machine; arrays of shape (item, *points)."""

    compute_s: Array
    """FLOPs/peak [s]."""
    memory_s: Array
    """Bytes/bandwidth, or bytes on the wire/link bandwidth [s]."""
    launches: Array
    visits: Array
    """Pieces of work with a cost of their own: experts hit on a rank, (sequence, KV head) pairs,
    doublings of a collective's group [-]."""


@dataclass(frozen=True, eq=False)
class Efficiency:
    """What items reach of a datasheet, and their floors; arrays of shape (item,)."""

    memory: Array
    """Bandwidth reached/peak bandwidth [-]."""
    compute: Array
    """Rate reached/peak rate [-]."""
    launch_s: Array
    """Floor under one launch [s]."""
    visit_s: Array
    """Cost of one visit, see `Features.visits` [s]."""
    sharpness: Array
    """Exponent of the knee between the limits [-]."""
    scale: float = 1.0
    """Factor on the whole step [-]."""

    @classmethod
    def ideal(cls, items: int) -> Efficiency:
        """Return the pure roofline: everything at its datasheet figure, launches free."""
        ones, zeros = np.ones(items), np.zeros(items)
        return cls(ones, ones, zeros, zeros, np.full(items, np.inf))

    def shaped(self, points: int) -> Efficiency:
        """Return the same figures shaped to broadcast over `points` trailing axes."""

        def column(values: Array) -> Array:
            return values.reshape(values.shape + (1,) * points)

        return Efficiency(
            column(self.memory),
            column(self.compute),
            column(self.launch_s),
            column(self.visit_s),
            column(self.sharpness),
            self.scale,
        )


def item_time(features: Features, e: Efficiency) -> Array:
    """Return the time of every item, all launches together [s].

    launches·t0 + visits·t1 + ((compute/e_c)^p + (memory/e_m)^p)^(1/p)
    """
    body = p_norm(features.compute_s / e.compute, features.memory_s / e.memory, e.sharpness)
    return np.asarray(features.launches * e.launch_s + features.visits * e.visit_s + body)


@dataclass(frozen=True, slots=True, eq=False)
class StepTime:
    """Time of a step: arrays over (kernel, *points) or (*points)."""

    kernel_s: Array
    compute_s: Array
    memory_s: Array
    launch_s: Array
    collective_s: Array
    """Shape (*points)."""
    overhead_s: Array
    """Time of what runs beside the kernels, shape (*points)."""
    total_s: Array
    """Shape (*points)."""

    @property
    def bound(self) -> Words:
        """What most of the step's time goes to, shape (*points)."""
        memory_led = self.memory_s >= self.compute_s
        body = self.kernel_s - self.launch_s
        shares = np.stack(
            [
                np.where(memory_led, body, 0).sum(axis=0),
                np.where(memory_led, 0, body).sum(axis=0),
                self.launch_s.sum(axis=0) * np.ones_like(self.total_s) + self.overhead_s,
                self.collective_s,
            ]
        )
        return np.asarray(np.array(BOUNDS)[shares.argmax(axis=0)])


class Machine:
    """An accelerator seen by the items of a step: peaks by kernel, efficiencies, links."""

    def __init__(
        self,
        accelerator: Accelerator,
        kernels: Sequence[Kernel],
        collectives: Sequence[Collective],
        layout: Layout = Layout(),
        routing_spread: float = 0.0,
    ) -> None:
        """Resolve the format each kernel runs in; notes say what is emulated.

        `routing_spread` says how unequally tokens choose experts, see `skewed_distinct_experts`;
        the pure roofline takes them as equal. Raises UnsupportedFormat where the
        accelerator cannot run a kernel's arithmetic.
        """
        self.accelerator = accelerator
        self.collectives = tuple(collectives)
        self.layout = layout
        resolved = {k.compute: accelerator.compute_format(k.compute) for k in kernels}
        self.formats = tuple(resolved[k.compute][0] for k in kernels)
        self.notes = tuple(
            Note("emulated_format", text) for _, text in dict.fromkeys(resolved.values()) if text
        )
        self.peak = np.array([accelerator.peak(f) for f in self.formats])
        self.launches = np.array([k.launches for k in kernels])
        self.items = (
            *(Item("head" if k.name == "lm_head" else k.kind, k.weight_format) for k in kernels),
            *(Item(c.op) for c in collectives),
            *OVERHEADS,
        )
        self.routing_spread = routing_spread
        self._routed = [
            (i, k.experts, k.top_k) for i, k in enumerate(kernels) if k.experts and routing_spread
        ]
        self.efficiency = Efficiency.ideal(len(self.items))
        self._shaped: dict[int, Efficiency] = {}

    def with_efficiency(self, efficiency: Efficiency) -> Machine:
        """Return the same machine reaching what `efficiency` says."""
        other = object.__new__(Machine)
        other.__dict__.update(self.__dict__, efficiency=efficiency, _shaped={})
        return other

    def roof(self, points: int, pure: bool = False) -> Roof:
        """Return the roofs of all kernels, shaped to broadcast over `points` axes."""

        def column(values: Array) -> Array:
            return values.reshape(values.shape + (1,) * points)

        bandwidth = self.accelerator.bandwidth_bytes_per_s
        if pure:
            return Roof(column(self.peak), bandwidth)
        e, n = self.efficiency, len(self.peak)
        return Roof(
            column(self.peak * e.compute[:n]),
            column(bandwidth * e.memory[:n]),
            column(self.launches * e.launch_s[:n]),
            column(e.sharpness[:n]),
        )

    def features(self, work: StepWork) -> Features:
        """Return what a step's items ask of the datasheet machine, in the order of `items`."""
        tokens = work.rank_tokens
        pure = self.roof(tokens.ndim, pure=True)
        like = np.ones_like(tokens)
        wires = [self._wire_s(c, work) for c in self.collectives]
        glue = self.layout.layers * self.layout.hidden * ACTIVATION_BYTES * tokens
        memory = [*wires, glue / self.accelerator.bandwidth_bytes_per_s, 0.0 * like]
        launches = [*self.launches, *(c.count for c in self.collectives), self.layout.layers, 1.0]
        doublings = [c.count * np.log2(c.ranks) * like for c in self.collectives]
        idle = np.zeros((len(memory), *tokens.shape))
        moved, visits = np.asarray(pure.memory_time(work.rank)), work.visits.copy()
        for i, experts, top_k in self._routed:
            hit = skewed_distinct_experts(experts, top_k, work.stage_tokens, self.routing_spread)
            fewer = hit / expected_distinct_experts(experts, top_k, work.stage_tokens)
            moved[i] *= fewer
            visits[i] *= fewer
        return Features(
            compute_s=np.concatenate([pure.compute_time(work.rank), idle]),
            memory_s=np.concatenate([moved, np.stack(memory)]),
            launches=np.multiply.outer(np.array(launches, dtype=float), like),
            visits=np.concatenate(
                [visits, *([np.stack(doublings)] if doublings else []), idle[:2]]
            ),
        )

    def time(self, work: StepWork, pure: bool = False) -> StepTime:
        """Return the time of a step; `pure` is the datasheet roofline without collectives."""
        points, n = work.rank_tokens.ndim, len(self.peak)
        if pure:
            return self._pure(work)
        features = self.features(work)
        if points not in self._shaped:
            self._shaped[points] = self.efficiency.shaped(points)
        e = self._shaped[points]
        item_s = item_time(features, e) * e.scale
        compute, memory = features.compute_s[:n], features.memory_s[:n]
        floor = self._pure(work).total_s
        return StepTime(
            kernel_s=item_s[:n],
            compute_s=compute / e.compute[:n] * e.scale,
            memory_s=memory / e.memory[:n] * e.scale,
            launch_s=(features.launches * e.launch_s + features.visits * e.visit_s)[:n] * e.scale,
            collective_s=item_s[n : n + len(self.collectives)].sum(axis=0),
            overhead_s=item_s[n + len(self.collectives) :].sum(axis=0),
            total_s=np.maximum(item_s.sum(axis=0), floor),
        )

    def _pure(self, work: StepWork) -> StepTime:
        roof = self.roof(work.rank_tokens.ndim, pure=True)
        kernel_s = np.asarray(roof.time(work.rank))
        none = np.zeros_like(work.rank_tokens)
        return StepTime(
            kernel_s=kernel_s,
            compute_s=np.asarray(roof.compute_time(work.rank)),
            memory_s=np.asarray(roof.memory_time(work.rank)),
            launch_s=np.zeros_like(kernel_s),
            collective_s=none,
            overhead_s=none,
            total_s=kernel_s.sum(axis=0),
        )

    def _wire_s(self, item: Collective, work: StepWork) -> Array:
        """Time the bytes of a collective take on the datasheet link, shape (*points) [s]."""
        tokens = work.stage_tokens if item.tokens_of == "stage" else work.rank_tokens
        wire = item.count * item.wire_factor * item.bytes_per_token * tokens
        return np.asarray(wire / link_bandwidth(self.accelerator))


def link_bandwidth(accelerator: Accelerator) -> float:
    """Return the bandwidth of an accelerator's links, one direction [byte/s].

    Raises MissingFigure where none is on record.
    """
    if accelerator.link.bytes_per_s is None:
        raise MissingFigure(
            f"gpu: {accelerator.id} has no link bandwidth on record; accepted: tp=1, pp=1, "
            f"attention_dp=1, or an accelerator of your own with a link"
        )
    return accelerator.link.bytes_per_s
