"""Which lever helps a scenario, each with the gains computed by answering it again."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from planner.answer import Lever
from planner.deployment import Deployment, ModelPass, deployment_of
from planner.plans.targets import largest_batch
from planner.scenario import DEFAULT_CONTEXT, Scenario, SpeculationOptions
from planner.step.figures import COMMUNICATION

SHARE_WORTH_NAMING = 0.05
"""Share of the step below which launches or collectives are not worth a lever [-]."""

PULLED = 1.2
"""Bits of what is run over those of a format, below which a lever counts as pulled [-]."""

WORTH = 1.05
"""Gain per GPU from which on a larger batch is named [-]."""

NO_RISK = "none"


@dataclass(frozen=True, slots=True)
class Change:
    """A lever that is another scenario."""

    code: str
    text: str
    fields: dict[str, Any]
    bits: float | None = None
    """Bits of a value after it, of weights or cache; None where no format changes [bit]."""
    of: str = "weights"
    risk: str = NO_RISK
    cost: str = ""


CHANGES = (
    Change(
        "weights_fp8",
        "8-bit weights",
        {"weights": "fp8"},
        8,
        risk="small: most models lose little, measure yours",
        cost="a quantised checkpoint",
    ),
    Change(
        "weights_int4",
        "4-bit weights, 16-bit arithmetic",
        {"weights": "int4_g128"},
        4.125,
        risk="some: reasoning and long contexts suffer first, measure yours",
        cost="a quantised checkpoint",
    ),
    Change(
        "kv_fp8",
        "8-bit KV cache",
        {"kv": "fp8"},
        8,
        of="kv",
        risk="small: long contexts suffer first, measure yours",
        cost="a setting",
    ),
    Change(
        "speculation",
        "one draft a step by the model's own layer",
        {"speculation": SpeculationOptions(drafts=1, accepted=None)},
        cost="a setting; less at large batches",
    ),
)


def advise(scenario: Scenario) -> tuple[Lever, ...]:
    """Return the levers of a scenario's last point that are not pulled, best first.

    Raises ValueError like `plan`.
    """
    batch, context = (scenario.batch or [1])[-1], (scenario.context or [DEFAULT_CONTEXT])[-1]
    return levers(LeverQuestion(deployment_of(scenario), batch, context, scenario))


@dataclass(frozen=True, slots=True)
class LeverQuestion:
    """A point of a deployment; what else its scenario says is in the deployment already."""

    deployment: Deployment
    batch: float
    """[-]."""
    context: float
    """[token]."""
    scenario: Scenario = field(compare=False)


@lru_cache(maxsize=256)
def levers(question: LeverQuestion) -> tuple[Lever, ...]:
    """Return the levers that make a point faster and are not pulled, best for each user first.

    Before them stands a larger batch where it is the answer: where it adds tokens/s per GPU within
    memory and the limit on TPOT. Formats, drafts and twice the tensor parallelism are answered
    again; launch overhead and collectives are priced at what they take. Kept by point.
    """
    deployment = question.deployment
    passes = deployment.passes(question.batch, question.context)
    before = float(deployment.per_token_s(passes))
    gains = _overheads(passes, deployment.tokens_per_step, before)
    for change in (*CHANGES, _twice(question)):
        if is_pulled(deployment, change):
            continue
        try:
            other = deployment_of(question.scenario.model_copy(update=change.fields))
            after = float(other.time_s(question.batch, question.context))
        except ValueError:  # a split or format this model or machine does not take is no lever
            continue
        gpus = other.sharding.gpus / deployment.sharding.gpus
        gains.append(
            Lever(
                code=change.code,
                text=change.text,
                gain=before / after,
                gain_per_gpu=before / after / gpus,
                quality_risk=change.risk,
                cost=change.cost,
            )
        )
    faster = sorted((lever for lever in gains if lever.gain > 1), key=lambda lever: -lever.gain)
    return (*_batch_more(question, before), *faster)


def _twice(question: LeverQuestion) -> Change:
    tp = 2 * question.scenario.tp
    cost = f"{question.deployment.sharding.gpus} more GPUs a replica"
    return Change("tp_double", "twice the tensor parallelism", {"tp": tp}, cost=cost)


def is_pulled(deployment: Deployment, change: Change) -> bool:
    """Return whether a deployment runs in as few bits already, or with drafts."""
    if "speculation" in change.fields:
        return deployment.speculation is not None or not deployment.spec.mtp_params
    if change.bits is None:
        return False
    if change.of == "kv":
        return deployment.formats.kv.bits < PULLED * change.bits
    return stored_bits(deployment) < PULLED * change.bits


def stored_bits(deployment: Deployment) -> float:
    """Return the bits that a weight takes on average, embedding and vectors included [bit]."""
    spec = deployment.spec
    return 8 * spec.weights_bytes(deployment.formats) / spec.total_params


def _batch_more(question: LeverQuestion, before: float) -> tuple[Lever, ...]:
    """Return a larger batch as a lever where it adds much per GPU within memory and the limit."""
    deployment, scenario = question.deployment, question.scenario
    context = int(question.context)
    most = deployment.memory.max_batch(context)
    if scenario.tpot_ms is not None:
        limit_s = scenario.tpot_ms / 1e3
        most = largest_batch(deployment, context, limit_s, most, scenario.percentile)
    else:
        most = min(most, deployment.limits(context).knee_batch)
    if most <= question.batch:
        return ()
    after = float(deployment.time_s(float(most), context))
    per_gpu = most / after * before / question.batch
    if per_gpu < WORTH:
        return ()
    within = "the limit on TPOT" if scenario.tpot_ms is not None else "the knee"
    return (
        Lever(
            code="batch_more",
            text=f"batch {most} rather than {question.batch:.0f}, within memory and {within}",
            gain=before / after,
            gain_per_gpu=per_gpu,
            quality_risk=NO_RISK,
            cost="requests that are there to be batched",
        ),
    )


def _overheads(passes: tuple[ModelPass, ...], tokens: float, total: float) -> list[Lever]:
    """Levers against launch overhead (graph capture, fusion) and communication."""
    launch = sum(each.share * float(each.points.kernel_launch_s) for each in passes) / tokens
    sent = sum(each.share * float(each.points.bounds_s[COMMUNICATION]) for each in passes) / tokens
    named = (
        ("graphs", "graph capture or fusion: no launches", launch, "an engine that captures"),
        ("link", "communication overlapped", sent, "kernels that overlap"),
    )
    return [
        Lever(
            code=code,
            text=text,
            gain=total / (total - share),
            gain_per_gpu=total / (total - share),
            quality_risk=NO_RISK,
            cost=cost,
        )
        for code, text, share, cost in named
        if share / total > SHARE_WORTH_NAMING
    ]
