"""The interval of a further fold, from those that were left out: by hand, and what it must hold."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.accuracy.coverage import without
from planner.accuracy.holdout import REQUEST, Held, error, undoubted
from planner.accuracy.intervals import (
    HIGH,
    LOW,
    a_further_source,
    either_way,
    errors_by_fold,
    further,
)
from planner.calibration.subject import Subject
from planner.roofline import Array
from planner.runs.predict import Prediction
from planner.runs.rows import Row


def row(fold: str, ttft: float = 0.0, tpot: float = 0.0, doubt: str = "", queued: str = "") -> Held:
    """A run of 100 + 100·10 ms as predicted, each part exp(…) times as long as that."""
    measured = {"ttft_ms": 100.0 * float(np.exp(ttft)), "tpot_ms": 10.0 * float(np.exp(tpot))}
    run = Row("serving", {"osl": "101"}, measured, {"queued": queued})
    prediction = Prediction("1", {"ttft_ms": 100.0, "tpot_ms": 10.0})
    return Held(run, Subject({}), "gpu", fold, prediction, doubt)


def folds(*values: list[float]) -> list[Array]:
    return [np.array(each) for each in values]


@pytest.mark.parametrize(
    ("errors", "ends"),
    [
        # Two folds of one row at 0 and 0.2: 0.1 ± 0.1·√((1 + ½)·2) = 0.1 ± 0.1732, nothing within.
        (folds([0.0], [0.2]), (-0.0732, 0.2732)),
        # Three alike are the same folds however many rows they have, and nothing lies between.
        (folds([0.1] * 4, [0.1], [0.1] * 9), (0.1, 0.1)),
        # One fold: its quantiles, as there is nothing to tell folds apart by.
        (folds([-1.0, 1.0]), (-1.0, 1.0)),
        # Three of one row at 0, 0.3 and 0.6: 0.3 ± 0.3·√((1 + ⅓)·1.5) = 0.3 ± 0.4243.
        (folds([0.0], [0.3], [0.6]), (-0.1243, 0.7243)),
    ],
)
def test_the_interval_of_a_further_fold_by_hand(
    errors: list[Array], ends: tuple[float, float]
) -> None:
    assert further(errors).tolist() == pytest.approx(ends, abs=1e-4)


def test_a_large_fold_is_not_many_folds() -> None:
    """99 rows at 0 and one fold of a row at 1 are worth 1.02 folds: its offset lies ten times as
    far off, and at a hundredth of the weight it still does not reach the 92.5% quantile."""
    low, high = further(folds([0.0] * 99, [1.0]))
    assert abs(low) < 0.2
    assert high < 0.2
    # Of equal size it does: worth two folds, 0.5 ± 0.5·√3.
    low, high = further(folds([0.0] * 50, [1.0] * 50))
    assert (low, high) == pytest.approx((0.5 - 0.866, 0.5 + 0.866), abs=1e-3)


ERRORS = st.lists(st.floats(-1.0, 1.0), min_size=1, max_size=6)


@settings(max_examples=40, deadline=None)
@given(st.lists(ERRORS, min_size=1, max_size=5), st.floats(-2.0, 2.0))
def test_a_bias_of_all_folds_moves_both_ends(values: list[list[float]], bias: float) -> None:
    ends = further(folds(*values))
    moved = further(folds(*([e + bias for e in fold] for fold in values)))
    assert ends[0] <= ends[1]
    assert moved == pytest.approx(ends + bias, abs=1e-9)


@settings(max_examples=40, deadline=None)
@given(st.lists(ERRORS, min_size=2, max_size=5), st.floats(0.1, 5.0))
def test_errors_so_many_times_as_large_make_it_so_many_times_as_wide(
    values: list[list[float]], times: float
) -> None:
    for ends in (further, either_way, a_further_source):
        wide = ends(folds(*([times * e for e in fold] for fold in values)))
        assert wide == pytest.approx(times * ends(folds(*values)), abs=1e-6)


def test_folds_of_one_spread_hold_what_they_should() -> None:
    """Forty folds whose offsets and rows are both normal of 0.1: of each the interval of the others
    holds about 85% of its rows, the quantiles being 7.5 and 92.5%."""
    chance = np.random.default_rng(7)
    drawn = [chance.normal(chance.normal(0, 0.1), 0.1, 30) for _ in range(40)]
    shares = []
    for place, fold in enumerate(drawn):
        low, high = further([*drawn[:place], *drawn[place + 1 :]])
        shares.append(((fold >= low) & (fold <= high)).mean())
    assert float(np.mean(shares)) == pytest.approx(HIGH - LOW, abs=0.03)


def test_a_vendor_is_off_either_way() -> None:
    """Of errors of −0.1 to −2.0 in twenty steps 85% are below 1.715 (at place 16.15 of 19)."""
    errors = -np.arange(1, 21) / 10
    assert either_way([errors]).tolist() == pytest.approx([-1.715, 1.715])
    assert either_way([-errors]).tolist() == pytest.approx([-1.715, 1.715])


def test_sources_count_alike_however_many_runs_they_published() -> None:
    few = a_further_source(folds([0.0], [0.2]))
    many = a_further_source(folds([0.0] * 500, [0.2]))
    assert few.tolist() == pytest.approx(many.tolist())
    # 0.1 ± 3.0777·√(0.02·1.5): Student's t of one degree at 0.9.
    assert few.tolist() == pytest.approx([0.1 - 0.5331, 0.1 + 0.5331], abs=1e-4)


def test_errors_lie_in_their_folds() -> None:
    rows = [row("a", tpot=0.1), row("b", tpot=0.2), row("a", tpot=0.3)]
    errors = errors_by_fold(rows, ("tpot_ms",))
    assert {fold: each.tolist() for fold, each in errors.items()} == {
        "a": pytest.approx([0.1, 0.3]),
        "b": pytest.approx([0.2]),
    }
    assert [each.tolist() for each in without(errors, "a")] == [pytest.approx([0.2])]
    assert len(without(errors, "c")) == 2
    assert errors_by_fold(rows, ("value",)) == {}


@pytest.mark.parametrize(
    ("ttft", "tpot", "off"),
    [
        (0.0, 0.0, 0.0),
        # 200 + 1000 of 1100 ms.
        (np.log(2), 0.0, np.log(1200 / 1100)),
        # Half as long to the first token, 1.05 times between: 50 + 1050, which is as predicted.
        (np.log(0.5), np.log(1.05), 0.0),
    ],
)
def test_the_time_of_a_request_is_off_by_less_than_its_parts(
    ttft: float, tpot: float, off: float
) -> None:
    one = row("a", ttft, tpot)
    assert error(one, REQUEST) == pytest.approx(off, abs=1e-12)


def test_a_request_needs_both_of_its_times() -> None:
    one = replace(row("a"), row=Row("serving", {"osl": "101"}, {"tpot_ms": 10.0}, {}))
    assert error(one, REQUEST) is None
    assert error(one, "ttft_ms") is None
    assert error(one, "tpot_ms") == 0.0


@pytest.mark.parametrize(
    ("doubt", "queued", "counts"), [("", "", True), ("too fast", "", False), ("", "1", False)]
)
def test_what_counts_for_intervals(doubt: str, queued: str, counts: bool) -> None:
    assert undoubted(row("a", doubt=doubt, queued=queued)) is counts
