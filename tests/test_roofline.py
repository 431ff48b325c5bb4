"""The roofline: rates, times and knees by hand, and what must hold of any machine and work."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.roofline import Roof, Work, bound, p_norm
from planner.units import count, number, percent, scaled, seconds

ROOF = Roof(1e12, 1e10)
"""A ridge of 100 FLOP/byte."""
positive = st.floats(1e-6, 1e15)


@pytest.mark.parametrize(
    ("flops", "moved", "intensity", "attained", "time_s", "limit"),
    [
        # 4 FLOP/byte reach 4e10 of 1e12; a tenth of a second a gigabyte.
        (4e9, 1e9, 4.0, 4e10, 0.1, "memory"),
        (1e12, 1e9, 1000.0, 1e12, 1.0, "compute"),
        # On the ridge both take as long, and memory is said to bind.
        (1e11, 1e9, 100.0, 1e12, 0.1, "memory"),
    ],
)
def test_three_points(
    flops: float, moved: float, intensity: float, attained: float, time_s: float, limit: str
) -> None:
    work = Work(flops, moved)
    assert work.intensity == intensity
    assert ROOF.ridge == 100
    assert ROOF.attainable(intensity) == attained
    assert ROOF.time(work) == pytest.approx(time_s)
    assert str(bound(ROOF.compute_time(work), ROOF.memory_time(work))) == limit


@pytest.mark.parametrize(
    ("a", "b", "p", "value"),
    [
        (3.0, 4.0, 2.0, 5.0),
        (3.0, 4.0, 1.0, 7.0),
        (3.0, 4.0, math.inf, 4.0),
        (6.0, 8.0, 2.0, 10.0),
        (0.0, 4.0, 2.0, 4.0),
        (0.0, 0.0, 2.0, 0.0),
        (1.0, 1.0, 4.0, 2**0.25),
        # Neither overflows nor vanishes.
        (3e200, 4e200, 2.0, 5e200),
        (3e-200, 4e-200, 2.0, 5e-200),
    ],
)
def test_p_norm(a: float, b: float, p: float, value: float) -> None:
    assert float(p_norm(a, b, p)) == pytest.approx(value)
    assert float(p_norm(b, a, p)) == pytest.approx(value)


@given(positive, positive, st.floats(1, 50), st.floats(1e-3, 1e3))
def test_p_norm_scales_with_its_arguments(a: float, b: float, p: float, factor: float) -> None:
    """Homogeneous of degree one: what makes a step's time separate (see `planner.step`)."""
    together = float(p_norm(factor * a, factor * b, p))
    assert together == pytest.approx(factor * float(p_norm(a, b, p)), rel=1e-9)


@given(positive, positive, st.floats(1, 30), st.floats(0, 30))
def test_a_sharper_knee_is_never_slower(a: float, b: float, p: float, more: float) -> None:
    assert float(p_norm(a, b, p + more)) <= float(p_norm(a, b, p)) * (1 + 1e-12)


@given(positive, positive, positive)
def test_more_work_never_takes_less(flops: float, moved: float, more: float) -> None:
    base = ROOF.time(Work(flops, moved))
    assert ROOF.time(Work(flops + more, moved)) >= base
    assert ROOF.time(Work(flops, moved + more)) >= base


def test_launches_add_to_either_limit() -> None:
    slow = Roof(1e12, 1e10, launch_s=0.05)
    assert slow.time(Work(4e9, 1e9)) == pytest.approx(0.15)
    assert slow.time(Work(0.0, 0.0)) == 0.05
    soft = Roof(1e12, 1e10, sharpness=2.0)
    assert soft.time(Work(3e11, 4e9)) == pytest.approx(0.5)


def test_work_adds_and_multiplies() -> None:
    total = Work(1.0, 2.0) + Work(10.0, 20.0) * 3
    assert (total.flops, total.bytes) == (31.0, 62.0)
    assert total.intensity == 0.5


def test_arrays_broadcast() -> None:
    work = Work(np.array([[1e9], [1e12]]), np.array([1e7, 1e9]))
    assert ROOF.time(work).shape == (2, 2)
    assert ROOF.time(work).tolist() == [[1e-3, 0.1], [1.0, 1.0]]
    limits = bound(ROOF.compute_time(work), ROOF.memory_time(work))
    assert limits.tolist() == [["memory", "memory"], ["compute", "compute"]]


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (3.35e12, "B/s", "3.35 TB/s"),
        (989.4e12, "FLOP/s", "989 TFLOP/s"),
        (1e15, "FLOP/s", "1 PFLOP/s"),
        (999.6, "B", "1000 B"),
        (1000.0, "B", "1 kB"),
        (2.5e6, "B", "2.5 MB"),
        (0.25, "B", "0.25 B"),
        (0.0, "B", "0 B"),
        (-4.2e9, "B", "-4.2 GB"),
        (70_553_706_496, "", "70.6 G"),
        (12.0, "", "12"),
    ],
)
def test_prefixes(value: float, unit: str, text: str) -> None:
    assert scaled(value, unit) == text
    if not unit:
        assert count(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (2.0, "2 s"),
        (123.4, "123 s"),
        (0.0106, "10.6 ms"),
        (0.001, "1 ms"),
        (5e-5, "50 µs"),
        (3.2e-8, "32 ns"),
        (0.0, "0 s"),
        (-0.002, "-2 ms"),
        (12_345.0, "12345 s"),
    ],
)
def test_durations(value: float, text: str) -> None:
    assert seconds(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (59.78, "59.8"),
        (None, "–"),
        (0.0, "0"),
        (1234567.0, "1234567"),
        (0.012345, "0.0123"),
        # Too small for three digits behind the point, and not nothing.
        (0.0000123, "1.23e-05"),
    ],
)
def test_plain_figures(value: float | None, text: str) -> None:
    assert number(value) == text


@pytest.mark.parametrize(
    ("share", "text"),
    [(0.125, "12%"), (0.05, "5.0%"), (0.0, "0%"), (1.0, "100%"), (0.0999, "10.0%"), (0.1, "10%")],
)
def test_shares(share: float, text: str) -> None:
    assert percent(share) == text


@given(st.floats(1e-9, 1e17))
def test_three_digits_are_within_half_a_percent(value: float) -> None:
    factors = {"": 1.0, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15}
    figure, _, prefix = scaled(value, "B").partition(" ")
    assert float(figure) * factors[prefix.removesuffix("B")] == pytest.approx(value, rel=0.006)
