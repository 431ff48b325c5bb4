"""A calibration chosen for a block counts there alone, whatever was answered and cached before."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import replace

import pytest

from planner import Scenario, plan
from planner.calibration import Calibration, current, shipped, using
from planner.calibration.own import applied
from planner.plans.compare import ComparisonRequest, compare
from planner.plans.recommend import RecommendationRequest, recommend
from planner.plans.sweep import SweepRequest, sweep

MODEL = "meta-llama/Llama-3.1-70B-Instruct"
ASKED = Scenario(model=MODEL, gpu="h100-sxm5", tp=4, batch=[8], context=[4096], engine="vllm")
ELSEWHERE = ASKED.model_copy(update={"gpu": "h200-sxm"})


def slower(factor: float, edition: str) -> Calibration:
    """The shipped calibration with decode on one GPU and engine made slower."""
    factors = ({"decode|h100-sxm5|vllm": factor}, {}, {}, {})
    return replace(applied(shipped(), factors), edition=edition)


def tpot(scenario: Scenario = ASKED) -> float:
    return plan(scenario).points[0].tpot_s.p50


def test_plans_follow_the_choice_and_return_from_it() -> None:
    before, elsewhere = tpot(), tpot(ELSEWHERE)
    with using(slower(2.0, "twice")):
        assert tpot() == pytest.approx(2 * before)
        assert tpot(ELSEWHERE) == elsewhere
        assert plan(ASKED).editions.calibration == "twice"
        with using(slower(3.0, "thrice")):
            assert tpot() == pytest.approx(3 * before)
        with using(None):
            assert current().edition == "twice"
    assert (tpot(), plan(ASKED).editions.calibration) == (before, current().edition)


def test_every_kind_of_answer_says_what_it_used() -> None:
    base = sweep(SweepRequest(scenario=ASKED)).columns["tpot_p50_s"][0]
    with using(slower(2.0, "twice")):
        swept = sweep(SweepRequest(scenario=ASKED))
        chosen = recommend(
            RecommendationRequest(model=MODEL, gpu=["h100-sxm5"], engine="vllm", context=4096)
        )
        compared = compare(ComparisonRequest(scenarios=[ASKED, ELSEWHERE]))
    assert swept.columns["tpot_p50_s"][0] == pytest.approx(2 * base)
    editions = {found.editions.calibration for found in (swept, chosen, compared)}
    assert editions == {"twice"}


def test_an_error_inside_ends_the_choice() -> None:
    with pytest.raises(ValueError, match="model"), using(slower(2.0, "twice")):
        plan(ASKED.model_copy(update={"model": "nope"}))
    assert current().edition != "twice"


def test_threads_choose_for_themselves() -> None:
    base = tpot()
    with using(slower(2.0, "twice")), ThreadPoolExecutor(2) as pool:
        assert pool.submit(tpot).result() == base
        assert pool.submit(copy_context().run, tpot).result() == pytest.approx(2 * base)
