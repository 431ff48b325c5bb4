"""Requests as they come: times of arrival by rate and spread, lengths drawn from what is asked."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from planner.roofline import Array
from planner.workload.distributions import Histogram, Length, Lognormal, Trace, Uniform


@dataclass(frozen=True, slots=True, eq=False)
class RequestList:
    """Requests in the order in which they come; arrays of shape (request,)."""

    arrivals_s: Array
    isl: Array
    osl: Array

    def __len__(self) -> int:
        return len(self.isl)


def arrivals(count: int, requests_per_s: float, cv: float, rng: np.random.Generator) -> Array:
    """Return ascending times of `count` arrivals [s].

    Gaps are gamma-distributed with a coefficient of variation `cv`: exponential at 1 (Poisson),
    equal at 0, bursts above 1.
    """
    mean_s = 1.0 / requests_per_s
    if cv <= 0:
        return np.asarray(np.arange(1, count + 1) * mean_s)
    shape = 1.0 / cv**2
    return np.asarray(np.cumsum(rng.gamma(shape, mean_s / shape, count)))


def draw(length: Length, count: int, rng: np.random.Generator) -> Array:
    """Return `count` whole lengths of at least one token [token]."""
    return np.maximum(np.round(_draw(length, count, rng)), 1.0)


def _draw(length: Length, count: int, rng: np.random.Generator) -> Array:
    if isinstance(length, int):
        return np.full(count, float(length))
    if isinstance(length, Lognormal):
        mean, cv = length.lognormal.mean, length.lognormal.cv
        sigma = math.sqrt(math.log1p(cv * cv))
        return np.asarray(rng.lognormal(math.log(mean) - sigma * sigma / 2, sigma, count))
    if isinstance(length, Uniform):
        return np.asarray(rng.uniform(length.uniform.low, length.uniform.high, count))
    if isinstance(length, Histogram):
        values = np.array([float(name) for name in length.histogram])
        weights = np.array([*length.histogram.values()], float)
        return np.asarray(rng.choice(values, count, p=weights / weights.sum()))
    if isinstance(length, Trace):
        return np.asarray(rng.choice(np.array(length.trace, float), count))
    raise AssertionError(length)
