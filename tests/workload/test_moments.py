"""Moments of lengths by hand, and the steady state of a load against what must hold of any."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from planner.serving.steady import Prompts, Queueing, Steady, steady_state
from planner.workload.distributions import Length, mean_context, moments
from planner.workload.lengths import InvalidLengths, Lengths

LENGTH: TypeAdapter[Any] = TypeAdapter(Length)


@pytest.mark.parametrize(
    ("length", "mean", "square", "of_a_step"),
    [
        (100, 100, 10_000, 100),
        # (100 + 300)/2 and (100² + 100·300 + 300²)/3.
        ({"uniform": {"low": 100, "high": 300}}, 200, 130_000 / 3, 650 / 3),
        ({"uniform": {"low": 50, "high": 50}}, 50, 2_500, 50),
        # Mean² · (1 + cv²).
        ({"lognormal": {"mean": 100, "cv": 0.5}}, 100, 12_500, 125),
        ({"lognormal": {"mean": 100, "cv": 0}}, 100, 10_000, 100),
        # Three of 10 and one of 50: 80/4; (3·100 + 2500)/4.
        ({"histogram": {"10": 3, "50": 1}}, 20, 700, 35),
        ({"histogram": {"10": 0.75, "50": 0.25, "99": 0}}, 20, 700, 35),
        ({"trace": [10, 10, 10, 50]}, 20, 700, 35),
    ],
)
def test_moments(length: Any, mean: float, square: float, of_a_step: float) -> None:
    found = moments(LENGTH.validate_python(length))
    assert found.mean == pytest.approx(mean)
    assert found.mean_square == pytest.approx(square)
    assert found.of_a_step == pytest.approx(of_a_step)


@given(st.lists(st.integers(1, 100_000), min_size=1, max_size=30))
def test_a_trace_is_its_histogram(lengths: list[int]) -> None:
    counts = {n: float(lengths.count(n)) for n in lengths}
    trace, histogram = Lengths.trace(lengths), Lengths.histogram(counts)
    assert trace.mean == pytest.approx(histogram.mean)
    assert trace.mean_square == pytest.approx(histogram.mean_square)
    assert trace.of_a_step >= trace.mean * (1 - 1e-12)
    assert min(lengths) <= trace.of_a_step * (1 + 1e-12)
    assert trace.of_a_step <= max(lengths) * (1 + 1e-12)


@given(st.floats(1, 1e6), st.floats(0, 5), st.floats(0, 5))
def test_a_wider_spread_lengthens_the_sequence_of_a_step(
    mean: float, cv: float, more: float
) -> None:
    narrow, wide = Lengths.lognormal(mean, cv), Lengths.lognormal(mean, cv + more)
    assert narrow.mean == wide.mean == mean
    assert narrow.of_a_step <= wide.of_a_step * (1 + 1e-12)


@pytest.mark.parametrize(
    ("isl", "osl", "context"),
    [
        (1000, 200, 1100),
        # Long outputs have more steps: 35 on average of 20; 1000 + 17.5.
        (1000, {"trace": [10, 10, 10, 50]}, 1017),
        ({"uniform": {"low": 100, "high": 300}}, 100, 250),
    ],
)
def test_tokens_in_a_cache_at_a_random_step(isl: Any, osl: Any, context: int) -> None:
    lengths = (LENGTH.validate_python(x) for x in (isl, osl))
    assert mean_context(*lengths) == context


@pytest.mark.parametrize(
    "length",
    [
        0,
        -5,
        {"uniform": {"low": 10, "high": 5}},
        {"lognormal": {"mean": 0.5, "cv": 1}},
        {"lognormal": {"mean": 10, "cv": 11}},
        {"histogram": {"10": 0}},
        {"histogram": {"0": 1}},
        {"histogram": {}},
        {"trace": []},
        {"normal": {"mean": 1}},
        {"uniform": {"low": 1, "high": 2}, "trace": [1]},
        "100",
    ],
)
def test_what_is_no_length(length: Any) -> None:
    with pytest.raises(ValidationError):
        LENGTH.validate_python(length)


@pytest.mark.parametrize(
    "make",
    [
        lambda: Lengths.fixed(0),
        lambda: Lengths.fixed(math.nan),
        lambda: Lengths.trace([]),
        lambda: Lengths.histogram({10.0: -1.0}),
        lambda: Lengths.histogram({}),
        lambda: Lengths.uniform(-10, 2),
    ],
)
def test_lengths_that_are_no_distribution(make: Any) -> None:
    with pytest.raises(InvalidLengths, match="lengths: "):
        make()


PLAIN = Queueing(first_s=0.0, burst=0.0, wait=0.0)


def state(
    clients: float,
    osl: float = 101.0,
    prompt_s: float = 0.0001,
    step_s: float = 0.01,
    slope_s: float = 0.0,
    room: float = 1e9,
    queueing: Queueing = PLAIN,
) -> Steady:
    return steady_state(
        lambda batch: step_s + slope_s * batch,
        lambda _: Prompts(prompt_s, prompt_s, prompt_s),
        clients,
        osl,
        room,
        queueing,
    )


def test_one_client_alone() -> None:
    """A prompt of 0.5 s and 100 steps of 10 ms: 1.5 s a request, two thirds of it decoding."""
    found = state(1, prompt_s=0.5)
    assert float(found.ttft_s) == pytest.approx(0.5, rel=1e-6)
    assert float(found.tpot_s) == pytest.approx(0.01)
    assert float(found.requests_per_s) == pytest.approx(1 / 1.5, rel=1e-6)
    assert float(found.running) == pytest.approx(2 / 3, rel=1e-3)
    assert float(found.prompt_share) == pytest.approx(1 / 3, rel=1e-6)


def test_many_clients_of_short_prompts_all_decode() -> None:
    """Prompts that take next to nothing: TPOT is the step at a batch of all clients."""
    found = state(64, prompt_s=1e-7, slope_s=1e-3)
    assert float(found.running) == pytest.approx(64, rel=1e-3)
    assert float(found.tpot_s) == pytest.approx(0.01 + 0.064, rel=1e-3)
    assert float(found.requests_per_s) == pytest.approx(64 / (100 * 0.074), rel=1e-3)


@given(
    st.integers(1, 500),
    st.floats(2, 1000),
    st.floats(1e-4, 0.5),
    st.floats(1e-3, 0.1),
    st.floats(0, 0.01),
)
@settings(max_examples=30, deadline=None)
def test_what_holds_of_any_load(
    clients: int, osl: float, prompt_s: float, step_s: float, slope_s: float
) -> None:
    """Little (1961): clients = X·(TTFT + (OSL − 1)·TPOT); no more prompts than time."""
    found = state(clients, osl, prompt_s, step_s, slope_s)
    cycle_s = float(found.ttft_s) + (osl - 1) * float(found.tpot_s)
    assert float(found.requests_per_s) * cycle_s == pytest.approx(clients, rel=5e-3)
    assert 0 < float(found.prompt_share) <= 1 + 1e-9
    assert float(found.prompt_share) == pytest.approx(float(found.requests_per_s) * prompt_s)
    assert float(found.running) <= clients * (1 + 1e-6)
    assert float(found.tpot_s) >= step_s
    assert float(found.ttft_s) >= prompt_s
    assert float(found.queued) == 0


@given(st.integers(1, 200), st.integers(1, 200))
@settings(max_examples=20, deadline=None)
def test_clients_without_room_wait_and_leave_tpot_alone(room: int, more: int) -> None:
    full, over = state(room, room=room), state(room + more, room=room)
    assert float(over.queued) == more
    assert float(over.tpot_s) == pytest.approx(float(full.tpot_s))
    assert float(over.requests_per_s) == pytest.approx(float(full.requests_per_s))
    waited = more / float(full.requests_per_s)
    assert float(over.ttft_s) - float(full.ttft_s) == pytest.approx(waited)


@given(st.integers(1, 300), st.integers(1, 100))
@settings(max_examples=20, deadline=None)
def test_more_clients_never_get_less_out_and_never_faster(clients: int, more: int) -> None:
    few, many = (state(n, slope_s=1e-4, prompt_s=0.01) for n in (clients, clients + more))
    assert float(many.requests_per_s) >= float(few.requests_per_s) * (1 - 2e-3)
    assert float(many.tpot_s) >= float(few.tpot_s) * (1 - 2e-3)


def test_receiving_a_request_lengthens_its_start_alone() -> None:
    slow = Queueing(first_s=0.3, burst=0.0, wait=0.0)
    plain, late = state(1, prompt_s=0.5), state(1, prompt_s=0.5, queueing=slow)
    assert float(late.ttft_s) - float(plain.ttft_s) == pytest.approx(0.3, rel=1e-6)
    assert float(late.tpot_s) == pytest.approx(float(plain.tpot_s))


@pytest.mark.parametrize(
    ("queueing", "running", "before"),
    [
        (PLAIN, 10, 0.0),
        # A twentieth of the nine others.
        (Queueing(0.0, 0.05, 0.0), 10, 0.45),
        (Queueing(0.0, 0.05, 0.0), 1, 0.0),
        # One client in step, of 9 in 10; and half of all the others besides.
        (Queueing(0.0, 0.0, 0.0, ahead=1.0), 10, 0.9),
        (Queueing(0.0, 0.0, 0.0, ahead=1.0, together=0.5), 10, 0.9 + 4.5),
        # Never more than there are.
        (Queueing(0.0, 1.0, 0.0, ahead=5.0, together=1.0), 10, 9.0),
    ],
)
def test_prompts_before_a_new_one(queueing: Queueing, running: float, before: float) -> None:
    assert float(queueing.before(np.array(running))) == pytest.approx(before)


def test_arrays_of_clients() -> None:
    clients = np.array([1.0, 8.0, 64.0])
    together = steady_state(
        lambda batch: 0.01 + 1e-4 * batch,
        lambda _: Prompts(0.01, 0.01, 0.01),
        clients,
        50.0,
        32.0,
        PLAIN,
    )
    for index, each in enumerate(clients):
        alone = state(each, 50.0, 0.01, 0.01, 1e-4, 32.0)
        assert together.tpot_s[index] == pytest.approx(float(alone.tpot_s), rel=2e-3)
        assert together.queued[index] == max(0.0, each - 32)
