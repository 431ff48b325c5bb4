"""Reality beside the plan: what drifted, the workload, the engine or the prediction."""

from __future__ import annotations

import json
from typing import Any, Literal

from planner.answer import Answer, Editions, Interval, Plan
from planner.handover.observed import Observed, ObservedTime
from planner.handover.verdicts import probability_below
from planner.models import get_model
from planner.plans.editions import current_editions
from planner.plans.planning import plan
from planner.scenario import Scenario
from planner.workload.distributions import moments

WORKLOAD_DRIFT = 0.1
"""Share by which a load differs from the one asked about, from which it is named [-]."""
ENGINE_DRIFT = 0.05
"""The same of the engine's cache [-]."""


class Compared(Answer):
    """One quantity: as planned, as predicted for the load that was seen, and as seen."""

    quantity: str
    planned: float | None
    """For the load the scenario asks about."""
    predicted: Interval | None
    """For the load that was seen; null where the load itself is compared."""
    observed: float
    drift: Literal["none", "workload", "engine", "prediction"]
    text: str


class Observation(Answer):
    """What was seen, beside the plan."""

    observed: Observed
    scenario: Scenario
    """With the load that was seen."""
    rows: list[Compared]
    drifted: list[str]
    """Of `workload`, `engine` and `prediction`."""
    editions: Editions


def under_observed(scenario: Scenario, seen: Observed) -> Scenario:
    """Return a scenario with the load that was seen in place of its own, as far as it is known."""
    changes: dict[str, Any] = {}
    for name in ("isl", "osl"):
        mean, spread = getattr(seen, name), getattr(seen, f"{name}_cv")
        if mean is not None and spread:
            changes[name] = {"lognormal": {"mean": max(mean, 1.0), "cv": min(spread, 10.0)}}
        elif mean is not None:
            changes[name] = max(1, round(mean))
    if seen.concurrency is not None:
        changes["concurrency"] = max(1, round(seen.concurrency / scenario.replicas))
    if seen.prefix_hit is not None:
        changes["prefix_hit"] = seen.prefix_hit
    fields = scenario.model_dump(exclude_none=True) | changes
    if {"isl", "osl", "concurrency"} - fields.keys():
        for name in ("isl", "osl", "concurrency"):
            fields.pop(name, None)
    return Scenario.model_validate(fields)


def observation(scenario: Scenario, seen: Observed) -> Observation:
    """Return what was seen beside the plan of a scenario.

    Raises InvalidInput where the scenario cannot be planned.
    """
    now = under_observed(scenario, seen)
    before = plan(scenario)
    after = plan(now)
    rows = [*_workload(scenario, seen), *_engine(scenario, before, seen)]
    rows += _predictions(before, after, seen)
    drifted = [kind for kind in ("workload", "engine", "prediction") if _any(rows, kind)]
    return Observation(
        observed=seen, scenario=now, rows=rows, drifted=drifted, editions=current_editions()
    )


def _any(rows: list[Compared], kind: str) -> bool:
    return any(row.drift == kind for row in rows)


def _workload(scenario: Scenario, seen: Observed) -> list[Compared]:
    planned = {
        "isl": moments(scenario.isl).mean if scenario.isl is not None else None,
        "osl": moments(scenario.osl).mean if scenario.osl is not None else None,
        "concurrency": scenario.concurrency * scenario.replicas if scenario.concurrency else None,
        "prefix_hit": scenario.prefix_hit,
    }
    rows = []
    for name, planned_value in planned.items():
        value = getattr(seen, name)
        if value is None:
            continue
        if name == "prefix_hit":
            far = abs(value - (planned_value or 0.0)) > WORKLOAD_DRIFT
        else:
            far = planned_value is not None and abs(value / planned_value - 1) > WORKLOAD_DRIFT
        text = "not asked about" if planned_value is None else ("differs" if far else "as asked")
        rows.append(_row(name, planned_value, None, value, "workload" if far else "none", text))
    return rows


def _engine(scenario: Scenario, planned: Plan, seen: Observed) -> list[Compared]:
    rows = []
    tokens = planned.memory.kv_pool_tokens
    if tokens and seen.kv_pool_tokens:
        whole = seen.kv_pool_tokens / scenario.replicas
        far = abs(whole / tokens - 1) > ENGINE_DRIFT
        text = "the cache holds another number of tokens" if far else "as planned"
        rows.append(_row("kv_pool_tokens", tokens, None, whole, "engine" if far else "none", text))
    stated = next((s.value for s in planned.memory.settings if s.name == "memory_fraction"), None)
    if isinstance(stated, (int, float)) and seen.memory_fraction is not None:
        far = abs(seen.memory_fraction - stated) > 1e-6
        text = "the engine was started with another share" if far else "as planned"
        drift: Literal["engine", "none"] = "engine" if far else "none"
        rows.append(_row("memory_fraction", stated, None, seen.memory_fraction, drift, text))
    return rows


def _predictions(before: Plan, after: Plan, seen: Observed) -> list[Compared]:
    rows: list[Compared] = []
    if after.serving is None:
        return rows
    for name in ("tpot_s", "ttft_s"):
        value: ObservedTime | None = getattr(seen, name)
        if value is None:
            continue
        predicted: Interval = getattr(after.serving, name)
        planned = getattr(before.serving, name).p50 if before.serving else None
        inside = predicted.p10 <= value.mean <= predicted.p90
        share = probability_below(predicted, value.mean)
        text = "within the 80% interval" if inside else f"at the {share:.1%} point of the interval"
        drift: Literal["none", "prediction"] = "none" if inside else "prediction"
        rows.append(_row(name, planned, predicted, value.mean, drift, text))
    if seen.requests_per_s is not None:
        planned = before.serving.requests_per_s if before.serving else None
        interval = after.serving.requests_per_s_interval
        text = "follows from the clients that were seen"
        rows.append(_row("requests_per_s", planned, interval, seen.requests_per_s, "none", text))
    return rows


def _row(
    quantity: str,
    planned: float | None,
    predicted: Interval | None,
    value: float,
    drift: Literal["none", "workload", "engine", "prediction"],
    text: str,
) -> Compared:
    return Compared(
        quantity=quantity,
        planned=planned,
        predicted=predicted,
        observed=value,
        drift=drift,
        text=text,
    )


def as_results(seen: Observed, scenario: Scenario) -> str | None:
    """Return what was seen as results that `planner calibrate --add` reads, or None where a figure
    of them was not seen.

    The form is that of vLLM's `bench serve`, whose figures are means over requests as these are.
    """
    values = (seen.isl, seen.osl, seen.concurrency, seen.ttft_s, seen.tpot_s, seen.requests)
    if any(value is None for value in values) or seen.ttft_s is None or seen.tpot_s is None:
        return None
    requests = max(1.0, seen.requests or 1.0)
    return json.dumps(
        {
            "backend": seen.engine,
            "model_id": get_model(scenario.model).id,
            "completed": round(requests),
            "max_concurrency": max(1, round((seen.concurrency or 1) / scenario.replicas)),
            "total_input_tokens": round(requests * (seen.isl or 0)),
            "total_output_tokens": round(requests * (seen.osl or 0)),
            "mean_ttft_ms": seen.ttft_s.mean * 1e3,
            "mean_tpot_ms": seen.tpot_s.mean * 1e3,
            "tensor_parallel_size": scenario.tp,
        },
        indent=1,
    )
