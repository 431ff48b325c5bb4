"""Recommendations for a workload: they agree with plans, meet their limits, and say what gives."""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

from planner.deployment import deployment_of
from planner.models import get_model
from planner.plans.curves import shared_curve
from planner.plans.planning import plan
from planner.plans.question import Question
from planner.plans.recommend import RecommendationRequest, recommend
from planner.plans.search import search
from planner.plans.sized import Sized, SizedOption
from planner.plans.space import Axes, splits
from planner.plans.uncertainty import factor, z_of
from planner.scenario import Scenario
from planner.serving.steady import serve
from planner.workload.sessions import InvalidSession, session_hit

MOE = "openai/gpt-oss-120b"
LLAMA = "RedHatAI/Meta-Llama-3.1-70B-Instruct-FP8"
CHAT = {"model": MOE, "gpu": ["h100-sxm5"], "engine": "vllm", "isl": 2000, "osl": 500}


@cache
def _answered(items: tuple[tuple[str, Any], ...]) -> Sized:
    fields = {k: list(v) if isinstance(v, tuple) else v for k, v in items}
    sized = recommend(RecommendationRequest(**fields)).sized
    assert sized is not None
    return sized


def sized(**fields: Any) -> Sized:
    merged = {**CHAT, "confirm": False, **fields}
    return _answered(tuple((k, tuple(v) if isinstance(v, list) else v) for k, v in merged.items()))


@pytest.mark.parametrize("apart", [False, True])
@pytest.mark.parametrize(
    "demand",
    [
        {"concurrency_in_all": 400},
        {"users": 1000, "think_time_s": 20.0},
        {"requests_per_s": 20.0},
        {"gpus": 8},
    ],
    ids=lambda d: next(iter(d)),
)
def test_an_option_and_its_plan_agree_to_the_last_figure(
    demand: dict[str, Any], apart: bool
) -> None:
    answer = sized(**demand, tpot_ms=40, ttft_ms=2000, disaggregated=apart)
    assert answer.options
    for option in answer.options:
        serving = plan(option.scenario).serving
        assert serving is not None
        assert option.ttft_s == serving.ttft_s
        assert option.tpot_s == serving.tpot_s
        assert option.requests_per_s == serving.requests_per_s
        assert option.output_tokens_per_s == serving.output_tokens_per_s
        assert (option.prefill is not None) == apart


def test_prompts_count() -> None:
    """The issue's example: gpt-oss-120b on two H100, 40 ms, 2000 in and 500 out. A context alone
    said 10.7 ktok/s per GPU where a plan with prompts allows a part of it."""
    [option] = sized(
        tp=2, pp=1, ep=1, attention_dp=1, kv="bf16", gpus=2, tpot_ms=40, disaggregated=False
    ).options
    most = plan(option.scenario.model_copy(update={"concurrency": option.scenario.concurrency + 1}))
    assert option.tpot_s.p50 <= 0.040 < most.serving.tpot_s.p50
    alone = recommend(
        RecommendationRequest(
            model=MOE, gpu=["h100-sxm5"], tp=2, context=2250, engine="vllm", tpot_ms=40
        )
    )
    assert {note.code for note in alone.notes} >= {"no_prompts"}
    assert alone.choices[0].tokens_per_s_per_gpu > 2 * option.output_tokens_per_s_per_gpu


def limits_of(option: SizedOption) -> tuple[float, float]:
    return option.ttft_s.p50, option.tpot_s.p50


@pytest.mark.parametrize("percentile", [50, 80])
def test_limits_hold_at_the_percentile_of_the_uncertainty(percentile: float) -> None:
    answer = sized(concurrency_in_all=300, tpot_ms=30, ttft_ms=3000, percentile=percentile)
    for option in answer.options:
        deployment = deployment_of(option.scenario)
        start, step = (
            float(factor(deployment.interval(q), z_of(percentile))) for q in ("ttft", "tpot")
        )
        ttft, tpot = limits_of(option)
        assert ttft * start <= 3.0 * (1 + 1e-9)
        assert tpot * step <= 0.030 * (1 + 1e-9)
        assert option.probability >= percentile / 100 - 0.03


def test_the_band_holds_the_number_and_grows_with_certainty() -> None:
    likely, sure = (sized(concurrency_in_all=2000, tpot_ms=30, percentile=p) for p in (50, 85))
    for option in likely.options:
        needed = option.gpus_needed
        assert needed.p10 is not None
        assert needed.p10 <= option.gpus
        assert needed.p90 is None or needed.p90 >= option.gpus
    assert min(o.gpus for o in sure.options) > min(o.gpus for o in likely.options)


def test_gpus_are_replicas_times_a_replica_and_workers() -> None:
    for apart in (False, True):
        for option in sized(requests_per_s=40.0, tpot_ms=40, disaggregated=apart).options:
            workers = option.prefill.workers * option.prefill.gpus_per_worker if apart else 0
            assert option.gpus == option.replicas * option.gpus_per_replica + workers
            assert option.summary.startswith(f"{option.gpus} GPU")


def test_what_is_named_is_best_and_none_of_the_front_is_beaten() -> None:
    answer = sized(concurrency_in_all=500, tpot_ms=30)
    options = answer.options
    assert answer.cheapest is not None
    costs = [o.money.usd_per_month for o in options if o.money]
    assert options[answer.cheapest].money.usd_per_month == min(costs)
    assert options[answer.smallest].gpus == min(o.gpus for o in options)
    assert options[answer.fastest].e2e_s.p50 == min(o.e2e_s.p50 for o in options)


def test_an_impossible_target_says_what_to_relax() -> None:
    answer = sized(concurrency_in_all=100, tpot_ms=1)
    assert not answer.options
    [relax] = answer.nearest.relax
    assert (relax.field, relax.given) == ("tpot_ms", 1)
    again = sized(concurrency_in_all=100, tpot_ms=relax.needed)
    assert again.options
    assert not sized(concurrency_in_all=100, tpot_ms=relax.needed * 0.97).options


def test_too_few_gpus_say_how_many_it_takes() -> None:
    answer = sized(concurrency_in_all=3000, tpot_ms=30, gpus=2, disaggregated=False)
    [relax] = answer.nearest.relax
    assert (relax.field, relax.given) == ("gpus", 2)
    assert relax.needed > 2


def test_percentiles_of_requests_take_more_than_means() -> None:
    """At twice the burst, 99% of first tokens in the time that the mean meets takes more GPUs."""
    open_loop = {"requests_per_s": 30.0, "arrival_cv": 2.0, "tp": 2, "pp": 1, "attention_dp": 1}
    mean = sized(**open_loop, ttft_ms=500, disaggregated=False)
    tail = sized(**open_loop, ttft_ms=500, ttft_requests_percentile=99)
    assert min(o.gpus for o in tail.options) >= min(o.gpus for o in mean.options)
    chosen = tail.options[tail.smallest]
    assert chosen.simulated.ttft_s.p99 <= 0.500 * 1.0001
    assert chosen.simulated.ttft_s.p50 <= chosen.simulated.ttft_s.p99


def test_every_legal_option_of_a_node_is_evaluated() -> None:
    """Ten splits of a dense model over 8 GPUs, by two cache formats under vLLM and SGLang, whose
    default is 16 bits, and by one under TensorRT-LLM, whose default is 8: 50 that serve whole, and
    each of them decoding, fed by each of its ten."""
    request = RecommendationRequest(
        model=LLAMA, gpu=["h200-sxm"], gpus=8, isl=4000, osl=500, ttft_ms=2000, tpot_ms=50
    )
    searched = search(Question.of(request, get_model(LLAMA)))
    assert searched.evaluated == 50 + 50 * 10
    assert not searched.refused


def test_splits_are_powers_of_two_within_the_domain() -> None:
    from planner.engines.settings import MemorySettings
    from planner.hw import get_accelerator

    spec, gpu = get_model(MOE), get_accelerator("h100-sxm5")
    found = list(splits(spec, gpu, Axes(MemorySettings())))
    assert len(found) == len(set(found))
    assert all(math.log2(s.gpus).is_integer() and s.gpus <= 8 for s in found)
    assert all(s.ep in (1, s.ranks) for s in found)


def test_a_curve_is_that_of_the_exact_steady_state() -> None:
    deployment = deployment_of(Scenario(model=LLAMA, gpu="h200-sxm", tp=4, engine="vllm"))
    request = RecommendationRequest(model=LLAMA, isl=4000, osl=500)
    requests = Question.of(request, get_model(LLAMA)).requests
    curve = shared_curve(deployment, requests)
    assert curve is not None
    exact = serve(deployment, curve.clients, requests.isl, requests.osl)
    assert np.allclose(curve.tpot_s, exact.tpot_s, rtol=0.01)
    assert np.allclose(curve.ttft_s, exact.ttft_s, rtol=0.01)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"users": 10, "requests_per_s": 1}, "one of them"),
        ({"think_time_s": 3}, "with users"),
        ({"prefix_hit": 0.5, "turns": 3}, "either"),
        ({"isl": None}, "isl"),
        ({"gpus": 8, "usd_per_month": 100}, "one of them"),
        ({"ttft_requests_percentile": 99, "disaggregated": True}, "percentiles"),
    ],
)
def test_contradictions_are_refused_by_name(fields: dict[str, Any], words: str) -> None:
    with pytest.raises(ValidationError, match=words):
        RecommendationRequest(**{**CHAT, **fields})


def test_a_session_finds_what_was_said_before() -> None:
    """Prefix 500, ten turns, answers of 100: ISL 2000 = 500 + u·11/2 + 100·9/2, so u = 190.9; of
    2000 tokens 190.9 are new."""
    assert float(session_hit(2000, 100, 10, 500)) == pytest.approx(1 - 1050 * 2 / 11 / 2000)
    assert float(session_hit(2000, 100, 10, 500, held=0.0)) == pytest.approx(0.25)
    with pytest.raises(InvalidSession, match="turns"):
        session_hit(100, 500, 10, 0)


def test_users_who_think_are_fewer_in_flight() -> None:
    """c + X·Z = U (Little 1961)."""
    base = Scenario(
        model=MOE,
        gpu="h100-sxm5",
        tp=2,
        engine="vllm",
        isl=2000,
        osl=500,
        users=200,
        think_time_s=20,
    )
    serving = plan(base).serving
    in_flight = serving.requests_per_s * (serving.ttft_s.p50 + 499 * serving.tpot_s.p50)
    assert in_flight + serving.requests_per_s * 20 == pytest.approx(200, rel=1e-3)


def test_a_rate_is_served_or_said_to_be_too_much() -> None:
    base = Scenario(
        model=MOE, gpu="h100-sxm5", tp=2, engine="vllm", isl=2000, osl=500, requests_per_s=5
    )
    served = plan(base)
    assert served.serving.requests_per_s == pytest.approx(5, rel=1e-6)
    flooded = plan(base.model_copy(update={"requests_per_s": 500}))
    assert "overload" in {note.code for note in flooded.notes}
    assert flooded.serving.requests_per_s < 100
