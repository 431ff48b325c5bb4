"""Leaving rows out by one step: near a whole fit, exact where nothing is left out."""

from __future__ import annotations

import numpy as np
import pytest

from planner.accuracy.one_step import OneStep
from planner.fitting.fit import fit
from planner.fitting.refit import Fitted
from tests.fitting.test_fit import problem

ROWS = 150


@pytest.fixture(scope="module")
def fitted() -> Fitted:
    """Kernels of two accelerators, with errors of 5%."""
    design, times = problem(ROWS)
    noise = np.random.default_rng(5).normal(0, 0.05, 2 * ROWS)
    return Fitted(design, times * np.exp(noise), np.ones(2 * ROWS))


def test_nothing_left_out_changes_nothing(fitted: Fitted) -> None:
    one = OneStep(fitted)
    assert one.without(np.array([], int)).shape == (0,)
    weightless = Fitted.__new__(Fitted)
    weightless.problem, weightless.measured = fitted.problem, fitted.measured
    weightless.weight = fitted.weight.copy()
    weightless.weight[:3] = 0
    weightless.unknowns = fit(fitted.problem, fitted.measured, weightless.weight)
    # Rows that the fit has not seen are predicted as it predicts them.
    found = OneStep(weightless).without(np.arange(3))
    times = fitted.problem.predict(weightless.unknowns)
    assert found == pytest.approx(np.log(times / fitted.measured)[:3], abs=2e-3)


@pytest.mark.parametrize("rows", [slice(0, 10), slice(ROWS, 2 * ROWS)])
def test_near_a_fit_without_the_rows(fitted: Fitted, rows: slice) -> None:
    """A few rows; and all of an accelerator, whose own factor then leaves its 0.5 of 0.8."""
    out = np.arange(2 * ROWS)[rows]
    use = np.ones(2 * ROWS, bool)
    use[out] = False
    exact = np.log(fitted.predicted(use) / fitted.measured)[out]
    assert OneStep(fitted).without(out) == pytest.approx(exact, abs=0.04)


def test_folds_are_left_out_in_turn(fitted: Fitted) -> None:
    keys = np.array(["a", "b"] * ROWS)
    one = OneStep(fitted)
    folds = list(one.left_out(keys, ["a", "b"]))
    assert [rows[0] for rows, _ in folds] == [0, 1]
    assert folds[1][1] == pytest.approx(one.without(np.arange(1, 2 * ROWS, 2)))
