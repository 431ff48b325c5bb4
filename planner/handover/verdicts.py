"""Limits against a prediction with its interval: the probability, and pass, near or fail."""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import Literal

import numpy as np

from planner.answer import Answer, Interval, Plan
from planner.deployment import Deployment
from planner.plans.serving import under_load
from planner.plans.targets import MOST_CLIENTS, largest
from planner.scenario import Scenario

Verdict = Literal["pass", "near", "fail"]
SURE = 0.9
"""Probability from which a limit is met, and below 1 − which it is missed [-]."""
_Z90 = NormalDist().inv_cdf(0.9)


class CheckedLimit(Answer):
    """A limit, what is predicted, and how likely it is met."""

    quantity: Literal["tpot_s", "ttft_s", "requests_per_s"]
    limit: float
    predicted: Interval
    probability: float
    """That the limit is met, by the prediction's interval [-]."""
    verdict: Verdict


def probability_below(interval: Interval, limit: float) -> float:
    """Return the probability that a quantity is at most `limit`.

    Its logarithm is taken as normal on either side of p50, through p10 and p90, as percentiles of
    limits are.
    """
    if limit <= 0 or interval.p50 <= 0:
        return 0.0
    distance = math.log(limit / interval.p50)
    end = interval.p90 if distance >= 0 else interval.p10
    spread = abs(math.log(end / interval.p50)) / _Z90 if end > 0 else 0.0
    if spread == 0:
        return 1.0 if distance >= 0 else 0.0
    return NormalDist().cdf(distance / spread)


def verdict_of(probability: float, percentile: float) -> Verdict:
    """Return pass, near or fail: fail below the percentile that the limits apply to.

    Within the 80% interval, between one in ten and nine in ten, it is near.
    """
    if probability < percentile / 100 or probability <= 1 - SURE:
        return "fail"
    return "pass" if probability >= SURE else "near"


def worst(verdicts: list[Verdict]) -> Verdict:
    """Return the worst of several verdicts; pass where there is none."""
    order: tuple[Verdict, ...] = ("fail", "near", "pass")
    return next((verdict for verdict in order if verdict in verdicts), "pass")


def checked_limits(scenario: Scenario, plan: Plan) -> list[CheckedLimit]:
    """Return the scenario's limits against its plan: of the serving question, or of decode."""
    times: list[tuple[Literal["tpot_s", "ttft_s"], float | None, Interval | None]] = []
    if plan.serving is not None:
        times.append(("tpot_s", scenario.tpot_ms, plan.serving.tpot_s))
        times.append(("ttft_s", scenario.ttft_ms, plan.serving.ttft_s))
    elif scenario.batch:
        times.append(("tpot_s", scenario.tpot_ms, plan.points[-1].tpot_s))
    return [
        _limit(quantity, limit / 1e3, interval, scenario.percentile)
        for quantity, limit, interval in times
        if limit is not None and interval is not None
    ]


def _limit(
    quantity: Literal["tpot_s", "ttft_s"], limit_s: float, interval: Interval, percentile: float
) -> CheckedLimit:
    probability = probability_below(interval, limit_s)
    return CheckedLimit(
        quantity=quantity,
        limit=limit_s,
        predicted=interval,
        probability=probability,
        verdict=verdict_of(probability, percentile),
    )


def clients_at_rate(
    scenario: Scenario, deployment: Deployment, requests_per_s: float
) -> tuple[int, CheckedLimit]:
    """Return the clients of one replica that make a rate of all replicas, and its verdict.

    Closed-loop clients stand for an open load at its mean concurrency (Little 1961). Where no
    number of them makes the rate, they are as many as saturate a replica.
    """
    rate = requests_per_s / scenario.replicas
    clients = 1 + largest(
        lambda loads: (
            np.asarray(under_load(scenario, deployment, loads).state.requests_per_s) < rate
        ),
        MOST_CLIENTS,
    )
    load = under_load(scenario, deployment, float(MOST_CLIENTS))
    starts, steps = deployment.interval("ttft"), deployment.interval("tpot")
    ends = [
        scenario.replicas * float(load.moved(start, step)[1])
        for start, step in zip(starts, steps, strict=True)
    ]
    most = Interval(
        p10=ends[1], p50=scenario.replicas * float(load.state.requests_per_s), p90=ends[0]
    )
    probability = 1.0 - probability_below(most, requests_per_s)
    checked = CheckedLimit(
        quantity="requests_per_s",
        limit=requests_per_s,
        predicted=most,
        probability=probability,
        verdict=verdict_of(probability, scenario.percentile),
    )
    return min(clients, MOST_CLIENTS), checked
