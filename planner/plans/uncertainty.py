"""How far off a time may be, as one number: its place z in the prediction's own uncertainty.

A time's logarithm is taken as normal on either side of p50, through p10 and p90. TTFT and TPOT of a
deployment are taken to be off together where limits are on them; rates follow from the time of a
whole request, whose own interval is taken where it is known, as both are seldom off by as much.
"""

from __future__ import annotations

from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from planner.deployment import Deployment
from planner.plans.curves import Curve
from planner.roofline import Array, Numeric

STANDARD = NormalDist()
Z90 = STANDARD.inv_cdf(0.9)
"""Standard deviations from p50 to p90 of a normal distribution [-]."""
ENDS = (-Z90, 0.0, Z90)
"""Places of p10, p50 and p90 [-]."""


def z_of(percentile: float) -> float:
    """Return the place of a percentile, 50 being nought [-]."""
    return 0.0 if percentile == 50 else STANDARD.inv_cdf(percentile / 100)


def probability(z: float) -> float:
    """Return the share of the uncertainty that lies below z [-]."""
    return STANDARD.cdf(z)


@dataclass(frozen=True, slots=True)
class Spread:
    """Factors from p50 to p10 and p90 of TTFT, of TPOT and of a request's whole time [-]."""

    ttft: tuple[float, float]
    tpot: tuple[float, float]
    request: tuple[float, float] | None = None
    """None where it follows from the other two."""

    @classmethod
    def of(cls, deployment: Deployment) -> Spread:
        """Return the factors of a deployment."""
        known = deployment.calibration.intervals.measures("request", deployment.subject)
        return cls(
            deployment.interval("ttft"),
            deployment.interval("tpot"),
            deployment.interval("request") if known else None,
        )

    def at(self, z: Numeric) -> tuple[Array, Array]:
        """Return the factors on TTFT and TPOT at places z [-]."""
        return factor(self.ttft, z), factor(self.tpot, z)

    def request_s(self, curve: Curve, z: float) -> Array:
        """Return the time of a whole request at every load of a curve, z off p50 [s]."""
        if self.request is None:
            return curve.e2e_s(*self.at(z))
        return curve.e2e_s() * factor(self.request, z)


def factor(interval: tuple[float, float], z: Numeric) -> Array:
    """Return the factor on a time at places z of its uncertainty [-]."""
    low, high = interval
    steps = np.asarray(z, float) / Z90
    return np.asarray(np.where(steps > 0, high**steps, low**-steps))
