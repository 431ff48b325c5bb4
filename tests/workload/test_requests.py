"""Requests drawn, spread over windows, read from traces, and found in a cache: sums by hand."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter

from planner.workload.arrivals import RequestList, arrivals, draw
from planner.workload.distributions import Length, moments
from planner.workload.sessions import InvalidSession, session_hit
from planner.workload.traces import Event
from planner.workload.windows import MOST_WINDOWS, InvalidWindows, Windows, gather

LENGTH: TypeAdapter[Any] = TypeAdapter(Length)


def rng(seed: int = 3) -> np.random.Generator:
    return np.random.default_rng(seed)


def test_equal_gaps() -> None:
    assert arrivals(4, 2.0, 0.0, rng()).tolist() == [0.5, 1.0, 1.5, 2.0]


@pytest.mark.parametrize("cv", [0.3, 1.0, 2.5])
def test_gaps_have_their_mean_and_spread(cv: float) -> None:
    """Of 40,000 gaps of 0.1 s the mean is known to cv/200 and the deviation to some percent."""
    times = arrivals(40_000, 10.0, cv, rng())
    gaps = np.diff(np.concatenate([[0.0], times]))
    assert (gaps >= 0).all()
    assert gaps.mean() == pytest.approx(0.1, rel=4 * cv / 200)
    assert gaps.std() / gaps.mean() == pytest.approx(cv, rel=0.06)


@pytest.mark.parametrize(
    ("length", "values"),
    [
        (7, {7.0}),
        ({"uniform": {"low": 2, "high": 4}}, {2.0, 3.0, 4.0}),
        ({"histogram": {"10": 3, "20": 1}}, {10.0, 20.0}),
        ({"trace": [5, 9, 9, 9]}, {5.0, 9.0}),
        ({"uniform": {"low": 1, "high": 1}}, {1.0}),
    ],
)
def test_lengths_are_drawn_from_what_is_asked(length: Any, values: set[float]) -> None:
    drawn = draw(LENGTH.validate_python(length), 4000, rng())
    assert set(drawn.tolist()) == values


@pytest.mark.parametrize(
    "length",
    [
        {"lognormal": {"mean": 500, "cv": 0.8}},
        {"uniform": {"low": 100, "high": 300}},
        {"histogram": {"10": 3, "20": 1}},
        {"trace": [5, 9, 9, 9]},
    ],
)
def test_drawn_lengths_have_the_moments_of_the_closed_form(length: Any) -> None:
    one = LENGTH.validate_python(length)
    drawn, expected = draw(one, 60_000, rng()), moments(one)
    assert drawn.mean() == pytest.approx(expected.mean, rel=0.02)
    assert (drawn**2).mean() == pytest.approx(expected.mean * expected.of_a_step, rel=0.06)


def test_a_length_is_one_token_at_least() -> None:
    drawn = draw(LENGTH.validate_python({"lognormal": {"mean": 1, "cv": 3}}), 1000, rng())
    assert drawn.min() == 1.0
    assert (drawn == np.round(drawn)).all()


def test_a_list_has_as_many_as_its_lengths() -> None:
    assert len(RequestList(np.zeros(3), np.ones(3), np.ones(3))) == 3


def test_windows_hold_sums() -> None:
    """Of 10 s: two requests of 100 and 300 tokens, one of 50 after 10 s, none, one after 30 s."""
    windows = gather(
        [Event(5, 100, 10), Event(14.9, 300, 20), Event(15, 50, 5), Event(36, 10, 1)], 10.0
    )
    assert windows.count.ravel().tolist() == [2, 1, 0, 1]
    assert windows.requests_per_s.ravel().tolist() == [0.2, 0.1, 0.0, 0.1]
    isl, osl = windows.lengths(0, 0)
    assert (isl.mean, isl.mean_square) == (200, (100**2 + 300**2) / 2)
    assert (osl.mean, osl.mean_square) == (15, (10**2 + 20**2) / 2)


def test_classes_by_their_inputs() -> None:
    """Up to 100 tokens, up to 1,000, and the rest; a limit belongs to the class below it."""
    events = [Event(0, 100, 1), Event(0, 101, 1), Event(0, 1000, 1), Event(0, 1001, 1)]
    assert gather(events, 60.0, (100, 1000)).count.tolist() == [[1, 2, 1]]


def test_a_rate_is_spread_over_its_window() -> None:
    """60 requests over 30 s are 20 in each window of 10 s, and of a window of 60 s all."""
    event = Event(0.0, 100, 10, count=60, over_s=30)
    assert gather([event], 10.0).count.ravel().tolist() == [20, 20, 20]
    assert gather([event], 60.0).count.ravel().tolist() == [60]


@settings(max_examples=40)
@given(
    st.lists(st.tuples(st.floats(0, 1000), st.integers(1, 5000), st.integers(1, 900)), min_size=1),
    st.floats(1.0, 200.0),
)
def test_no_request_is_lost(rows: list[tuple[float, int, int]], seconds: float) -> None:
    events = [Event(at, isl, osl) for at, isl, osl in sorted(rows)]
    windows = gather(events, seconds, (1000,))
    assert windows.count.sum() == len(rows)
    assert windows.isl.sum() == sum(isl for _, isl, _ in rows)
    assert windows.osl_square.sum() == sum(osl**2 for _, _, osl in rows)
    doubled = windows.times(2.0)
    assert doubled.count.sum() == 2 * len(rows)
    busy = np.argwhere(windows.count > 0)[0]
    assert doubled.lengths(*busy)[0].mean == pytest.approx(windows.lengths(*busy)[0].mean)


def test_an_empty_window_has_no_lengths() -> None:
    windows = gather([Event(0, 10, 1), Event(25, 10, 1)], 10.0)
    isl, _ = windows.lengths(1, 0)
    assert isl.mean == 0.0


@pytest.mark.parametrize(
    ("events", "message"),
    [
        ([], "trace: it has no requests; accepted: one or more"),
        ([Event(100, 1, 1), Event(80, 1, 1)], "trace: a request at 80 s comes after ones"),
        ([Event(0, 1, 1), Event(10.0 * MOST_WINDOWS, 1, 1)], "trace: more than 100000 windows"),
    ],
)
def test_what_is_no_trace(events: list[Event], message: str) -> None:
    with pytest.raises(InvalidWindows, match=f"^{message}"):
        gather(events, 10.0)


def test_windows_are_plain_sums() -> None:
    one = np.ones((1, 1))
    assert Windows(10.0, one, one, one, one, one).times(3.0).osl.tolist() == [[3.0]]


@pytest.mark.parametrize(
    ("turns", "prefix", "held", "hit"),
    [
        (1, 0, 1.0, 0.0),
        (1, 250, 1.0, 0.25),
        # Three turns of u tokens with answers of 100: 1000 = 2·u + 100, u = 450, so 550 are known.
        (3, 0, 1.0, 0.55),
        # And where the cache holds the session half of the time.
        (3, 0, 0.5, 0.275),
        # 1000 = 200 + 2·u + 100, u = 350: the prefix and 450 tokens of 1000.
        (3, 200, 1.0, 0.65),
        (3, 200, 0.0, 0.2),
    ],
)
def test_what_a_session_finds_in_the_cache(
    turns: int, prefix: int, held: float, hit: float
) -> None:
    assert float(session_hit(1000.0, 100.0, turns, prefix, held)) == pytest.approx(hit)


def test_hits_broadcast_over_what_is_held() -> None:
    hits = session_hit(1000.0, 100.0, 3, 200, np.array([0.0, 0.5, 1.0]))
    assert hits.tolist() == pytest.approx([0.2, 0.425, 0.65])


@settings(max_examples=60)
@given(st.integers(1, 50), st.integers(0, 3000), st.floats(0, 1), st.floats(1, 400))
def test_a_hit_is_a_share(turns: int, prefix: int, held: float, osl: float) -> None:
    try:
        hit = float(session_hit(2000.0, osl, turns, prefix, held))
    except InvalidSession:
        assert prefix >= 2000 or osl * (turns - 1) / 2 >= 2000 - prefix
        return
    assert 0 <= hit < 1
    assert hit >= prefix / 2000 - 1e-12
    assert not math.isnan(hit)
