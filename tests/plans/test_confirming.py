"""Sizes that a schedule confirms, thins out or refuses, on a simulation whose times are known.

Requests see TTFT in proportion to the requests in flight in a replica, at so many ms each.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import planner.plans.confirm as confirming
from planner.deployment import Deployment
from planner.models import get_model
from planner.plans.candidate import Candidate
from planner.plans.confirm import CLOSE, GROWTHS, confirmed, simulated
from planner.plans.question import Question
from planner.plans.recommend import RecommendationRequest
from planner.plans.search import search
from planner.plans.serving import clients_of
from planner.scenario import Scenario
from planner.serving.simulation.run import Seen
from tests.compare.test_figures import CONFIG, gpu

FIXED = {"tp": 1, "pp": 1, "kv": "bf16", "engine": "vllm", "disaggregated": False}
LENGTHS = {"isl": 1000, "osl": 200}


def candidate_of(**fields: Any) -> tuple[Question, Candidate]:
    request = RecommendationRequest(model=CONFIG, gpu=[gpu()], **FIXED, **LENGTHS, **fields)
    question = Question.of(request, get_model(request.model))
    result = search(question)
    (one,) = result.meeting
    return question, one


class Schedule:
    """Times of a replica by its requests in flight, and how often it was run."""

    def __init__(self, ms_a_client: float) -> None:
        self.ms_a_client = ms_a_client
        self.runs: list[float] = []

    def __call__(self, scenario: Scenario, deployment: Deployment) -> tuple[Seen, float]:
        clients = clients_of(scenario, deployment)
        self.runs.append(clients)
        first = np.full(10, clients * self.ms_a_client / 1e3)
        return Seen(ttft_s=first, tpot_s=first / 100, e2e_s=2 * first), 1.0


def under(monkeypatch: pytest.MonkeyPatch, ms_a_client: float) -> Schedule:
    schedule = Schedule(ms_a_client)
    monkeypatch.setattr(confirming, "simulated", schedule)
    return schedule


def test_what_the_schedule_meets_stays_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    question, one = candidate_of(concurrency_in_all=400, ttft_ms=2000)
    schedule = under(monkeypatch, 0.01)
    assert confirmed(question, one) is one
    assert len(schedule.runs) == 1


def test_a_mean_may_be_two_percent_over(monkeypatch: pytest.MonkeyPatch) -> None:
    """The closed form is confirmed where the schedule is so close to the limit."""
    question, one = candidate_of(concurrency_in_all=64, ttft_ms=2000)
    clients = 64 / one.replicas
    under(monkeypatch, 2000 * (CLOSE - 0.001) / clients)
    assert confirmed(question, one) is one
    under(monkeypatch, 2000 * (CLOSE + 0.001) / clients)
    assert confirmed(question, one).replicas > one.replicas


@pytest.mark.parametrize("times", [1.1, 1.5, 4.0, 8.0])
def test_replicas_are_added_until_the_schedule_meets_the_limit(
    times: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A wait so many times too long takes so many times the replicas, and hardly more."""
    question, one = candidate_of(concurrency_in_all=4000, ttft_ms=2000)
    clients = 4000 / one.replicas
    schedule = under(monkeypatch, times * 2000 / clients)
    result = confirmed(question, one)
    needed = one.replicas * times / CLOSE
    assert needed - 1 <= result.replicas <= np.ceil(needed * 1.2) + 1
    # What is taken met the limit when it was run.
    met = [n for n in schedule.runs if n * schedule.ms_a_client <= 2000 * CLOSE]
    assert max(met) == pytest.approx(4000 / result.replicas)
    assert result.load.binds == "ttft"


def test_what_no_size_meets_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    question, one = candidate_of(concurrency_in_all=4000, ttft_ms=2000)
    schedule = under(monkeypatch, 50 * 2000 / (4000 / one.replicas))
    assert confirmed(question, one).replicas == 0
    assert len(schedule.runs) == 1 + len(GROWTHS)


def test_without_a_demand_requests_are_taken_off(monkeypatch: pytest.MonkeyPatch) -> None:
    """The replicas there are stay, with fewer in flight in each, and whole ones."""
    question, one = candidate_of(gpus=2, ttft_ms=2000)
    clients = int(one.load.clients)
    under(monkeypatch, 2 * 2000 / clients)
    result = confirmed(question, one)
    assert result.replicas == one.replicas == 2
    assert result.load.clients == int(result.load.clients)
    assert clients / 2.5 < result.load.clients <= clients / 2 * CLOSE


def test_percentiles_leave_the_closed_form_less(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where P99 takes times over the mean, so much stricter is the mean's own limit."""
    question, one = candidate_of(concurrency_in_all=64, ttft_ms=2000, ttft_requests_percentile=99)
    clients = 64 / one.replicas
    mean_s = float(np.interp(clients, one.sizing.curve.clients, one.sizing.curve.ttft_s))
    under(monkeypatch, 3 * mean_s * 1e3 / clients)
    result = confirmed(question, one)
    limit = result.sizing.wanted.limits_s["ttft"]
    assert limit == pytest.approx(one.sizing.wanted.limits_s["ttft"] / 3, rel=1e-6)
    # A schedule that is faster than the closed form loosens nothing.
    under(monkeypatch, mean_s * 1e3 / clients / 3)
    assert confirmed(question, one).sizing.wanted.limits_s["ttft"] == pytest.approx(2.0)


def test_nothing_is_confirmed_of_what_was_missed(monkeypatch: pytest.MonkeyPatch) -> None:
    request = RecommendationRequest(
        model=CONFIG, gpu=[gpu()], **FIXED, **LENGTHS, concurrency_in_all=4, tpot_ms=0.01
    )
    question = Question.of(request, get_model(request.model))
    (one,) = search(question).missing
    schedule = under(monkeypatch, 1.0)
    assert confirmed(question, one) is one
    assert schedule.runs == []


@settings(max_examples=4, deadline=None)
@given(
    st.sampled_from(
        [
            {"concurrency": 4},
            {"users": 8, "think_time_s": 0.2},
            {"requests_per_s": 5.0, "arrival_cv": 2.0},
            {"concurrency_in_all": 4},
        ]
    )
)
def test_a_simulation_is_the_same_each_time(load: dict[str, Any]) -> None:
    """Its seed is fixed, so that an answer does not change from one call to the next."""
    from planner.deployment import deployment_of

    scenario = Scenario(model=CONFIG, gpu=gpu(), engine="vllm", isl=200, osl=20, **load)
    one = deployment_of(scenario)
    first, second = (simulated(scenario, one) for _ in range(2))
    assert first[1] == second[1]
    assert (first[0].e2e_s == second[0].e2e_s).all()
    assert (first[0].e2e_s >= first[0].ttft_s).all()
    assert (first[0].tpot_s > 0).all()
