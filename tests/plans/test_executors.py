"""Work handed to executors comes back as if it had been done here; it survives being pickled."""

from __future__ import annotations

import pickle
import sys
from concurrent.futures import Executor, Future
from typing import Any

import pytest

from planner.plans import confirm
from planner.plans.executors import NoCluster, chosen, mapped
from planner.plans.fleet import fleet
from planner.plans.fleet_request import FleetRequest
from planner.plans.recommend import recommend
from planner.plans.request import RecommendationRequest

LLAMA = "meta-llama/Llama-3.1-8B-Instruct"


class Elsewhere(Executor):
    """Does what a process elsewhere does: with copies of what it is given, and the last first."""

    def __init__(self) -> None:
        self.functions: list[str] = []

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
        self.functions.append(fn.__name__)
        future: Future[Any] = Future()
        copied, arguments, named = pickle.loads(pickle.dumps((fn, args, kwargs)))  # noqa: S301 of this test
        try:
            future.set_result(pickle.loads(pickle.dumps(copied(*arguments, **named))))  # noqa: S301 of this test
        except ValueError as error:
            future.set_exception(error)
        return future


def _difference(one: int, other: int) -> int:
    if other == 0:
        raise ValueError("other: 0; accepted: anything else")
    return one - other


def test_results_are_in_order() -> None:
    for executor in (None, Elsewhere()):
        assert mapped(executor, _difference, [5, 6, 7], [1, 2, 3]) == [4, 4, 4]
        assert mapped(executor, _difference, [], []) == []
        with pytest.raises(ValueError, match="other: 0; accepted"):
            mapped(executor, _difference, [1, 1], [1, 0])
        with pytest.raises(ValueError, match="shorter"):
            mapped(executor, _difference, [1, 2], [1])


@pytest.mark.parametrize("workers", [1, 0, -3])
def test_without_workers_there_is_no_executor(workers: int) -> None:
    with chosen(workers) as (executor, at_once):
        assert executor is None
        assert at_once == 1


def test_a_fleet_is_the_same_on_an_executor() -> None:
    request = FleetRequest(
        pools=[
            {"model": LLAMA, "gpu": "h100-sxm5", "engine": "vllm", "isl_up_to": 2000},
            {"model": LLAMA, "gpu": "h200-sxm", "engine": "vllm", "tp": 2},
        ],
        requests_per_s_by_window=[5, 20, 10],
        isl=1000,
        osl=200,
        tpot_ms=50,
        months=2,
        growth_per_month=0.5,
    )
    elsewhere = Elsewhere()
    here, there = fleet(request), fleet(request, elsewhere)
    assert there == here
    assert elsewhere.functions == ["day_of"] * 2 * 3  # two pools, now and after each month
    rates = [month.requests_per_s_peak for month in here.months]
    assert rates == pytest.approx([20, 30, 45])


def test_without_dask_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    refused = "cluster: Dask is not installed; accepted: the extra `cluster`"
    with pytest.raises(NoCluster, match=refused), chosen(1, "tcp://127.0.0.1:8786"):
        pass


def test_a_recommendation_is_the_same_on_an_executor(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(confirm, "REQUESTS", 200)
    monkeypatch.setattr(confirm, "PER_CLIENT", 4)
    request = RecommendationRequest(
        model=LLAMA,
        gpu=["h100-sxm5", "l40s"],
        engine=["vllm"],
        isl=500,
        osl=100,
        concurrency_in_all=64,
        tpot_ms=50,
        tp=1,
        disaggregated=False,
    )
    elsewhere = Elsewhere()
    here, there = recommend(request), recommend(request, elsewhere)
    assert there == here
    assert set(elsewhere.functions) == {"confirmed", "with_simulation"}
    assert here.sized is not None
    assert here.sized.options[here.sized.cheapest or 0].simulated is not None
