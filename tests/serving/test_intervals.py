"""Intervals of a load: those of TTFT and TPOT, propagated to rates and to what waits for room."""

from __future__ import annotations

import pytest

from planner import Plan, Scenario, plan
from planner.deployment import deployment_of

LLAMA = "meta-llama/Llama-3.1-70B-Instruct"


def asked(clients: int, **more: object) -> Plan:
    question = {"model": LLAMA, "gpu": "h200-sxm", "tp": 2, "engine": "vllm", "isl": 8192}
    return plan(Scenario(**{**question, "osl": 1024, "concurrency": clients, **more}))


@pytest.mark.parametrize("more", [{}, {"disaggregated": {}}])
@pytest.mark.parametrize("clients", [1, 16, 400])
def test_p10_is_below_p50_is_below_p90(clients: int, more: dict[str, object]) -> None:
    found = asked(clients, **more).serving
    assert found is not None
    for one in (
        found.ttft_s,
        found.tpot_s,
        found.requests_per_s_interval,
        found.output_tokens_per_s_interval,
    ):
        assert 0 < one.p10 < one.p50 < one.p90
    assert found.requests_per_s_interval.p50 == found.requests_per_s
    assert found.output_tokens_per_s_interval.p50 == found.output_tokens_per_s


def test_a_rate_is_slow_where_its_times_are_long() -> None:
    # A closed loop of C clients completes C/(TTFT + (OSL − 1)·TPOT) requests a second.
    found = asked(16).serving
    assert found is not None
    assert found.queued == 0
    slow, fast = (
        16 / (ttft + 1023 * tpot)
        for ttft, tpot in (
            (found.ttft_s.p90, found.tpot_s.p90),
            (found.ttft_s.p10, found.tpot_s.p10),
        )
    )
    assert found.requests_per_s_interval.p10 == pytest.approx(slow)
    assert found.requests_per_s_interval.p90 == pytest.approx(fast)
    assert found.output_tokens_per_s_interval.p10 == pytest.approx(1024 * slow)


def test_waiting_for_room_is_as_uncertain_as_what_makes_room() -> None:
    # Of 400 clients most wait: their TTFT is nearly all queue, which moves with TPOT.
    alone, crowd = asked(1).serving, asked(400).serving
    assert alone is not None
    assert crowd is not None
    assert crowd.queued > 200

    def width(load: object) -> float:
        return float(load.ttft_s.p90 / load.ttft_s.p10)

    assert width(crowd) < width(alone)
    wait = crowd.queued / crowd.requests_per_s
    assert crowd.ttft_s.p50 > wait
    assert crowd.ttft_s.p90 > crowd.queued / crowd.requests_per_s_interval.p10


def test_points_and_replicas_carry_intervals_of_their_rates() -> None:
    one, two = (asked(16, batch=[8], context=[4096], replicas=n) for n in (1, 2))
    point = one.points[0]
    assert point.tokens_per_s_interval.p10 == pytest.approx(8 / point.tpot_s.p90)
    assert point.tokens_per_s_interval.p90 == pytest.approx(8 / point.tpot_s.p10)
    assert one.serving is not None
    assert two.serving is not None
    doubled = two.serving.requests_per_s_interval
    assert doubled.p10 == pytest.approx(2 * one.serving.requests_per_s_interval.p10)
    assert two.points[0].tokens_per_s_interval.p90 == pytest.approx(16 / point.tpot_s.p10)


def test_ttft_of_an_engine_never_measured_serving_borrows_a_wider_interval() -> None:
    question = {"model": "meta-llama/Llama-3.1-8B-Instruct", "gpu": "rtx-4090", "concurrency": 2}
    told = plan(Scenario(**question, engine="llama.cpp", isl=512, osl=128))
    assert told.serving is not None
    ttft = told.serving.ttft_s
    assert ttft.p10 < ttft.p50 < ttft.p90
    (note,) = (n.text for n in told.notes if n.code == "nearness")
    assert "TTFT of llama.cpp was not measured: that of servers, widened" in note
    here = deployment_of(Scenario(**question, engine="llama.cpp", isl=512, osl=128))
    intervals, near = here.calibration.intervals, here.calibration.intervals.nearness(here.subject)
    low, high = intervals.factors["ttft"]["serving"][near]
    found = here.interval("ttft")
    assert found[0] < low < 1 < high < found[1]


def test_an_engine_measured_serving_borrows_nothing() -> None:
    (note,) = (n.text for n in asked(16).notes if n.code == "nearness")
    assert "widened" not in note
