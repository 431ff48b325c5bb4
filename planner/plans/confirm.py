"""Options under their engine's schedule: percentiles over requests, and sizes that meet them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import ceil

import numpy as np

from planner.deployment import Deployment
from planner.plans.candidate import Candidate
from planner.plans.question import Question
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
GROWTHS = (1.15, 1.4, 2.0, 3.0, 5.0, 9.0)
"""Times as many replicas that are tried in turn [-]."""
ROUNDS = 3
"""Halvings between the last that misses the limits and the first that meets them [-]."""
CLOSE = 1.02
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


@dataclass(frozen=True, slots=True)
class Checked:
    """A candidate under its schedule."""

    candidate: Candidate
    excess: float
    """Largest time over its limit [-]."""
    binds: str
    factors: dict[str, float]
    """Each limited time over that of the closed form [-]."""


def confirmed(question: Question, candidate: Candidate) -> Candidate:
    """Return a candidate whose size meets the limits under its engine's schedule.

    Limits are at their percentiles of requests, or on means. Replicas are added, or without a
    demand requests in flight taken off, until a simulation meets them; then fewer again, as far as
    it does. Its limits on the closed form's means are those that the schedule leaves of them, so
    that its probability and interval count it. Without a size that does it has no replicas.
    """
    if not candidate.replicas or candidate.feeding is not None:
        return candidate  # workers for prompts of their own have no schedule here
    allowed = 1.0 if question.request.of_percentiles else CLOSE
    checked = _check(question, candidate)
    if checked.excess <= allowed:
        return candidate if not question.request.of_percentiles else _tightened(checked)
    low, best = 1.0, None
    for growth in GROWTHS:
        tried = _check(question, _thinner(question, candidate, growth))
        if tried.excess <= allowed:
            best, high = tried, growth
            break
        low = growth
    if best is None:
        return replace(candidate, replicas=0)
    for _ in range(ROUNDS):
        middle = (low * high) ** 0.5
        tried = _check(question, _thinner(question, candidate, middle))
        if tried.excess <= allowed:
            best, high = tried, middle
        else:
            low = middle
    return _tightened(best)


def _thinner(question: Question, candidate: Candidate, growth: float) -> Candidate:
    """Return a candidate with so many times fewer requests in flight in a replica."""
    clients = candidate.load.clients / growth
    replicas = candidate.replicas
    if question.wanted.demand:
        replicas = ceil(replicas * growth)
    else:
        clients = max(1.0, float(int(clients)))
    served = candidate.sizing.served(clients, question.z)
    load = replace(candidate.load, clients=clients, served=served)
    return replace(candidate, load=load, replicas=replicas)


def _check(question: Question, candidate: Candidate) -> Checked:
    """Return a candidate with what its requests see at its actual load."""
    request = question.request
    percentiles = {
        "ttft": request.ttft_requests_percentile,
        "tpot": request.tpot_requests_percentile,
        "e2e": request.e2e_requests_percentile,
    }
    start, step = (float(f) for f in candidate.sizing.spread.at(question.z))
    moved = {"ttft": start, "tpot": step, "e2e": max(start, step)}
    scenario = scenario_of(question, candidate, candidate.replicas)
    seen, _ = simulated(scenario, candidate.deployment)
    clients = clients_of(scenario, candidate.deployment)
    means_s = candidate.sizing.times_s(question.z)
    excess, factors = {"": 0.0}, {}
    for quantity, limit_s in question.wanted.limits_s.items():
        time_s = seen.at(quantity, percentiles[quantity]) * moved[quantity]
        mean_s = np.interp(clients, candidate.sizing.curve.clients, means_s[quantity])
        excess[quantity] = time_s / limit_s
        factors[quantity] = max(time_s / float(mean_s), 1e-3)
    binds = max(excess, key=lambda name: excess[name])
    return Checked(candidate, excess[binds], binds, factors)


def _tightened(checked: Checked) -> Candidate:
    """Return a candidate with the limits on the closed form's means that its schedule leaves."""
    candidate, factors = checked.candidate, checked.factors
    stricter = {name: max(factor, 1.0) for name, factor in factors.items()}
    sizing = replace(candidate.sizing, wanted=candidate.sizing.wanted.tightened(stricter))
    return replace(
        candidate, sizing=sizing, load=replace(candidate.load, binds=checked.binds or "room")
    )
