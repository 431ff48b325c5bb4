"""Limits on times: percentiles of their uncertainty, and the largest load within a limit."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from planner.deployment import Deployment
from planner.roofline import Array, Mask, Numeric

TRIED = 32
"""Loads tried at once in the search for the largest [-]."""

MOST_CLIENTS = 2**14
"""Clients beyond which the largest concurrency is not looked for [-]."""


def quantile(percentile: float) -> float:
    """Return the standard quantile of a percentile, 0 for 50 [-]."""
    if percentile == 50:
        return 0.0
    from statistics import NormalDist  # slow to import, and few questions need it

    return NormalDist().inv_cdf(percentile / 100)


P90 = 1.2815515655446004
"""Standard quantile of the 90th percentile [-]."""


def factor_at(deployment: Deployment, quantity: str, quantiles: Numeric) -> Array:
    """Return the factors from p50 to standard quantiles of a time: tpot or ttft [-].

    The logarithm is taken as normal on either side of p50, through p10 and p90.
    """
    low, high = deployment.interval(quantity)
    steps = np.asarray(quantiles) / P90
    return np.where(steps > 0, high**steps, low**-steps)


def percentile_factor(deployment: Deployment, quantity: str, percentile: float) -> float:
    """Return the factor from p50 to another percentile of a time: tpot or ttft [-]."""
    return float(factor_at(deployment, quantity, quantile(percentile)))


def largest(meets: Callable[[Array], Mask], most: int) -> int:
    """Return the largest whole load up to `most` that `meets` says yes to, else 0.

    `meets` must say yes up to some load and no beyond it.
    """
    low, high = 0, most
    while low < high:
        tried = np.round(np.linspace(low + 1, high, min(TRIED, high - low)))
        yes = np.asarray(meets(tried))
        good = int(yes.argmin()) if not yes.all() else len(tried)
        if good:
            low = int(tried[good - 1])
        if good < len(tried):
            high = int(tried[good]) - 1
    return low


def largest_batch(
    deployment: Deployment, context: int, limit_s: float, most: int, percentile: float = 50
) -> int:
    """Return the largest batch up to `most` whose TPOT is within a limit [s], else 0."""
    factor = percentile_factor(deployment, "tpot", percentile)
    return largest(
        lambda batch: np.asarray(deployment.time_s(batch, context) * factor <= limit_s), most
    )
