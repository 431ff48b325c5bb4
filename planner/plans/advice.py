"""Which lever helps a scenario, each with the gain computed by answering it again."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from planner.answer import Lever
from planner.deployment import Deployment, ModelPass, deployment_of
from planner.scenario import DEFAULT_CONTEXT, Scenario
from planner.step.figures import COMMUNICATION

SHARE_WORTH_NAMING = 0.05
"""Share of the step below which launches or collectives are not worth a lever [-]."""

CHANGES: tuple[tuple[str, str, dict[str, Any]], ...] = (
    ("weights_fp8", "8-bit weights", {"weights": "fp8"}),
    ("weights_int4", "4-bit weights, 16-bit arithmetic", {"weights": "int4_g128"}),
    ("kv_fp8", "8-bit KV cache", {"kv": "fp8"}),
)


def advise(scenario: Scenario) -> tuple[Lever, ...]:
    """Return the levers that make a scenario's last point faster, best first.

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
    """Return the levers that make a point faster, best first.

    Quantised bytes, a quantised cache and twice the tensor parallelism are answered again; launch
    overhead and collectives are priced at what they take. Kept by point, as every plan tells them.
    """
    deployment = question.deployment
    passes = deployment.passes(question.batch, question.context)
    before = float(deployment.per_token_s(passes))
    gains = _overheads(passes, deployment.tokens_per_step, before)
    twice = {"tp": 2 * question.scenario.tp}
    for code, text, change in (*CHANGES, ("tp_double", "twice the tensor parallelism", twice)):
        try:
            other = deployment_of(question.scenario.model_copy(update=change))
            after = float(other.time_s(question.batch, question.context))
        except ValueError:  # a split or format this model or machine does not take is no lever
            continue
        gains.append(Lever(code=code, text=text, gain=before / after))
    return tuple(
        sorted((lever for lever in gains if lever.gain > 1), key=lambda lever: -lever.gain)
    )


def _overheads(passes: tuple[ModelPass, ...], tokens: float, total: float) -> list[Lever]:
    """Levers against launch overhead (graph capture, fusion) and communication."""
    launch = sum(each.share * float(each.points.kernel_launch_s) for each in passes) / tokens
    sent = sum(each.share * float(each.points.bounds_s[COMMUNICATION]) for each in passes) / tokens
    named = (
        ("graphs", "graph capture or fusion: no launches", launch),
        ("link", "communication overlapped", sent),
    )
    return [
        Lever(code=code, text=text, gain=total / (total - share))
        for code, text, share in named
        if share / total > SHARE_WORTH_NAMING
    ]
