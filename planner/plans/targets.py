"""Limits on TPOT and TTFT: what meets them, and the largest load that does."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from planner.deployment import Deployment
from planner.models.spec import Note
from planner.plans.serving import clients_of, under_load
from planner.roofline import Array, Mask, Numeric
from planner.scenario import Scenario

TRIED = 32
"""Loads tried at once in the search for the largest [-]."""

MOST_CLIENTS = 2**14
"""Clients beyond which the largest concurrency is not looked for [-]."""


def percentile_factor(deployment: Deployment, quantity: str, percentile: float) -> float:
    """Return the factor from p50 to another percentile of a time: tpot or ttft [-].

    The logarithm is taken as normal on either side of p50, through p10 and p90.
    """
    if percentile == 50:
        return 1.0
    from statistics import NormalDist  # slow to import, and few questions need it

    low, high = deployment.interval(quantity)
    steps = NormalDist().inv_cdf(percentile / 100) / NormalDist().inv_cdf(0.9)
    return float(high**steps if steps > 0 else low**-steps)


def largest(meets: Callable[[Array], Mask], most: int) -> int:
    """Return the largest whole load up to `most` that `meets` says yes to, else 0.

    `meets` must say yes up to some load and no beyond it.
    """
    low, high = 0, most
    while low < high:
        tried = np.round(np.linspace(low + 1, high, min(TRIED, high - low)))
        yes = np.asarray(meets(tried))
        good = int(yes.argmin()) if not yes.all() else len(tried)
        if good:
            low = int(tried[good - 1])
        if good < len(tried):
            high = int(tried[good]) - 1
    return low


def largest_batch(
    deployment: Deployment, context: int, limit_s: float, most: int, percentile: float = 50
) -> int:
    """Return the largest batch up to `most` whose TPOT is within a limit [s], else 0."""
    factor = percentile_factor(deployment, "tpot", percentile)
    return largest(
        lambda batch: np.asarray(deployment.time_s(batch, context) * factor <= limit_s), most
    )


def limit_notes(
    scenario: Scenario, deployment: Deployment, batches: list[int], context: int, fit: int
) -> list[Note]:
    """Say where the scenario's limits are missed, and the largest load that meets them."""
    notes = []
    if scenario.tpot_ms is not None and scenario.batch:
        notes += _batch_note(scenario, deployment, batches, context, fit)
    if scenario.isl is not None and (scenario.tpot_ms is not None or scenario.ttft_ms is not None):
        notes += _serving_notes(scenario, deployment)
    return notes


def _batch_note(
    scenario: Scenario, deployment: Deployment, batches: list[int], context: int, fit: int
) -> list[Note]:
    limit_ms, batch = scenario.tpot_ms or 0.0, max(batches)
    factor = percentile_factor(deployment, "tpot", scenario.percentile)
    time_ms = float(deployment.time_s(batch, context)) * factor * 1e3
    if time_ms <= limit_ms:
        return []
    most = largest_batch(deployment, context, limit_ms / 1e3, fit, scenario.percentile)
    return [_missed("TPOT", time_ms, limit_ms, f"batch {batch}", most, "batch", scenario)]


def _serving_notes(scenario: Scenario, deployment: Deployment) -> list[Note]:
    clients = clients_of(scenario, deployment)
    limits = {"tpot": scenario.tpot_ms, "ttft": scenario.ttft_ms}
    start, step = (percentile_factor(deployment, q, scenario.percentile) for q in ("ttft", "tpot"))

    def at(loads: Numeric) -> dict[str, Array]:
        load = under_load(scenario, deployment, loads)
        return {"tpot": load.state.tpot_s * step * 1e3, "ttft": load.moved(start, step)[0] * 1e3}

    def most(quantity: str, limit: float) -> int:
        return largest(lambda loads: np.asarray(at(loads)[quantity] <= limit), MOST_CLIENTS)

    time_ms = {quantity: float(ms) for quantity, ms in at(clients).items()}
    return [
        _missed(
            q.upper(),
            time_ms[q],
            limit,
            f"{clients:.0f} clients",
            most(q, limit),
            "concurrency",
            scenario,
        )
        for q, limit in limits.items()
        if limit and time_ms[q] > limit
    ]


def _missed(
    name: str, time_ms: float, limit_ms: float, load: str, most: int, unit: str, scenario: Scenario
) -> Note:
    best = f"the largest {unit} within it is {most}" if most else f"no {unit} is within it"
    return Note(
        "limit_missed",
        f"{name} at {load} is {time_ms:.3g} ms at p{scenario.percentile:g}, over the limit of "
        f"{limit_ms:g} ms; {best}",
    )
