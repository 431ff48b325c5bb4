"""Replicas over windows by hand: what is wanted, when it is there, what it costs, who waits.

Windows are of 60 s; the model and the machine are those of round numbers.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from planner.deployment import Deployment, deployment_of
from planner.plans.fleet import Fleet, PoolMember, fleet, served
from planner.plans.fleet_request import FleetPool, FleetRequest
from planner.scenario import Scenario
from planner.workload.lengths import Lengths
from tests.compare.test_figures import CONFIG, gpu

POOL: dict[str, Any] = {"model": CONFIG, "gpu": gpu(), "usd_per_gpu_hour": 2.0}


def request(rates: list[float], pool: dict[str, Any] | None = None, **fields: Any) -> FleetRequest:
    lengths = {"isl": 1000, "osl": 200}
    return FleetRequest(
        pools=[FleetPool(**{**POOL, **(pool or {})})],
        requests_per_s_by_window=rates,
        **{**lengths, **fields},
    )


@cache
def small() -> Deployment:
    return deployment_of(Scenario(model=CONFIG, gpu=gpu()))


def there(needed: list[float], pool: dict[str, Any] | None = None, **fields: Any) -> list[float]:
    one = request([1.0], pool, **{"headroom": 0.0, "hold_s": 0, "start_delay_s": 0, **fields})
    return PoolMember(one.pools[0], one, 0, small()).autoscaled(np.array(needed)).tolist()


@pytest.mark.parametrize(
    ("needed", "fields", "replicas"),
    [
        # A window is seen when it is over: what it wanted is there in the next one.
        ([1, 3, 2, 2], {}, [1, 1, 3, 2]),
        # Two minutes until a replica serves are two windows more.
        ([1, 3, 2, 2, 2], {"start_delay_s": 120}, [1, 1, 1, 1, 3]),
        # And one is kept for two windows after it was last wanted.
        ([1, 3, 1, 1, 1, 1], {"hold_s": 120}, [1, 1, 3, 3, 3, 1]),
        # A fifth more than the last window asked for, in whole replicas.
        ([2.4, 5.0, 5.1], {"headroom": 0.2}, [3, 3, 6]),
        ([2.0, 2.0], {"spare_replicas": 1}, [3, 3]),
        ([0.0, 0.0], {}, [1, 1]),
    ],
)
def test_replicas_of_an_autoscaler(
    needed: list[float], fields: dict[str, Any], replicas: list[float]
) -> None:
    assert there(needed, **fields) == replicas


@pytest.mark.parametrize(
    ("pool", "replicas"),
    [
        ({"replicas": 2}, [2, 2, 5]),
        ({"most_replicas": 3}, [1, 1, 3]),
        ({"replicas": 2, "most_replicas": 4}, [2, 2, 4]),
    ],
)
def test_bounds_of_an_autoscaler(pool: dict[str, Any], replicas: list[float]) -> None:
    assert there([1, 5, 1], pool) == replicas


@settings(max_examples=30)
@given(
    st.lists(st.floats(0, 50), min_size=1, max_size=12),
    st.integers(0, 5),
    st.integers(0, 5),
    st.floats(0, 1),
)
def test_more_caution_never_has_fewer(
    needed: list[float], delay: int, hold: int, headroom: float
) -> None:
    plain = there(needed, start_delay_s=60 * delay, hold_s=60 * hold)
    held = there(needed, start_delay_s=60 * delay, hold_s=60 * (hold + 1))
    room = there(needed, start_delay_s=60 * delay, hold_s=60 * hold, headroom=headroom)
    assert all(a <= b for a, b in zip(plain, held, strict=True))
    assert all(a <= b for a, b in zip(plain, room, strict=True))
    assert len(plain) == len(needed)
    assert max(plain) <= max(1.0, np.ceil(max(needed)))


@pytest.mark.parametrize(
    ("have", "want", "rates", "share", "short", "left"),
    [
        ([2, 2], [2, 2], [10, 10], 1.0, 0, 0),
        # Half of the first window waits, for a third of the next one, in which three are free.
        ([1, 4], [2, 1], [10, 5], 1 - (5 + 5 / 3) / 15, 1, 0),
        # It never clears: half of the first is late, and all of the second.
        ([1, 1], [2, 2], [10, 10], 0.0, 2, 2),
        ([0, 0], [1, 1], [10, 10], 0.0, 2, 2),
        ([1, 1], [0, 0], [0, 0], 1.0, 0, 0),
    ],
)
def test_who_waits(
    have: list[float], want: list[float], rates: list[float], share: float, short: int, left: float
) -> None:
    arrays = (np.array(one, float) for one in (have, want, rates))
    result = served(*arrays)
    assert result.share_within_limits == pytest.approx(share)
    assert (result.windows_short, result.left) == (short, pytest.approx(left))


@settings(max_examples=40)
@given(
    st.lists(
        st.tuples(st.integers(0, 9), st.floats(0.1, 9), st.floats(0.1, 99)), min_size=1, max_size=9
    )
)
def test_enough_replicas_serve_all(windows: list[tuple[int, float, float]]) -> None:
    have, want, rates = (np.array(one, float) for one in zip(*windows, strict=True))
    result = served(have, want, rates)
    assert 0 <= result.share_within_limits <= 1
    assert result.windows_short <= len(windows)
    assert result.left >= 0
    enough = served(np.ceil(want), want, rates)
    assert (enough.share_within_limits, enough.windows_short, enough.left) == (1.0, 0, 0.0)


def day(rates: list[float], **fields: Any) -> Fleet:
    return fleet(request(rates, **fields))


def capacity(**limits: float) -> float:
    """What a replica serves a second at the lengths of the requests."""
    one = request([1.0], **limits)
    member = PoolMember.of(one.pools[0], one, 0)
    return member.capacity(Lengths.fixed(1000), Lengths.fixed(200))[0]


def test_lines_of_a_day_of_known_rates() -> None:
    """One, two and a half, and one replica's rate: 1, 3 and 1 whole ones."""
    each = capacity()
    result = day([each, 2.5 * each, each], headroom=0.0, hold_s=0, start_delay_s=0)
    perfect, auto, static = result.lines
    assert perfect.gpus == pytest.approx([1.0, 2.5, 1.0], rel=1e-6)
    assert auto.gpus == [1, 1, 3]
    assert static.gpus == [3, 3, 3]
    # 9 GPU-minutes at 2 USD an hour in 3 minutes, of which a month has 14,600.
    assert static.gpu_hours == pytest.approx(9 / 60)
    assert static.usd_per_month == pytest.approx(9 / 60 * 2.0 / (3 / 60 / 730))
    assert (static.share_within_limits, static.windows_short) == (1.0, 0)
    # 1.5 of 4.5 wait, and the third window clears 1 in whose time it is late itself.
    assert auto.windows_short == 1
    assert auto.share_within_limits < 1
    (pool,) = result.pools
    assert (pool.replicas, pool.replicas_peak) == ([1, 1, 3], 3)
    assert pool.requests_per_s_per_replica == pytest.approx(each)
    assert result.requests == pytest.approx(4.5 * each * 60)
    assert (result.requests_per_s_peak, result.windows) == (pytest.approx(2.5 * each), 3)


def test_growth_is_counted_from_now() -> None:
    """Month 0 is today; 100% a month is four times after two."""
    each = capacity()
    months = day([each / 2], growth_per_month=1.0, months=2, headroom=0.0).months
    assert [one.month for one in months] == [0, 1, 2]
    peaks = [one.requests_per_s_peak for one in months]
    assert peaks == pytest.approx([each / 2, each, 2 * each])
    assert [one.gpus_peak for one in months] == [1, 1, 2]
    assert day([each]).months == []


def test_a_tighter_limit_takes_more_replicas() -> None:
    free, tight = capacity(), capacity(tpot_ms=3.0)
    assert tight < free
    assert 0 < capacity(tpot_ms=3.0, percentile=70) < tight


def test_capacity_falls_as_requests_grow() -> None:
    one = request([1.0])
    member = PoolMember.of(one.pools[0], one, 0)
    rates = [
        member.capacity(Lengths.fixed(isl), Lengths.fixed(osl))[0]
        for isl, osl in ((100, 100), (1000, 100), (1000, 1000), (4000, 1000))
    ]
    assert rates == sorted(rates, reverse=True)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"isl": None}, "isl, osl: needed with requests_per_s_by_window"),
        ({"trace": "x.csv"}, "trace or requests_per_s_by_window: needed, one of them"),
        ({"window_s": 0.5}, "window_s"),
        ({"headroom": -0.1}, "headroom"),
        ({"pools": [{**POOL, "isl_up_to": 100}, {**POOL, "model": {"x": 1}}]}, "different models"),
        ({"pools": [{**POOL, "isl_up_to": 9}, {**POOL, "isl_up_to": 5}, POOL]}, "must rise"),
    ],
)
def test_contradictions(changes: dict[str, Any], words: str) -> None:
    fields = {"pools": [POOL], "requests_per_s_by_window": [1.0], "isl": 1, "osl": 1}
    with pytest.raises(ValidationError, match=words):
        FleetRequest(**{**fields, **changes})
