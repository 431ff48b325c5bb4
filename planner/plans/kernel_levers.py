"""Which lever helps which kernel: every gain is the difference of two full plans.

A lever is another deployment: other formats, a larger batch, a kernel that starts with the one
before it, or attention that keeps or reads less. The step is evaluated with and without it, kernel
by kernel; a lever that is pulled already is not named.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from planner import answer
from planner.deployment import Deployment, Options, deploy
from planner.hw import Accelerator
from planner.models.attention import Attention
from planner.models.latent import LatentAttention
from planner.models.parts import Part
from planner.models.spec import ModelSpec
from planner.plans.advice import CHANGES, NO_RISK, WORTH, is_pulled
from planner.roofline import Array
from planner.step.breakdown import breakdown
from planner.step.evaluator import Step
from planner.step.parallel import Sharding
from planner.step.placement import Phase, Roofline, place

GROUPED_HEADS = 8
"""Heads of keys and values that grouped-query attention keeps (Llama 3 and most since) [-]."""
LATENT_RANK, ROPE, NOPE = 512, 64, 128
"""Latent, rotary and other widths of multi-head latent attention (DeepSeek-V2 report, 2024)."""
TOP_K = 2048
"""Cached tokens that sparse attention reads (DeepSeek-V3.2 report, 2025) [token]."""
Changed = Callable[[Part], Part | None]
"""A part in place of another; None where it stays."""
ANOTHER_MODEL = "another model: it must be trained so"
ATTENTION = ("attention", "latent")
"""Kinds of kernels that an attention of another sort replaces."""


class KernelLever(answer.Answer):
    """What a change that was not made yet does for one kernel, and for the whole step."""

    kernel: str
    code: str
    text: str
    kernel_gain: float
    """Time of the kernel per sequence before/after [-]."""
    gain: float
    """TPOT before/after [-]; below 1 it is slower for each user."""
    gain_per_gpu: float
    """Tokens/s per GPU after/before [-]."""
    quality_risk: str
    cost: str


class PlacedWithLevers(Roofline):
    """The kernels of a model on one accelerator, and what helps them in decode."""

    levers: list[KernelLever]


def placed_with_levers(
    spec: ModelSpec,
    accelerator: Accelerator,
    weights: str | None,
    kv: str | None,
    batch: int,
    context: int,
    phase: Phase,
    tp: int = 1,
) -> PlacedWithLevers:
    """Return the kernels of one of `tp` ranks, each on its own, with the levers of a decode step.

    Raises ValueError like `place`; what cannot run there as a whole has no levers.
    """
    placed = place(spec, accelerator, spec.formats(weights, kv), batch, context, phase, tp)
    levers: list[KernelLever] = []
    options = Options(weights, kv)
    if phase == "decode":
        try:
            deployment = deploy(spec, accelerator, Sharding(tp), options)
        except ValueError:  # a figure that the kernels alone do without is not on record
            deployment = None
        if deployment is not None:
            levers = kernel_levers(deployment, float(batch), float(context), options)
    return PlacedWithLevers(**dict(placed), levers=levers)


@dataclass(frozen=True, slots=True)
class OtherPlan:
    """A lever as the plan it leads to."""

    code: str
    text: str
    deployment: Deployment
    batch: float
    risk: str = NO_RISK
    cost: str = ""
    kinds: tuple[str, ...] = ()
    """Kinds of kernels that are replaced together; each by itself where empty."""
    only: str = ""
    """The one kernel it is about; all where empty."""


@dataclass(frozen=True, slots=True)
class KernelPoint:
    """A model on an accelerator at a batch and context."""

    spec: ModelSpec
    deployment: Deployment
    options: Options
    batch: float
    context: float

    def plans(self) -> Iterator[OtherPlan]:
        """Yield the plans of all levers that are not pulled."""
        yield from self._formats()
        yield from self._batch()
        yield from self._fused()
        yield from self._attention()

    def again(self, spec: ModelSpec, options: Options) -> Deployment | None:
        """Return another deployment on the same machine; None where it cannot be run."""
        one = self.deployment
        try:
            return deploy(spec, one.accelerator, one.sharding, options)
        except ValueError:  # a format that model or machine does not take is no lever
            return None

    def _formats(self) -> Iterator[OtherPlan]:
        for change in CHANGES:
            fields = {name: change.fields.get(name) for name in ("weights", "kv")}
            if not any(fields.values()) or is_pulled(self.deployment, change):
                continue
            options = replace(self.options, **{n: f for n, f in fields.items() if f})
            other = self.again(self.spec, options)
            if other is not None:
                yield OtherPlan(
                    change.code, change.text, other, self.batch, change.risk, change.cost
                )

    def _batch(self) -> Iterator[OtherPlan]:
        one = self.deployment
        most = min(one.memory.max_batch(self.context), one.limits(self.context).knee_batch)
        if most > self.batch:
            text = f"batch {most} rather than {self.batch:.0f}, within memory and the knee"
            cost = "requests that are there to be batched"
            yield OtherPlan("batch_more", text, one, float(most), cost=cost)

    def _fused(self) -> Iterator[OtherPlan]:
        one = self.deployment
        for name in dict.fromkeys(kernel.name for kernel in one.step.kernels):
            fused = replace(one, step=without_launches(one.step, name))
            text = "fused with the kernel before it: no launch of its own"
            cost = "a fused kernel"
            yield OtherPlan("fusion", text, fused, self.batch, cost=cost, only=name)

    def _attention(self) -> Iterator[OtherPlan]:
        for code, text, changed in (
            ("gqa", f"grouped queries: {GROUPED_HEADS} heads of keys and values", grouped),
            ("mla", f"latent attention: {LATENT_RANK} + {ROPE} values a token", latent),
            ("sparse", f"sparse attention to {TOP_K} tokens; its indexer is not counted", sparse),
        ):
            spec = with_mixers(self.spec, changed)
            other = None if spec is None else self.again(spec, self.options)
            if other is not None:
                yield OtherPlan(
                    code, text, other, self.batch, "other answers", ANOTHER_MODEL, ATTENTION
                )


def kernel_levers(
    deployment: Deployment, batch: float, context: float, options: Options
) -> list[KernelLever]:
    """Return what helps each kernel of a decode step, most for the kernel first, by kernel.

    `options` are those of the deployment. Named is what makes a kernel `WORTH` of its time or more.
    """
    point = KernelPoint(deployment.spec, deployment, options, batch, context)
    before = Timed.of(deployment, batch, context)
    levers: list[KernelLever] = []
    for other in point.plans():
        after = Timed.of(other.deployment, other.batch, context)
        grown = other.batch / batch
        for kernel, was_s in before.by_name.items():
            if other.only not in ("", kernel):
                continue
            if other.kinds and before.kinds[kernel] not in other.kinds:
                continue
            now_s = after.of_kinds(other.kinds) if other.kinds else after.by_name.get(kernel, 0.0)
            was = before.of_kinds(other.kinds) if other.kinds else was_s
            gain = was * grown / now_s if now_s else math.inf
            if gain < WORTH:
                continue
            levers.append(
                KernelLever(
                    kernel=kernel,
                    code=other.code,
                    text=other.text,
                    kernel_gain=min(gain, MOST_GAIN),
                    gain=before.step_s / after.step_s,
                    gain_per_gpu=before.step_s / after.step_s * grown,
                    quality_risk=other.risk,
                    cost=other.cost,
                )
            )
    order = {name: at for at, name in enumerate(before.by_name)}
    return sorted(levers, key=lambda lever: (order[lever.kernel], -lever.kernel_gain))


MOST_GAIN = 1e6
"""Gain of a kernel that takes no time any more, in place of infinity [-]."""


@dataclass(frozen=True, slots=True)
class Timed:
    """A step, kernel by kernel."""

    step_s: float
    """Of a token [s]."""
    by_name: dict[str, float]
    """Time of the kernels of a name [s]."""
    kinds: dict[str, str]

    @classmethod
    def of(cls, deployment: Deployment, batch: float, context: float) -> Timed:
        """Return a deployment's step at a point."""
        passes = deployment.passes_on_grid((batch,), (context,))
        figures = breakdown(deployment.step, passes[0].points)
        times: Array = figures.time_s
        return cls(
            float(deployment.per_token_s(passes)[-1, -1]),
            dict(zip(figures.names, times.tolist(), strict=True)),
            {kernel.name: kernel.kind for kernel in deployment.step.kernels},
        )

    def of_kinds(self, kinds: tuple[str, ...]) -> float:
        """Return the time of all kernels of some kinds [s]."""
        return sum(s for name, s in self.by_name.items() if self.kinds[name] in kinds)


def without_launches(step: Step, name: str) -> Step:
    """Return a step in which kernels of a name start with the one before."""
    order = [*step.batch_items.kernels, *step.context_items.kernels]
    first = len(step.batch_items.items)
    places = [*range(len(step.batch_items.kernels)), *range(first, len(step.items))]
    of_name = [p for p, k in zip(places, order, strict=True) if step.kernels[k].name == name]
    launch_s = np.array(step.efficiency.launch_s)
    launch_s[of_name] = 0.0
    return step.reaching(replace(step.efficiency, launch_s=launch_s))


def with_mixers(spec: ModelSpec, changed: Changed) -> ModelSpec | None:
    """Return a model with changed attention; None where no part of it changes."""
    groups, any_changed = [], False
    for group in spec.groups:
        mixers = tuple(changed(part) or part for part in group.block.mixers)
        any_changed |= mixers != group.block.mixers
        groups.append(replace(group, block=replace(group.block, mixers=mixers)))
    return replace(spec, groups=tuple(groups)) if any_changed else None


def grouped(part: Part) -> Part | None:
    """Return attention with fewer heads of keys and values; None where it has few."""
    if not isinstance(part, Attention) or not part.own_kv or part.kv_heads <= GROUPED_HEADS:
        return None
    return None if part.heads % GROUPED_HEADS else replace(part, kv_heads=GROUPED_HEADS)


def latent(part: Part) -> Part | None:
    """Return latent attention in place of full attention; None where it would keep no less."""
    if type(part) is not Attention or not part.own_kv or math.isfinite(_reach(part)):
        return None
    if part.kv_heads * (part.head_dim + part.value_dim) <= LATENT_RANK + ROPE:
        return None
    return LatentAttention(
        hidden=part.hidden,
        heads=part.heads,
        kv_rank=LATENT_RANK,
        rope_dim=ROPE,
        nope_dim=NOPE,
        v_dim=part.value_dim,
        q_rank=None,
    )


def sparse(part: Part) -> Part | None:
    """Return attention that reads the tokens an indexer picks; None where it reads few."""
    if isinstance(part, Attention) and part.own_kv and not math.isfinite(_reach(part)):
        return replace(part, attended=float(TOP_K))
    if isinstance(part, LatentAttention) and not math.isfinite(part.window):
        return replace(part, window=float(TOP_K))
    return None


def _reach(part: Attention) -> float:
    return min(part.window, part.attended)
