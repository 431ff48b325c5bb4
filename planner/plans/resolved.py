"""What a scenario was taken to be: which machine, model, formats, engine and defaults."""

from __future__ import annotations

from dataclasses import dataclass

from planner.answer import Plan
from planner.deployment import Deployment
from planner.units import count, scaled

GIVEN_FIELDS = ("tp", "pp", "ep", "attention_dp", "replicas")
ASSUMPTIONS = ("assumed", "assumption", "default")
"""Words in the code of a note that tell of something nobody stated."""


@dataclass(frozen=True, slots=True)
class ResolvedLine:
    """One thing a scenario was resolved to."""

    label: str
    text: str
    assumed: bool = False
    """Whether the scenario left it open."""


def resolved(plan: Plan, deployment: Deployment) -> list[ResolvedLine]:
    """Return what the plan's scenario was resolved to, and what of it was assumed."""
    spec, machine = deployment.spec, deployment.accelerator
    memory = (
        "memory not on record"
        if machine.memory_bytes is None
        else scaled(machine.memory_bytes, "B")
    )
    rows = [
        ResolvedLine("model", f"{spec.id}: {spec.kind}, {_parameters(deployment)}"),
        ResolvedLine(
            "accelerator",
            f"{machine.id}: {machine.name}, {memory}, "
            f"{scaled(machine.bandwidth_bytes_per_s, 'B/s')}"
            + ("" if machine.status == "available" else f" ({machine.status})"),
        ),
        ResolvedLine("split", _split(plan, deployment)),
        ResolvedLine(
            "formats",
            f"weights {deployment.weights}, KV cache {deployment.formats.kv.id}, arithmetic "
            f"{', '.join(dict.fromkeys(deployment.step.formats))}",
        ),
        _engine(plan, deployment),
    ]
    rows += [
        ResolvedLine("assumed", note.text, assumed=True)
        for note in plan.notes
        if any(word in note.code for word in ASSUMPTIONS)
    ]
    used = plan.editions
    rows.append(
        ResolvedLine(
            "data",
            f"models {used.models}, hardware {used.hardware}, engines "
            f"{used.engines or '–'}, calibration {used.calibration}",
        )
    )
    return rows


def _parameters(deployment: Deployment) -> str:
    spec = deployment.spec
    total, active = spec.total_params, spec.active_params
    text = f"{count(total)} parameters"
    return text if active == total else f"{text}, {count(active)} active"


def _split(plan: Plan, deployment: Deployment) -> str:
    values = {name: getattr(plan.scenario, name) for name in GIVEN_FIELDS}
    parts = [f"{name} {value}" for name, value in values.items() if value > 1 or name == "tp"]
    gpus = deployment.sharding.gpus * plan.scenario.replicas
    return f"{', '.join(parts)}: {gpus} GPU{'s' if gpus > 1 else ''}"


def _engine(plan: Plan, deployment: Deployment) -> ResolvedLine:
    engine = deployment.engine
    share = f"{engine.memory_fraction:.0%} of memory"
    if plan.scenario.engine is None:
        return ResolvedLine("engine", f"none, physics alone; {share}", assumed=True)
    version = plan.scenario.engine_version or engine.release
    named = f"{engine.name} {version}".strip()
    defaults = (
        f"{share}, {engine.max_sequences:,} sequences a rank, {engine.chunk_tokens:,} tokens a step"
    )
    return ResolvedLine(
        "engine", f"{named}; defaults: {defaults}", assumed=plan.scenario.engine_version is None
    )
