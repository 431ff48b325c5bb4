"""What a search yields on a small model and machines of round numbers, and how options compare.

The machine does 1e14 FLOP/s in bf16 and reads 1e12 byte/s; others are so many times as fast. Prices
are of one's own, so that a month is a multiple of 730 hours.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cache
from itertools import pairwise
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import planner.plans.search as searching
from planner.deployment import Deployment, deploy
from planner.models import get_model
from planner.plans.candidate import Candidate, Feeding, feeding_workers, within_means
from planner.plans.confirm import answer_simulated, within
from planner.plans.curves import Curve
from planner.plans.money import Tariff
from planner.plans.nearest import nearest
from planner.plans.planning import plan
from planner.plans.question import Question
from planner.plans.recommend import RecommendationRequest, front_of, recommend, thinned
from planner.plans.search import Searched, search
from planner.plans.sized import Sized
from planner.plans.sizing import Sizing, Wanted
from planner.plans.uncertainty import Spread
from planner.serving.simulation.run import Seen
from planner.step.parallel import Sharding
from planner.workload.fields import RequestLimits, Workload
from tests.compare.test_figures import CONFIG, gpu
from tests.step.machine import DENSE, machine

LOAD: dict[str, Any] = {"isl": 1000, "osl": 200, "concurrency_in_all": 64}
ONE = {"tp": 1, "pp": 1, "kv": "bf16", "engine": "vllm", "disaggregated": False, "confirm": False}


def request(**fields: Any) -> RecommendationRequest:
    return RecommendationRequest(**{"model": CONFIG, "gpu": [gpu()], **LOAD, **ONE, **fields})


def question(**fields: Any) -> Question:
    one = request(**fields)
    return Question.of(one, get_model(one.model))


def answered(**fields: Any) -> Sized:
    sized = recommend(request(**fields)).sized
    assert sized is not None
    return sized


def test_one_option_is_evaluated_where_all_is_fixed() -> None:
    result = search(question())
    assert (result.evaluated, len(result.meeting), result.missing) == (1, 1, [])
    (one,) = result.meeting
    assert (one.engine, one.feeding, one.deployment.sharding.gpus) == ("vllm", None, 1)


def test_degrees_that_are_open_are_powers_of_two() -> None:
    """Of 8 GPUs at most 1, 2, 4 and 8 ranks; 16 heads split over all of them."""
    result = search(question(tp=None, gpus=8, concurrency_in_all=None))
    ranks = sorted(one.deployment.sharding.tp for one in result.meeting)
    assert ranks == [1, 2, 4, 8]
    # Without a demand all 8 GPUs are used: 8, 4, 2 and 1 replicas.
    assert sorted(one.replicas for one in result.meeting) == [1, 2, 4, 8]
    assert {one.gpus for one in result.meeting} == {8}


def test_what_cannot_hold_the_model_is_refused_with_its_count() -> None:
    """Weights of 0.37 GB in bf16 on a card of 0.1 GB, and so on none of its formats."""
    small = {**gpu(name="small"), "memory_bytes": 1e8, "link": None}
    result = search(question(gpu=[gpu(), small], kv=["bf16", "fp8"]))
    count, reason = result.refused["small"]
    assert count == 2
    assert reason.startswith("weights take 0.4 GB per GPU at 1 GPUs, memory is 0.1 GB")
    assert {one.gpu for one in result.meeting} == {"one"}


def test_a_request_too_long_for_memory_has_no_room() -> None:
    """2·8·4·64·2 bytes are 8,192 a token: 1e6 tokens take 8.2 GB of a card of 1.2 GB."""
    model = {**CONFIG, "max_position_embeddings": 2_000_000}
    small = {**gpu(name="small"), "memory_bytes": 1.2e9, "link": None}
    result = search(question(model=model, gpu=[small], engine=None, isl=1_000_000))
    assert result.meeting == []
    (_, reason) = result.refused["small"]
    assert "not one request of 1e+06 tokens fits 1 GPUs beside 0." in reason


@pytest.mark.parametrize(
    ("fields", "usd", "most"),
    [
        ({}, 2.0, None),
        ({"gpus": 6}, 2.0, 6),
        # 2 USD an hour are 1,460 a month: 7,000 pay for four, and at half the duty for nine.
        ({"usd_per_month": 7000.0}, 2.0, 4),
        ({"usd_per_month": 7000.0, "duty_cycle": 0.5}, 2.0, 9),
        ({"usd_per_month": 1459.0}, 2.0, 0),
        # Without a price on record a budget pays for none.
        ({"usd_per_month": 7000.0}, None, 0),
    ],
)
def test_gpus_that_there_are(fields: dict[str, Any], usd: float | None, most: int | None) -> None:
    tariff = None if usd is None else Tariff(usd, "own", None, None, 1)
    assert question(**fields).most_gpus(tariff) == most


def test_more_of_everything_serves_more() -> None:
    """Twice the clients take twice the replicas, in steps of one."""
    needed = [
        search(question(concurrency_in_all=clients, tpot_ms=1.2)).meeting[0].replicas
        for clients in (100, 200, 400, 800)
    ]
    assert needed == sorted(needed)
    for fewer, more in pairwise(needed):
        assert more in (2 * fewer - 1, 2 * fewer)


def test_an_accelerator_ten_times_as_fast_is_the_smallest() -> None:
    sized = answered(
        gpu=[gpu(), gpu(1e13, "ten")], usd_per_gpu_hour=2.0, tpot_ms=0.7, concurrency_in_all=400
    )
    assert sized.smallest is not None
    best = sized.options[sized.smallest]
    assert best.gpu == "ten"
    assert best.money is not None
    assert best.money.usd_per_month == pytest.approx(2.0 * best.gpus * 730)


def test_a_search_in_two_rounds_keeps_the_best(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tensor parallelism on all machines, and stages of a pipeline on the best of them alone."""
    names = [f"m{n}" for n in range(4)]
    machines = [gpu((n + 1) * 1e12, name) for n, name in enumerate(names)]
    fields = {"gpu": machines, "tp": None, "pp": None, "gpus": 4, "concurrency_in_all": None}
    whole = search(question(**fields))
    assert not whole.staged
    monkeypatch.setattr(searching, "SECOND_ROUND", 2)
    monkeypatch.setattr(searching, "MOST_WHOLE", 5)
    staged = search(question(**fields))
    assert staged.staged
    assert staged.options == 4 * len({(1, 1), (1, 2), (2, 1), (1, 4), (2, 2), (4, 1)})
    with_stages = {one.gpu for one in staged.meeting if one.deployment.sharding.pp > 1}
    assert "m3" in with_stages
    assert len(with_stages) < 4
    assert {one.gpu for one in staged.meeting} == set(names)
    # No option stands twice.
    kinds = [(c.gpu, c.deployment.sharding, c.deployment.formats.kv.id) for c in staged.meeting]
    assert len(kinds) == len(set(kinds))
    best = [max(c.served for c in result.meeting) for result in (whole, staged)]
    assert best[0] == pytest.approx(best[1])


def test_prompts_apart_are_fed_by_enough_workers() -> None:
    result = search(question(disaggregated=True, concurrency_in_all=500, isl=4000))
    (one,) = result.meeting
    assert one.feeding is not None
    needed = one.replicas * one.rate * one.feeding.prompt_s / one.feeding.busy
    assert one.prefill_workers == math.ceil(needed - 1e-9)
    assert one.gpus == one.replicas + one.prefill_workers


def test_limits_that_none_meets_name_what_to_relax() -> None:
    """At the time that is named the search finds an option, and just below it none."""
    sized = answered(tpot_ms=0.01)
    assert sized.options == []
    assert sized.nearest is not None
    (relax,) = sized.nearest.relax
    assert (relax.field, relax.given) == ("tpot_ms", 0.01)
    assert f"relax tpot_ms from 0.01 to {relax.needed:g}" in sized.nearest.text
    assert answered(tpot_ms=relax.needed).options
    assert not answered(tpot_ms=relax.needed * 0.98).options
    # Three digits, rounded up.
    assert float(f"{relax.needed:.3g}") == pytest.approx(relax.needed)


def test_two_limits_are_relaxed_together() -> None:
    sized = answered(tpot_ms=0.01, ttft_ms=0.01)
    assert sized.nearest is not None
    fields = {one.field: one.needed for one in sized.nearest.relax}
    assert set(fields) == {"tpot_ms", "ttft_ms"}
    assert answered(**fields).options


def test_a_budget_that_is_too_small_names_the_one_that_is_not() -> None:
    spent = {"usd_per_gpu_hour": 2.0, "usd_per_month": 1500.0}
    sized = answered(**spent, concurrency_in_all=4000, tpot_ms=1.2)
    assert sized.nearest is not None
    (relax,) = sized.nearest.relax
    assert (relax.field, relax.given) == ("usd_per_month", 1500.0)
    assert relax.needed == pytest.approx(2.0 * 730 * sized.nearest.option.gpus)
    assert sized.nearest.text.startswith(f"the limits need ${relax.needed:,.0f} a month: ")


def test_without_a_demand_one_replica_may_be_too_large() -> None:
    sized = answered(gpus=1, tp=2, concurrency_in_all=None)
    assert sized.nearest is not None
    (relax,) = sized.nearest.relax
    assert (relax.field, relax.given, relax.needed) == ("gpus", 1, 2)


def test_nothing_evaluated_is_near_nothing() -> None:
    assert nearest(question(), Searched()) is None


@cache
def deployment(tp: int = 1) -> Deployment:
    return deploy(DENSE, machine(), Sharding(tp=tp))


def candidate(
    replicas: int = 4, *, tp: int = 1, feeding: Feeding | None = None, usd: float | None = 2.0
) -> Candidate:
    """Replicas of which each serves 10 clients in 0.5 s + 100 steps of 15 ms, so 5 a second."""
    loads = np.array([1.0, 10.0])
    curve = Curve(loads, loads, loads * 0.05, loads * 1.5e-3, loads, loads * 0, 100.0, 10)
    wanted = Wanted({"e2e": 4.0}, "requests_per_s", 20.0, 0.0)
    sizing = Sizing(curve, Spread((1.0, 1.0), (1.0, 1.0)), wanted)
    tariff = None if usd is None else Tariff(usd, "own", None, None, 1)
    load = sizing.most()
    return Candidate(deployment(tp), None, feeding, sizing, load, replicas, tariff)


def test_figures_of_an_option() -> None:
    one = candidate(tp=2)
    assert one.load.clients == 10
    assert (one.e2e_s, one.rate) == (pytest.approx(2.0), pytest.approx(5.0))
    assert (one.gpus, one.served) == (8, pytest.approx(20.0))
    assert one.usd() == pytest.approx(2.0 * 8 / 20)
    assert candidate(usd=None).usd() == math.inf
    # One client takes a tenth of the time: 0.2 of 4 s.
    assert one.worst(0.0) == pytest.approx(0.05)


@pytest.mark.parametrize(
    ("rate", "prompt_s", "busy", "workers"),
    [(10, 0.1, 0.5, 2), (10.01, 0.1, 0.5, 3), (0.001, 0.1, 0.5, 1), (40, 0.25, 0.8, 13)],
)
def test_workers_for_prompts(rate: float, prompt_s: float, busy: float, workers: int) -> None:
    """Rate times the time of a prompt, over the share of the time that a worker works."""
    feeding = Feeding(deployment(), prompt_s, busy)
    assert feeding_workers(feeding, rate) == workers
    assert feeding_workers(None, rate) == 0


def test_workers_count_among_the_gpus() -> None:
    """20 requests a second of 0.1 s each at half the time: 4 workers of 2 GPUs."""
    one = candidate(feeding=Feeding(deployment(2), 0.1, 0.5))
    assert (one.prefill_workers, one.gpus) == (4, 4 + 8)


def test_a_front_leaves_out_what_is_beaten() -> None:
    query = question(requests_per_s=20.0, concurrency_in_all=None)
    cheap, dear, many = candidate(4), candidate(4, usd=3.0), candidate(5)
    assert front_of(query, [dear, many, cheap]) == [cheap]
    # Dearer in all and fewer is no worse, nor is what has no price.
    fewer = candidate(3, usd=9.0)
    assert front_of(query, [cheap, fewer]) == [cheap, fewer]
    assert within_means(query, many)
    few = question(requests_per_s=20.0, concurrency_in_all=None, gpus=4)
    assert (within_means(few, cheap), within_means(few, many)) == (True, False)


@settings(max_examples=30, deadline=None)
@given(st.lists(st.integers(1, 50), min_size=1, max_size=60, unique=True), st.integers(3, 12))
def test_a_long_front_keeps_its_ends(counts: list[int], most: int) -> None:
    front = [candidate(count) for count in counts]
    thin = thinned(front, most)
    assert len(thin) <= max(most + 3, 0)
    assert thin[0] is front[0]
    assert min(one.gpus for one in thin) == min(counts)
    positions = [front.index(one) for one in thin]
    assert positions == sorted(set(positions))


SEEN = Seen(
    ttft_s=np.array([0.1, 0.2, 0.3, 0.4]),
    tpot_s=np.array([0.01, 0.02, 0.03, 0.04]),
    e2e_s=np.array([1.0, 2.0, 3.0, 4.0]),
)


@pytest.mark.parametrize(
    ("limits", "share"),
    [
        ({}, 1.0),
        ({"ttft_ms": 200}, 0.5),
        ({"tpot_ms": 30}, 0.75),
        ({"tokens_per_s_per_user": 100}, 0.25),  # 10 ms a token
        ({"ttft_ms": 300, "e2e_ms": 2000}, 0.5),
        ({"e2e_ms": 999}, 0.0),
    ],
)
def test_requests_within_all_limits(limits: dict[str, float], share: float) -> None:
    assert within(SEEN, Workload(**limits)) == share


def test_times_that_were_simulated() -> None:
    """Of 0.1 to 0.4: mean and median 0.25, P90 0.7 of the way from 0.3 to 0.4."""
    result = answer_simulated(SEEN, 7.0, Workload(ttft_ms=200))
    assert (result.requests, result.requests_per_s_per_replica) == (4, 7.0)
    assert result.ttft_s.mean == result.ttft_s.p50 == pytest.approx(0.25)
    assert result.ttft_s.p90 == pytest.approx(0.37)
    assert result.e2e_s.p99 == pytest.approx(3.97)
    assert result.share_within_limits == 0.5


def test_requests_of_one_token_have_no_time_between() -> None:
    outcome = SimpleNamespace(
        first_token_s=np.arange(10.0),
        tpot_s=np.full(10, 0.5),
        e2e_s=np.arange(10.0),
        outputs=np.array([1.0] * 10),
    )
    seen = Seen.of(cast("Any", outcome), 0.2)
    assert (len(seen.e2e_s), len(seen.tpot_s)) == (8, 0)
    assert seen.at("tpot", 99) == 0.0
    assert seen.at("ttft", None) == pytest.approx(5.5)
    assert within(seen, Workload(tpot_ms=1)) == 1.0


def test_the_stricter_limit_on_a_stream_counts() -> None:
    """50 tokens a second are 20 ms a token."""
    assert RequestLimits(tpot_ms=30, tokens_per_s_per_user=50).slowest_tpot_ms == 20
    assert RequestLimits(tpot_ms=10, tokens_per_s_per_user=50).slowest_tpot_ms == 10
    assert RequestLimits().slowest_tpot_ms is None


def test_an_option_is_what_its_scenario_s_plan_says() -> None:
    sized = answered(tpot_ms=1.2, concurrency_in_all=700)
    (option,) = sized.options
    serving = plan(option.scenario).serving
    assert serving is not None
    assert serving.tpot_s == option.tpot_s
    assert serving.requests_per_s == option.requests_per_s
    assert option.summary.startswith(f"{option.gpus} GPUs = {option.replicas} replicas × TP 1, ")
    assert option.tokens_per_s_per_user == pytest.approx(1 / option.tpot_s.p50)
    steps = LOAD["osl"] - 1
    assert option.e2e_s.p50 == pytest.approx(option.ttft_s.p50 + steps * option.tpot_s.p50)


def test_one_replica_is_said_in_the_singular() -> None:
    (option,) = answered(concurrency_in_all=1).options
    assert option.summary == "1 GPU = 1 replica × TP 1, 1 request in flight each"


def test_a_missed_candidate_has_no_replicas() -> None:
    missing = search(question(tpot_ms=0.01)).missing
    assert [one.replicas for one in missing] == [0]
    assert replace(missing[0], replicas=2).gpus == 2
