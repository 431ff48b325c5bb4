"""How each limit on time of a scenario is met, and the largest load that meets it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from planner import answer
from planner.deployment import Deployment
from planner.models.spec import Note
from planner.plans.serving import clients_of, under_load
from planner.plans.targets import MOST_CLIENTS, factor_at, largest, quantile
from planner.roofline import Array, Numeric
from planner.scenario import Scenario

QUANTILES = np.linspace(-4.0, 4.0, 161)
"""Standard quantiles between which the probability of a time is interpolated [-]."""


@dataclass(frozen=True, slots=True)
class LoadInQuestion:
    """One kind of load: the one in question, the most there can be, and its times."""

    unit: str
    amount: float
    most: int
    times_ms: Callable[[Numeric, Numeric], Array]
    """Time at loads and standard quantiles of the uncertainty, which broadcast [ms]."""


def meets_of(
    scenario: Scenario, deployment: Deployment, batches: list[int], context: int, fit: int
) -> list[answer.Meets]:
    """Return how each limit of a scenario is met: by its batch, and by its requests under load.

    Where the scenario names no batch the smallest one counts.
    """
    meets = []
    if scenario.tpot_ms is not None and (scenario.batch or scenario.isl is None):
        batch = max(batches) if scenario.batch else min(batches)

        def step_ms(loads: Numeric, quantiles: Numeric) -> Array:
            times = deployment.time_s(loads, context)
            return np.asarray(times * factor_at(deployment, "tpot", quantiles) * 1e3)

        meets.append(
            _meets(
                scenario, "tpot_ms", scenario.tpot_ms, LoadInQuestion("batch", batch, fit, step_ms)
            )
        )
    if scenario.isl is not None:
        limits = {"tpot_ms": scenario.tpot_ms, "ttft_ms": scenario.ttft_ms}
        clients = clients_of(scenario, deployment)
        meets += [
            _meets(
                scenario,
                name,
                limit,
                LoadInQuestion(
                    "concurrency", clients, MOST_CLIENTS, _served_ms(scenario, deployment, name)
                ),
            )
            for name, limit in limits.items()
            if limit is not None
        ]
    return meets


def _served_ms(
    scenario: Scenario, deployment: Deployment, name: str
) -> Callable[[Numeric, Numeric], Array]:
    def served_ms(loads: Numeric, quantiles: Numeric) -> Array:
        load = under_load(scenario, deployment, loads)
        start, step = (factor_at(deployment, q, quantiles) for q in ("ttft", "tpot"))
        seconds = load.state.tpot_s * step if name == "tpot_ms" else load.moved(start, step)[0]
        return np.asarray(seconds * 1e3)

    return served_ms


def _meets(scenario: Scenario, name: str, limit_ms: float, load: LoadInQuestion) -> answer.Meets:
    at = quantile(scenario.percentile)
    value_ms = float(load.times_ms(load.amount, at))
    most = largest(lambda loads: np.asarray(load.times_ms(loads, at) <= limit_ms), load.most)
    # Times rise with the quantile; between two of them their logarithm is taken as straight.
    logs = np.log(load.times_ms(load.amount, QUANTILES))
    probability = NormalDist().cdf(float(np.interp(np.log(limit_ms), logs, QUANTILES)))
    return answer.Meets.model_validate(
        {
            "limit": name,
            "limit_ms": limit_ms,
            "value_ms": value_ms,
            "percentile": scenario.percentile,
            "probability": probability,
            "ok": value_ms <= limit_ms,
            load.unit: max(1, round(load.amount)),
            f"max_{load.unit}": most,
        }
    )


def missed_notes(meets: list[answer.Meets], scenario: Scenario) -> list[Note]:
    """Say which limits are missed, and the largest load that meets each.

    A batch that the scenario does not name is not missed: the largest is in the verdict.
    """
    return [
        _missed(one)
        for one in meets
        if not one.ok and (one.batch is None or scenario.batch is not None)
    ]


def _missed(one: answer.Meets) -> Note:
    if one.batch is not None:
        load, most, unit = f"batch {one.batch}", one.max_batch, "batch"
    else:
        load, most, unit = f"{one.concurrency} clients", one.max_concurrency, "concurrency"
    best = f"the largest {unit} within it is {most}" if most else f"no {unit} is within it"
    return Note(
        "limit_missed",
        f"{one.limit.removesuffix('_ms').upper()} at {load} is {one.value_ms:.3g} ms at "
        f"p{one.percentile:g}, over the limit of {one.limit_ms:g} ms; {best}",
    )
