"""Solving for local factors: several fits to the same rows, with other weights, at once."""

from __future__ import annotations

import numpy as np

from planner.fitting.own_rows import OwnRows
from planner.roofline import Array

SIGMA = 0.1
"""Error of a row against which the priors are weighed; of its logarithm [-]."""

KNEE = 1.5
"""Errors beyond this many sigma pull with the square root of their size [-]."""

MOST = 1.6
"""Largest log factor, about five times [-]."""

ROUNDS = 40

TOL = 1e-4
"""Change of a log factor at which a fit ends [-]."""


def solve(rows: OwnRows, weight: Array) -> Array:
    """Return the log factors of fits with weights of shape (fit, entry), shape (fit, unknown).

    Gauss–Newton on log errors with a pseudo-Huber loss (iteratively reweighted) and Gaussian priors
    around zero, damped after Levenberg and Marquardt.
    """
    precision = rows.deviation**-2.0
    root = np.sqrt(weight) / SIGMA
    target = np.log(np.where(rows.measured > 0, rows.measured, 1.0))

    def cost(error: Array, theta: Array) -> Array:
        loss = 2 * KNEE**2 * (np.sqrt(1 + (error / KNEE) ** 2) - 1)
        return np.asarray(loss.sum(axis=1) + (precision * theta**2).sum(axis=1))

    theta = np.zeros((len(weight), len(rows.unknowns)))
    logs, slopes = rows.slopes(theta)
    error = root * (logs - target)
    best, damping = cost(error, theta), np.full(len(weight), 1e-3)
    active = np.arange(len(weight))
    for _ in range(ROUNDS):
        trial = np.array(
            [
                _step(theta[f], error[f], root[f][:, None] * slopes[f], precision, damping[f])
                for f in active
            ]
        )
        logs, tried = rows.slopes(trial)
        misfit = root[active] * (logs - target)
        after = cost(misfit, trial)
        better = after <= best[active]
        moved = np.abs(trial - theta[active]).max(axis=1)
        won = active[better]
        theta[won], error[won], slopes[won] = trial[better], misfit[better], tried[better]
        best[won] = after[better]
        damping[active] *= np.where(better, 0.2, 5.0)
        active = active[moved > TOL]
        if not active.size:
            break
    return theta


def _step(theta: Array, error: Array, slopes: Array, precision: Array, damping: float) -> Array:
    pull = (1 + (error / KNEE) ** 2) ** -0.5
    gradient = slopes.T @ (pull * error) + precision * theta
    matrix = slopes.T @ (pull[:, None] * slopes) + np.diag(precision)
    matrix[np.diag_indices_from(matrix)] *= 1.0 + damping
    return np.asarray(np.clip(theta - np.linalg.solve(matrix, gradient), -MOST, MOST))
