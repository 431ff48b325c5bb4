"""Limits on TPOT and TTFT: what is said when they are missed, and the load that meets them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.deployment import deployment_of
from planner.plans.advice import advise
from planner.plans.planning import plan
from planner.plans.targets import largest, largest_batch, percentile_factor
from planner.scenario import Scenario
from planner.serving.steady import serve

LLAMA = "meta-llama/Llama-3.1-70B-Instruct"
BASE = Scenario(model=LLAMA, gpu="h100-sxm5", tp=4, engine="vllm")


@given(st.integers(0, 5000), st.integers(0, 5000))
def test_the_largest_load_is_found(true: int, most: int) -> None:
    assert largest(lambda loads: np.asarray(loads <= true), most) == min(true, most)


def missed(**asked: object) -> list[str]:
    answer = plan(BASE.model_copy(update=asked))
    return [note.text for note in answer.notes if note.code == "limit_missed"]


def test_a_met_limit_is_silent() -> None:
    assert missed(batch=[8], context=[8192], tpot_ms=1000.0) == []
    assert missed(concurrency=8, isl=512, osl=512, tpot_ms=1000.0, ttft_ms=60_000.0) == []


def test_a_missed_tpot_limit_names_the_largest_batch() -> None:
    deployment = deployment_of(BASE)
    limit_s = float(deployment.time_s(20.0, 8192.0)) * 1.0001
    (text,) = missed(batch=[64], context=[8192], tpot_ms=limit_s * 1e3)
    assert "the largest batch within it is 20" in text
    assert largest_batch(deployment, 8192, limit_s, 60) == 20


def test_a_missed_limit_under_load_names_the_largest_concurrency() -> None:
    deployment = deployment_of(BASE)
    limit_s = float(serve(deployment, 16.0, 1024, 256).tpot_s) * 1.0001
    (text,) = missed(concurrency=64, isl=1024, osl=256, tpot_ms=limit_s * 1e3)
    assert "the largest concurrency within it is 16" in text


def test_each_missed_limit_names_the_largest_concurrency_of_its_own() -> None:
    asked = {"concurrency": 64, "isl": 1024, "osl": 256}
    (alone,) = missed(**asked, ttft_ms=200.0)
    tpot, ttft = missed(**asked, tpot_ms=0.001, ttft_ms=200.0)
    assert "no concurrency is within it" in tpot
    assert ttft == alone
    assert "the largest concurrency within it is" in ttft


@pytest.mark.parametrize("quantity", ["tpot", "ttft"])
def test_percentiles_pass_through_the_interval(quantity: str) -> None:
    deployment = deployment_of(BASE)
    low, high = deployment.interval(quantity)
    assert percentile_factor(deployment, quantity, 50) == 1
    assert percentile_factor(deployment, quantity, 90) == pytest.approx(high)
    assert percentile_factor(deployment, quantity, 10) == pytest.approx(low)
    assert percentile_factor(deployment, quantity, 99) >= high


def test_one_output_token_is_noted() -> None:
    answer = plan(BASE.model_copy(update={"concurrency": 4, "isl": 100, "osl": 1}))
    assert "one_output_token" in {note.code for note in answer.notes}


def test_levers_are_the_ratio_of_two_answers() -> None:
    asked = BASE.model_copy(update={"batch": [1], "context": [1024]})
    told = advise(asked)
    assert told[0].code == "batch_more"  # one sequence leaves most of the machine idle
    assert told[0].gain < 1 < (told[0].gain_per_gpu or 0)
    levers = {lever.code: lever.gain for lever in told[1:]}
    before = plan(asked).points[0].tpot_s.p50
    after = plan(asked.model_copy(update={"tp": 8})).points[0].tpot_s.p50
    assert levers["tp_double"] == pytest.approx(before / after)
    assert list(levers.values()) == sorted(levers.values(), reverse=True)
    assert all(gain > 1 for gain in levers.values())


def test_a_plan_tells_the_levers_of_its_last_point() -> None:
    asked = BASE.model_copy(update={"batch": [1, 256], "context": [1024, 8192]})
    last = BASE.model_copy(update={"batch": [256], "context": [8192]})
    assert plan(asked, advice=True).advice == list(advise(last))
    assert advise(last)
    assert plan(asked).advice is None
    defaults = plan(BASE, advice=True)
    point = defaults.points[-1]
    last = BASE.model_copy(update={"batch": [point.batch], "context": [point.context]})
    assert defaults.advice == list(advise(last))


def test_the_verdict_says_what_the_notes_say() -> None:
    deployment = deployment_of(BASE)
    limit_s = float(deployment.time_s(20.0, 8192.0)) * 1.0001
    question = BASE.model_copy(update={"batch": [64], "context": [8192], "tpot_ms": limit_s * 1e3})
    answer = plan(question)
    (meets,) = answer.verdict.meets
    assert (meets.limit, meets.batch, meets.max_batch, meets.ok) == ("tpot_ms", 64, 20, False)
    assert meets.value_ms == pytest.approx(answer.points[0].tpot_s.p50 * 1e3)
    assert answer.verdict.fits == (answer.memory.max_batch >= 64)
    assert plan(BASE).verdict.meets == []


@pytest.mark.parametrize("share", [10, 50, 90])
def test_the_probability_of_a_limit_at_a_percentile_is_that_percentile(share: int) -> None:
    question = BASE.model_copy(update={"batch": [8], "context": [8192]})
    limit_ms = getattr(plan(question).points[0].tpot_s, f"p{share}") * 1e3
    (meets,) = plan(question.model_copy(update={"tpot_ms": limit_ms})).verdict.meets
    assert meets.probability == pytest.approx(share / 100, abs=1e-6)
    load = {"concurrency": 16, "isl": 1024, "osl": 256}
    serving = plan(BASE.model_copy(update=load)).serving
    assert serving is not None
    limits = {
        "tpot_ms": getattr(serving.tpot_s, f"p{share}") * 1e3,
        "ttft_ms": getattr(serving.ttft_s, f"p{share}") * 1e3,
    }
    under_load = plan(BASE.model_copy(update={**load, **limits})).verdict.meets
    assert [one.limit for one in under_load] == ["tpot_ms", "ttft_ms"]
    for one in under_load:
        assert one.probability == pytest.approx(share / 100, abs=1e-6)
        assert one.concurrency == 16
        assert one.batch is None


def test_without_a_batch_the_verdict_has_the_largest_within_the_limit() -> None:
    question = BASE.model_copy(update={"context": [8192], "tpot_ms": 1000.0})
    answer = plan(question)
    (meets,) = answer.verdict.meets
    assert (meets.batch, meets.ok, answer.verdict.fits) == (1, True, True)
    assert meets.max_batch == answer.memory.max_batch


def test_levers_that_are_pulled_are_not_told() -> None:
    """Four bits a weight leave nothing to 8-bit weights, an 8-bit cache nothing to another."""
    asked = BASE.model_copy(update={"batch": [8], "context": [8192]})
    codes = {lever.code for lever in advise(asked)}
    assert {"weights_fp8", "kv_fp8"} <= codes
    pulled = advise(asked.model_copy(update={"weights": "int4_g128", "kv": "fp8"}))
    assert not {"weights_fp8", "weights_int4", "kv_fp8"} & {lever.code for lever in pulled}


def test_a_lever_tells_gain_per_gpu_risk_and_cost() -> None:
    asked = BASE.model_copy(update={"batch": [8], "context": [8192]})
    levers = {lever.code: lever for lever in advise(asked)}
    assert levers["tp_double"].gain_per_gpu == pytest.approx(levers["tp_double"].gain / 2)
    assert levers["weights_fp8"].gain_per_gpu == pytest.approx(levers["weights_fp8"].gain)
    assert all(lever.quality_risk and lever.cost for lever in levers.values())
