"""Which lever helps a scenario, each with the gain computed by answering it again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from planner.resolve import Deployment, resolve
from planner.scenario import Scenario

SHARE_WORTH_NAMING = 0.05
"""Share of the step below which launches or collectives are not worth a lever [-]."""


@dataclass(frozen=True, slots=True)
class Lever:
    """One change and what it does to TPOT at the scenario's last point."""

    code: str
    text: str
    gain: float
    """TPOT before/after [-]; above 1 is faster."""


CHANGES: tuple[tuple[str, str, dict[str, Any]], ...] = (
    ("weights_fp8", "8-bit weights", {"weights": "fp8"}),
    ("weights_int4", "4-bit weights, 16-bit arithmetic", {"weights": "int4_g128"}),
    ("kv_fp8", "8-bit KV cache", {"kv": "fp8"}),
)


def advise(scenario: Scenario) -> list[Lever]:
    """Return the levers that make a scenario's last point faster, best first.

    Quantised bytes, a quantised cache and twice the tensor parallelism are answered again; launch
    overhead and collectives are priced at what they take. Raises ValueError like `plan`.
    """
    base = resolve(scenario)
    before = _tpot(scenario, base)
    found = []
    changes = (*CHANGES, ("tp_double", "twice the tensor parallelism", {"tp": 2 * scenario.tp}))
    for code, text, change in changes:
        other = scenario.model_copy(update=change)
        try:
            after = _tpot(other, resolve(other))
        except ValueError:  # a split or format this model or machine does not take is no lever
            continue
        found.append(Lever(code, text, before / after))
    found += _overheads(scenario, base, before)
    return sorted((lever for lever in found if lever.gain > 1), key=lambda lever: -lever.gain)


def _tpot(scenario: Scenario, deployment: Deployment) -> float:
    batch = (scenario.batch or [1])[-1]
    context = (scenario.context or [8192])[-1]
    return float(deployment.time_s(batch, context))


def _overheads(scenario: Scenario, deployment: Deployment, total: float) -> list[Lever]:
    """Levers against launch overhead (graph capture, fusion) and communication."""
    batch = (scenario.batch or [1])[-1]
    context = (scenario.context or [8192])[-1]
    parts, tokens = deployment.parts(batch, context), deployment.tokens_per_step
    launch = sum(part.share * float(part.time.launch_s.sum()) for part in parts) / tokens
    sent = sum(part.share * float(part.time.collective_s) for part in parts) / tokens
    levers = []
    if launch / total > SHARE_WORTH_NAMING:
        levers.append(
            Lever("graphs", "graph capture or fusion: no launches", total / (total - launch))
        )
    if sent / total > SHARE_WORTH_NAMING:
        levers.append(Lever("link", "communication overlapped", total / (total - sent)))
    return levers
