"""A day of a fleet: traces in every form, bounds in their order, growth, constant memory."""

from __future__ import annotations

import gzip
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from planner.plans.fleet import Fleet, fleet, served
from planner.plans.fleet_request import FleetRequest
from planner.workload.traces import Event, InvalidTrace, read_trace
from planner.workload.windows import InvalidWindows, gather

TRACES = Path(__file__).parents[2] / "examples" / "traces"
MODEL = "openai/gpt-oss-120b"
POOL = {"model": MODEL, "gpu": "h100-sxm5", "tp": 2, "engine": "vllm"}
THREE = [
    {**POOL, "isl_up_to": 500},
    {**POOL, "engine": "sglang", "isl_up_to": 2000},
    {**POOL, "gpu": "h200-sxm"},
]


def day(**fields: Any) -> Fleet:
    given = {
        "pools": [POOL],
        "trace": str(TRACES / "reasoning-day.csv"),
        "window_s": 600,
        "tpot_ms": 40,
        "ttft_ms": 2000,
        **fields,
    }
    return fleet(FleetRequest(**given))


AZURE = """TIMESTAMP,ContextTokens,GeneratedTokens
2023-11-16 18:15:46.6805900,374,44
2023-11-16 18:15:50.9951690,396,109
"""
MOONCAKE = """{"timestamp": 0, "input_length": 6758, "output_length": 500, "hash_ids": [0, 1]}
{"timestamp": 3052, "input_length": 7322, "output_length": 490, "hash_ids": [0]}
"""
LOG = """{"timestamp": "2026-12-01T10:00:00.5Z", "input_tokens": 10, "output_tokens": 20}
{"timestamp": "2026-12-01T10:00:02Z", "input_tokens": 30, "output_tokens": 40, "user": "x"}
"""
WINDOWS = """start_s,requests_per_s,mean_client_cv,isl_mean,isl_p50,osl_mean
0,14.8,1.63,1174.0,60,1466.5
600,18.4,1.3,,,
"""


@pytest.mark.parametrize(
    ("text", "gap_s", "lengths"),
    [
        (AZURE, 4.314579, [(374, 44), (396, 109)]),
        (MOONCAKE, 3.052, [(6758, 500), (7322, 490)]),
        (LOG, 1.5, [(10, 20), (30, 40)]),
        (WINDOWS, 600, [(1174, 1466.5), (1174, 1466.5)]),
    ],
    ids=["azure", "mooncake", "log", "servegen"],
)
@pytest.mark.parametrize("packed", [False, True])
def test_published_forms_are_read(
    text: str, gap_s: float, lengths: list[tuple[float, float]], packed: bool, tmp_path: Path
) -> None:
    path = tmp_path / ("trace.gz" if packed else "trace")
    path.write_bytes(gzip.compress(text.encode()) if packed else text.encode())
    events = list(read_trace(path))
    assert [(e.isl, e.osl) for e in events] == lengths
    assert events[1].at_s - events[0].at_s == pytest.approx(gap_s, abs=1e-6)


def test_windows_hold_rate_times_width(tmp_path: Path) -> None:
    path = tmp_path / "trace.csv"
    path.write_text(WINDOWS, "utf-8")
    windows = gather(read_trace(path), 60.0)
    assert windows.count.shape == (20, 1)
    assert windows.count.sum() == pytest.approx((14.8 + 18.4) * 600)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a,b\n1,2\n", "columns"),
        (AZURE + "yesterday,1,2\n", "line 4"),
        ('{"timestamp": 0}\n', "line 1"),
        ("", "columns"),
    ],
)
def test_what_is_no_trace_is_refused_with_its_line(text: str, words: str, tmp_path: Path) -> None:
    path = tmp_path / "trace"
    path.write_text(text, "utf-8")
    with pytest.raises(InvalidTrace, match=words):
        list(read_trace(path))


def test_a_trace_that_runs_backwards_is_refused() -> None:
    with pytest.raises(InvalidWindows, match="ascending"):
        gather([Event(1000.0, 1, 1), Event(0.0, 1, 1)], 60.0)


def test_the_lower_bound_is_below_the_others_and_static_above() -> None:
    result = day()
    perfect, auto, static = result.lines
    assert perfect.gpu_hours <= auto.gpu_hours <= static.gpu_hours
    assert perfect.gpus_peak <= static.gpus_peak
    assert perfect.share_within_limits == static.share_within_limits == 1.0
    assert auto.share_within_limits <= 1.0
    assert result.windows == 144


def test_twice_the_trace_takes_twice_the_gpus() -> None:
    once, twice = day(scale=8), day(scale=16)
    for one, two in zip(once.lines, twice.lines, strict=True):
        assert two.gpus_mean == pytest.approx(2 * one.gpus_mean, rel=0.05)


def test_headroom_and_spares_buy_requests_back() -> None:
    bare, held = day(headroom=0.0), day(headroom=0.6, spare_replicas=1)
    assert held.lines[1].share_within_limits > bare.lines[1].share_within_limits
    assert held.lines[1].gpu_hours > bare.lines[1].gpu_hours


def test_growth_is_compound() -> None:
    months = day(growth_per_month=0.1, months=3).months
    assert [m.month for m in months] == [0, 1, 2, 3]
    assert months[3].requests_per_s_peak == pytest.approx(1.1**3 * months[0].requests_per_s_peak)
    assert [m.gpus_mean for m in months] == sorted(m.gpus_mean for m in months)


def test_pools_share_requests_by_their_inputs() -> None:
    result = day(pools=THREE, trace=str(TRACES / "conversation-10min.jsonl"), window_s=30)
    assert sum(p.requests for p in result.pools) == result.requests == 600
    short = sum(e.isl <= 500 for e in read_trace(TRACES / "conversation-10min.jsonl"))
    assert result.pools[0].requests == short


def test_a_million_requests_are_kept_as_sums() -> None:
    rng = np.random.default_rng(1)

    def events() -> Any:
        for i in range(100_000):
            yield Event(i * 0.8, float(rng.integers(1, 4000)), 100.0)

    windows = gather(events(), 60.0, (500.0, 2000.0))
    assert windows.count.shape == (1334, 3)
    assert windows.count.sum() == 100_000


def test_what_waits_makes_the_next_late() -> None:
    """Ten a window with room for eight, then four with room for eight: two wait, and take half of
    the second window, in which two of the four come."""
    have, want = np.array([8.0, 8.0]), np.array([10.0, 4.0])
    result = served(have, want, np.array([10.0, 4.0]))
    assert result.windows_short == 1
    assert result.share_within_limits == pytest.approx(1 - (2 + 2) / 14)
    assert result.left == 0.0


def test_what_waits_in_an_empty_window_is_served_in_it() -> None:
    """Five replicas are missing; four free ones serve what four take, and one is left."""
    have, want = np.array([5.0, 4.0]), np.array([10.0, 0.0])
    result = served(have, want, np.array([100.0, 0.0]))
    assert result.left == pytest.approx(1.0)
    assert result.share_within_limits == pytest.approx(0.5)


def test_a_window_without_replicas_leaves_all_of_it() -> None:
    result = served(np.zeros(2), np.array([3.0, 1.0]), np.array([30.0, 10.0]))
    assert (result.share_within_limits, result.windows_short, result.left) == (0.0, 2, 4.0)
    assert served(np.zeros(2), np.zeros(2), np.zeros(2)).share_within_limits == 1.0


@given(
    st.lists(st.floats(0.0, 50.0), min_size=1, max_size=40),
    st.lists(st.integers(0, 40), min_size=40, max_size=40),
)
def test_no_way_of_scaling_takes_less_than_is_needed(
    needed: list[float], replicas: list[int]
) -> None:
    """Whatever replicas there are: theirs and what is left at the end are the work that came, at
    least, and more replicas leave no more of it."""
    want = np.array(needed)
    have = np.array(replicas[: len(needed)], float)
    result = served(have, want, want)
    assert have.sum() + result.left >= want.sum() * (1 - 1e-9)
    more = served(have + 1, want, want)
    assert more.left <= result.left + 1e-9
    assert more.share_within_limits >= result.share_within_limits - 1e-9
    assert 0.0 <= result.share_within_limits <= 1.0


RULES: list[dict[str, Any]] = [
    {"headroom": 0.0, "start_delay_s": 7200, "hold_s": 0},
    {"headroom": 0.0, "pools": [{**POOL, "most_replicas": 1}], "scale": 4},
    {"headroom": 0.5, "spare_replicas": 1},
    {"requests_per_s_by_window": [1.0, 1.0, 60.0], "trace": None, "isl": 800, "osl": 300},
]


@pytest.mark.parametrize("rules", RULES)
def test_the_lower_bound_is_never_above_the_others(rules: dict[str, Any]) -> None:
    """Late replicas, too few of them, and a rush at the end count what they leave for later."""
    perfect, *others = day(**rules).lines
    for line in others:
        # But for the last bits of sums in another order.
        assert line.gpus_mean >= perfect.gpus_mean * (1 - 1e-12)
        assert line.gpu_hours >= perfect.gpu_hours * (1 - 1e-12)
        assert (line.usd_per_month or 0.0) >= (perfect.usd_per_month or 0.0) * (1 - 1e-12)


def test_twice_the_trace_takes_twice_the_gpus_in_every_pool() -> None:
    fields = {"pools": THREE, "trace": str(TRACES / "conversation-10min.jsonl"), "window_s": 30}
    once, twice = day(scale=200, **fields), day(scale=400, **fields)
    for one, two in zip(once.lines, twice.lines, strict=True):
        assert two.gpus_mean == pytest.approx(2 * one.gpus_mean, rel=0.05)
    assert twice.requests == 2 * once.requests


def test_memory_does_not_grow_with_the_requests() -> None:
    """Six times the requests of the same day take the same sums."""

    def peak(count: int) -> int:
        def events() -> Iterator[Event]:
            for i in range(count):
                yield Event(i * 86_400 / count, 1.0 + i % 4000, 100.0)

        tracemalloc.start()
        windows = gather(events(), 60.0, (500.0, 2000.0))
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert windows.count.sum() == count
        return most

    assert peak(12_000) < 1.2 * peak(2_000)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"trace": None}, "needed"),
        ({"pools": [{**POOL, "isl_up_to": 5}]}, "isl_up_to"),
        ({"pools": [POOL, POOL]}, "isl_up_to"),
        ({"ttft_requests_percentile": 99}, "means"),
    ],
)
def test_contradictions_are_refused(fields: dict[str, Any], words: str) -> None:
    with pytest.raises(ValidationError, match=words):
        day(**fields)


def test_a_pool_that_cannot_meet_the_limits_is_named() -> None:
    with pytest.raises(ValueError, match=r"pools\[0\]"):
        day(tpot_ms=0.5)
