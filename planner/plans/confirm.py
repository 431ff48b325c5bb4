"""Options under their engine's schedule: percentiles over requests, and sizes that meet them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from planner.deployment import Deployment
from planner.plans.candidate import Candidate
from planner.plans.search import Question, sized
from planner.plans.serving import clients_of, hit_of
from planner.plans.sized import RequestTimes, Simulated
from planner.plans.winners import scenario_of
from planner.scenario import Scenario
from planner.serving.simulation.run import Seen, Simulator
from planner.workload.arrivals import RequestList, arrivals, draw
from planner.workload.distributions import moments
from planner.workload.fields import Workload

REQUESTS = 4000
"""Requests of a simulation: P99 is then off by 2 to 5% from one seed to another [-]."""
PER_CLIENT = 12
"""Requests of each client at least [-]."""
WARM = 0.2
"""Share that is not counted [-]."""
SEED = 20261201
ROUNDS = 4
"""Simulations after which a size is taken as it is [-]."""
CLOSE = 1.05
"""Simulated mean over its limit that still confirms the closed form [-]."""
EVEN = 0.02
"""Share of its length that a fixed length is drawn apart, so that clients do not march in step."""


def simulated(scenario: Scenario, deployment: Deployment) -> tuple[Seen, float]:
    """Return what requests of one replica of a scenario see, and those it completes [1/s]."""
    rng = np.random.default_rng(SEED)
    clients = max(1, round(clients_of(scenario, deployment)))
    rate = scenario.requests_per_s
    count = REQUESTS if rate else max(REQUESTS, PER_CLIENT * clients)
    isl, osl = (draw(length or 1, count, rng) for length in (scenario.isl, scenario.osl))
    if rate:
        times = arrivals(count, rate / scenario.replicas, scenario.arrival_cv, rng)
    elif scenario.users and scenario.think_time_s:
        times = rng.exponential(scenario.think_time_s, count)
        clients = max(1, round(scenario.users / scenario.replicas))
    else:
        times = np.zeros(count)
    if not rate:
        osl = np.maximum(np.round(osl * rng.uniform(1 - EVEN, 1 + EVEN, count)), 1.0)
    mean_isl, mean_osl = (moments(n or 1).mean for n in (scenario.isl, scenario.osl))
    hit = float(hit_of(scenario, deployment, float(clients)))
    one = Simulator.of(deployment, mean_isl, mean_osl, float(isl.max() + osl.max()), hit)
    requests = RequestList(times, isl, osl)
    outcome = one.open(requests) if rate else one.closed(requests, clients)
    return Seen.of(outcome, WARM), count / outcome.ended_s


def answer_simulated(seen: Seen, rate: float, limits: Workload) -> Simulated:
    """Return an outcome as an answer gives it."""
    return Simulated(
        requests=len(seen.e2e_s),
        ttft_s=_times(seen, "ttft"),
        tpot_s=_times(seen, "tpot"),
        e2e_s=_times(seen, "e2e"),
        requests_per_s_per_replica=rate,
        share_within_limits=within(seen, limits),
    )


def _times(seen: Seen, quantity: str) -> RequestTimes:
    mean, p50, p90, p99 = (seen.at(quantity, p) for p in (None, 50, 90, 99))
    return RequestTimes(mean=mean, p50=p50, p90=p90, p99=p99)


def within(seen: Seen, limits: Workload) -> float:
    """Return the share of requests within all limits [-]."""
    good = np.ones(len(seen.e2e_s), bool)
    for quantity, ms in (("ttft", limits.ttft_ms), ("e2e", limits.e2e_ms)):
        if ms:
            good &= getattr(seen, f"{quantity}_s") <= ms / 1e3
    slowest = limits.slowest_tpot_ms
    if slowest and len(seen.tpot_s) == len(good):
        good &= seen.tpot_s <= slowest / 1e3
    return float(good.mean())


def confirmed(question: Question, candidate: Candidate) -> Candidate:
    """Return a candidate whose size meets the limits at their percentiles of requests.

    How much longer a time is at its percentile than on average is taken from a simulation at the
    size so far, and the limit on the mean is tightened by it; again until all are met.
    """
    asked = question.request
    percentiles = {
        "ttft": asked.ttft_requests_percentile,
        "tpot": asked.tpot_requests_percentile,
        "e2e": asked.e2e_requests_percentile,
    }
    start, step = (float(f) for f in candidate.sizing.spread.at(question.z))
    moved = {"ttft": start, "tpot": step, "e2e": max(start, step)}
    for _ in range(ROUNDS):
        if not candidate.replicas or candidate.feeding is not None:
            return candidate  # workers for prompts of their own have no schedule here
        scenario = scenario_of(question, candidate, candidate.replicas)
        seen, _rate = simulated(scenario, candidate.deployment)
        excess, factors = 0.0, dict(question.factors)
        for quantity, limit_s in question.wanted.limits_s.items():
            time_s = seen.at(quantity, percentiles[quantity]) * moved[quantity]
            excess = max(excess, time_s / limit_s)
            mean_s = candidate.sizing.times_s(question.z)[quantity]
            clients = clients_of(scenario, candidate.deployment)
            expected = float(np.interp(clients, candidate.sizing.curve.clients, mean_s))
            factors[quantity] = max(time_s / expected, 1e-3)
        if excess <= (1.0 if asked.of_percentiles else CLOSE):
            return candidate
        question = replace(question, factors=factors)
        candidate = sized(
            question,
            candidate.deployment,
            candidate.engine,
            candidate.feeding,
            candidate.sizing.curve,
            candidate.tariff,
            candidate.transfer,
        )
    return candidate
