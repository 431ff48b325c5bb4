"""Progress of long work: every part once, to whoever waits, and to nobody else."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from planner import Scenario
from planner.plans.fleet import fleet
from planner.plans.fleet_request import FleetRequest
from planner.plans.progress import reporting, tracked
from planner.plans.recommend import RecommendationRequest, recommend
from planner.plans.sweep import SweepRequest, sweep

MODEL = "meta-llama/Llama-3.1-8B-Instruct"
SWEEP = SweepRequest(
    scenario=Scenario(model=MODEL, gpu="h100-sxm5"),
    gpu=["h100-sxm5", "h200-sxm", "l40s"],
    tp=[1, 2],
)


def reports(work: object) -> list[tuple[int, int]]:
    heard: list[tuple[int, int]] = []
    with reporting(lambda done, total: heard.append((done, total))):
        work()
    return heard


def test_each_part_is_reported_once_it_is_done() -> None:
    heard: list[tuple[int, int]] = []
    seen: list[tuple[str, int]] = []
    with reporting(lambda done, total: heard.append((done, total))):
        for item in tracked(iter("abc"), 3):
            seen.append((item, heard[-1][0]))  # noqa: PERF401 - what is heard changes meanwhile
    assert seen == [("a", 0), ("b", 1), ("c", 2)]
    assert heard == [(0, 3), (1, 3), (2, 3), (3, 3)]
    assert list(tracked("xy", 2)) == ["x", "y"]
    assert len(heard) == 4, "nobody waits any more"


def test_a_sweep_counts_its_deployments() -> None:
    expected = [(done, 6) for done in range(7)]  # 3 accelerators, 2 splits
    assert reports(lambda: sweep(SWEEP)) == expected
    with ThreadPoolExecutor(2) as pool:
        assert reports(lambda: sweep(SWEEP, pool)) == expected


def test_a_search_counts_accelerators() -> None:
    request = RecommendationRequest(
        model=MODEL, gpu=["h100-sxm5", "l40s"], isl=512, osl=128, users=10, tpot_ms=50.0
    )
    heard = reports(lambda: recommend(request))
    assert heard[:3] == [(0, 2), (1, 2), (2, 2)]
    assert heard[-1][0] == heard[-1][1]  # then the winners are simulated


def test_a_fleet_counts_pools() -> None:
    pools = [{"model": MODEL, "gpu": "l40s", "isl_up_to": 100.0}, {"model": MODEL, "gpu": "l40s"}]
    request = FleetRequest.model_validate(
        {"pools": pools, "requests_per_s_by_window": [1.0], "isl": 512.0, "osl": 64.0}
    )
    assert reports(lambda: fleet(request)) == [(0, 2), (1, 2), (2, 2)]
