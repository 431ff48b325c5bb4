"""Which lever helps a scenario, each with the gain computed by answering it again."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from planner.answer import Lever
from planner.deployment import Deployment, Part, resolve
from planner.scenario import Scenario

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
    batch, context = (scenario.batch or [1])[-1], (scenario.context or [8192])[-1]
    return levers(Asked(resolve(scenario), batch, context, scenario))


@dataclass(frozen=True, slots=True)
class Asked:
    """A point of a deployment; what else its scenario says is in the deployment already."""

    deployment: Deployment
    batch: float
    """[-]."""
    context: float
    """[token]."""
    scenario: Scenario = field(compare=False)


@lru_cache(maxsize=256)
def levers(asked: Asked) -> tuple[Lever, ...]:
    """Return the levers that make a point faster, best first.

    Quantised bytes, a quantised cache and twice the tensor parallelism are answered again; launch
    overhead and collectives are priced at what they take. Kept by point, as every plan tells them.
    """
    parts = asked.deployment.parts(asked.batch, asked.context)
    before = float(asked.deployment.per_token_s(parts))
    found = _overheads(parts, asked.deployment.tokens_per_step, before)
    twice = {"tp": 2 * asked.scenario.tp}
    for code, text, change in (*CHANGES, ("tp_double", "twice the tensor parallelism", twice)):
        try:
            other = resolve(asked.scenario.model_copy(update=change))
            after = float(other.time_s(asked.batch, asked.context))
        except ValueError:  # a split or format this model or machine does not take is no lever
            continue
        found.append(Lever(code=code, text=text, gain=before / after))
    return tuple(sorted((one for one in found if one.gain > 1), key=lambda one: -one.gain))


def _overheads(parts: tuple[Part, ...], tokens: float, total: float) -> list[Lever]:
    """Levers against launch overhead (graph capture, fusion) and communication."""
    launch = sum(part.share * float(part.time.launch_s.sum()) for part in parts) / tokens
    sent = sum(part.share * float(part.time.collective_s) for part in parts) / tokens
    named = (
        ("graphs", "graph capture or fusion: no launches", launch),
        ("link", "communication overlapped", sent),
    )
    return [
        Lever(code=code, text=text, gain=total / (total - share))
        for code, text, share in named
        if share / total > SHARE_WORTH_NAMING
    ]
