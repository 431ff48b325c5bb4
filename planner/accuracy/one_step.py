"""Leaving rows out by one step of Gauss and Newton from the fit to all rows.

At the solution the cost is close to a quadratic form in the unknowns: without some rows its minimum
is one linear solve away, where a fit takes many evaluations of all rows. On the committed rows the
median and mean errors of models left out come out within half a point of those of whole fits, which
is enough to compare variants of the law; the tables of errors come from whole fits.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse
from scipy.linalg import solve

from planner.fitting.fit import FAINT, OUTLIER, SIGMA
from planner.fitting.refit import Fitted
from planner.roofline import Array, Words


class OneStep:
    """A solved problem, linear in the logarithm of the times about its solution."""

    def __init__(self, fitted: Fitted) -> None:
        """Evaluate the slopes of all rows once."""
        self.problem = fitted.problem
        self.unknowns = fitted.unknowns
        times, slopes = fitted.problem.jacobian(fitted.unknowns)
        self.error = np.log(times) - np.log(fitted.measured)
        knee = OUTLIER * SIGMA
        self.weight = fitted.weight / SIGMA**2 / np.sqrt(1 + (self.error / knee) ** 2)
        slopes = (sparse.diags(1 / times) @ slopes).tocsc()
        precision = fitted.problem.sd**-2.0
        seen = np.asarray((sparse.diags(self.weight) @ slopes.multiply(slopes)).sum(axis=0)).ravel()
        self.coupled = np.flatnonzero(seen > FAINT * precision)
        self.precision = precision[self.coupled]
        self.slopes = slopes[:, self.coupled].tocsr()

    @cached_property
    def _of_all(self) -> tuple[Array, Array]:
        return self._equations(np.arange(len(self.error)))

    def _equations(self, rows: Any) -> tuple[Array, Array]:
        """Normal matrix and gradient of some rows, without the priors'."""
        slopes, weight = self.slopes[rows], self.weight[rows]
        weighted = sparse.diags(weight) @ slopes
        return (slopes.T @ weighted).toarray(), np.asarray(weighted.T @ self.error[rows]).ravel()

    def without(self, rows: Any) -> Array:
        """Return log(predicted/measured) of `rows` by a fit that has not seen them [-]."""
        (matrix, gradient), (own, pull) = self._of_all, self._equations(rows)
        matrix = matrix - own
        matrix[np.diag_indices_from(matrix)] += self.precision
        gradient = gradient - pull + self.precision * self.unknowns[self.coupled]
        step = solve(matrix, -gradient, assume_a="pos", check_finite=False)
        return np.asarray(self.error[rows] + self.slopes[rows] @ step)

    def left_out(self, keys: Words, folds: Sequence[str]) -> Iterator[tuple[Any, Array]]:
        """Yield the rows of each fold with their errors, all that share its key left out."""
        for fold in folds:
            rows = np.flatnonzero(keys == fold)
            yield rows, self.without(rows)
