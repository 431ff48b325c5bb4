"""From work to time: every kernel on its machine's roof, every collective on its link."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from planner.decode import StepWork
from planner.hw import Accelerator, MissingFigure
from planner.kernels import Kernel
from planner.models.spec import Note
from planner.parallel import Collective
from planner.roofline import Roof

Array = NDArray[np.float64]

BOUNDS = ("memory", "compute", "launch", "communication")


@dataclass(frozen=True)
class Efficiency:
    """What share of a datasheet kernels reach, by kernel; arrays of shape (kernel,)."""

    memory: Array
    """Bandwidth reached/peak bandwidth [-]."""
    compute: Array
    """Rate reached/peak rate [-]."""
    launch_s: Array
    """Floor under one launch [s]."""
    sharpness: Array
    """Exponent of the knee between the limits [-]."""
    step_s: float = 0.0
    """Engine cost of a step: scheduler, sampling [s]."""
    collective_launch_s: float = 0.0
    """Latency of a collective [s]."""
    link: float = 1.0
    """Share of the link's bandwidth a collective reaches [-]."""

    @classmethod
    def ideal(cls, kernels: int) -> Efficiency:
        """Return the pure roofline: everything at its datasheet figure, launches free."""
        ones = np.ones(kernels)
        return cls(ones, ones, np.zeros(kernels), np.full(kernels, np.inf))


@dataclass(frozen=True, slots=True)
class StepTime:
    """Time of a step: arrays over (kernel, *points) or (*points)."""

    kernel_s: Array
    compute_s: Array
    memory_s: Array
    launch_s: Array
    collective_s: Array
    """Shape (*points)."""
    total_s: Array
    """Shape (*points)."""

    @property
    def bound(self) -> NDArray[np.str_]:
        """What most of the step's time goes to, shape (*points)."""
        memory_led = self.memory_s >= self.compute_s
        body = self.kernel_s - self.launch_s
        shares = np.stack([
            np.where(memory_led, body, 0).sum(axis=0),
            np.where(memory_led, 0, body).sum(axis=0),
            self.launch_s.sum(axis=0) * np.ones_like(self.total_s),
            self.collective_s,
        ])  # fmt: skip
        return np.asarray(np.array(BOUNDS)[shares.argmax(axis=0)])


class Machine:
    """An accelerator seen by the kernels of a step: peaks by kernel, efficiencies, links."""

    def __init__(
        self,
        accelerator: Accelerator,
        kernels: Sequence[Kernel],
        collectives: Sequence[Collective],
        efficiency: Efficiency | None = None,
    ) -> None:
        """Resolve the format each kernel runs in; notes say what is emulated.

        Raises UnsupportedFormat where the accelerator cannot run a kernel's arithmetic.
        """
        self.accelerator = accelerator
        self.collectives = tuple(collectives)
        self.efficiency = efficiency or Efficiency.ideal(len(kernels))
        resolved = {k.compute: accelerator.compute_format(k.compute) for k in kernels}
        self.formats = tuple(resolved[k.compute][0] for k in kernels)
        self.notes = tuple(
            Note("emulated_format", text) for _, text in dict.fromkeys(resolved.values()) if text
        )
        self.peak = np.array([accelerator.peak(f) for f in self.formats])
        self.launches = np.array([k.launches for k in kernels])

    def roof(self, points: int, pure: bool = False) -> Roof:
        """Return the roofs of all kernels, shaped to broadcast over `points` axes."""

        def column(values: Array) -> Array:
            return values.reshape(values.shape + (1,) * points)

        bandwidth = self.accelerator.bandwidth_bytes_per_s
        if pure:
            return Roof(column(self.peak), bandwidth)
        e = self.efficiency
        return Roof(column(self.peak * e.compute), column(bandwidth * e.memory),
                    column(self.launches * e.launch_s), column(e.sharpness))  # fmt: skip

    def time(self, work: StepWork, pure: bool = False) -> StepTime:
        """Return the time of a step; `pure` is the datasheet roofline without collectives."""
        roof = self.roof(work.rank_tokens.ndim, pure)
        kernel_s = np.asarray(roof.time(work.rank))
        sent = np.zeros_like(work.rank_tokens) if pure else self.collective_time(work)
        overhead = 0.0 if pure else self.efficiency.step_s
        return StepTime(
            kernel_s=kernel_s,
            compute_s=np.asarray(roof.compute_time(work.rank)),
            memory_s=np.asarray(roof.memory_time(work.rank)),
            launch_s=np.asarray(roof.launch_s) * np.ones_like(kernel_s),
            collective_s=sent,
            total_s=kernel_s.sum(axis=0) + sent + overhead,
        )

    def collective_time(self, work: StepWork) -> Array:
        """Return the time of all collectives of a step, shape (*points) [s]."""
        total = np.zeros_like(work.rank_tokens)
        if not self.collectives:
            return total
        bandwidth = link_bandwidth(self.accelerator) * self.efficiency.link
        for item in self.collectives:
            tokens = work.stage_tokens if item.tokens_of == "stage" else work.rank_tokens
            wire = item.wire_factor * item.bytes_per_token * tokens
            total = total + item.count * (self.efficiency.collective_launch_s + wire / bandwidth)
        return total


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
