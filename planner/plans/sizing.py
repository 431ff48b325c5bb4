"""From what one replica does to how many are needed, at any place of the prediction's uncertainty.

A replica's load is the largest whose TTFT, TPOT and end-to-end time are within the limits. What it
then serves is counted as the demand is: requests in flight c, users c + X·Z who think Z between
requests (Little 1961), or requests per second X.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from planner.plans.curves import Curve
from planner.plans.uncertainty import Spread, probability
from planner.roofline import Array
from planner.workload.fields import Workload

Binding = Literal["memory", "engine_cap", "tpot", "ttft", "e2e", "prompts", "link", "demand"]

PLACES = np.linspace(-3.0, 3.0, 121)
"""Places of the uncertainty at which a probability is looked for [-]."""
MOST_REPLICAS = 2**20
MOSTLY = 0.5
"""Share of the time prompts take, from which on they rather than the limit are named [-]."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """Limits [s] and demand of a workload; infinite where none is given."""

    limits_s: Mapping[str, float]
    """By quantity: ttft, tpot, e2e."""
    demand: str | None
    amount: float
    think_s: float

    @classmethod
    def of(cls, workload: Workload) -> Wanted:
        """Return what a workload wants."""
        limits = {
            "ttft": workload.ttft_ms,
            "tpot": workload.slowest_tpot_ms,
            "e2e": workload.e2e_ms,
        }
        name = workload.demand
        return cls(
            {quantity: ms / 1e3 for quantity, ms in limits.items() if ms},
            name,
            float(getattr(workload, name)) if name else 0.0,
            workload.think_time_s,
        )

    def tightened(self, factors: Mapping[str, float]) -> Wanted:
        """Return the same with limits divided by factors by quantity [-]."""
        limits = {name: s / factors.get(name, 1.0) for name, s in self.limits_s.items()}
        return replace(self, limits_s=limits)


@dataclass(frozen=True, slots=True)
class RequiredLoad:
    """The largest load of one replica within the limits."""

    clients: float
    """Requests in flight; 0 where one alone misses a limit [-]."""
    served: float
    """What it serves, in the demand's unit [-]."""
    binds: str
    """The limit that one more would miss, or `room`."""


@dataclass(frozen=True, slots=True, eq=False)
class Sizing:
    """One replica's curve, its uncertainty, and what is wanted of all replicas."""

    curve: Curve
    spread: Spread
    wanted: Wanted

    def times_s(self, z: float) -> dict[str, Array]:
        """Return every limited time at every load, z off p50 [s]."""
        start, step = self.spread.at(z)
        curve = self.curve
        times = {
            "ttft": curve.ttft_s * start,
            "tpot": curve.tpot_s * step,
            "e2e": curve.e2e_s(start, step),
        }
        return {name: times[name] for name in self.wanted.limits_s}

    def excess(self, z: float) -> dict[str, Array]:
        """Return every limited time over its limit, at every load [-]."""
        return {name: s / self.wanted.limits_s[name] for name, s in self.times_s(z).items()}

    def most(self, z: float = 0.0) -> RequiredLoad:
        """Return the largest load within the limits, z off p50."""
        curve = self.curve
        worst, binds = np.zeros_like(curve.clients), "room"
        ratios = self.excess(z)
        if ratios:
            stacked = np.stack([*ratios.values()])
            worst = np.maximum.accumulate(stacked.max(axis=0))
        missed = int(np.searchsorted(worst, 1.0 + 1e-12, side="right"))
        clients = float(curve.clients[-1])
        if missed < len(worst):
            binds = list(ratios)[int(stacked[:, missed].argmax())]
            if missed == 0:
                return RequiredLoad(0.0, 0.0, binds)
            between = np.log(curve.clients[missed - 1 : missed + 1])
            clients = float(np.exp(np.interp(1.0, worst[missed - 1 : missed + 1], between)))
        return RequiredLoad(clients, self.served(clients, z), binds)

    def served(self, clients: float, z: float = 0.0) -> float:
        """Return what a replica with `clients` in flight serves, in the demand's unit [-]."""
        if self.wanted.demand == "concurrency_in_all":
            return clients
        rate = self.rate(clients, z)
        if self.wanted.demand == "users":
            return clients + rate * self.wanted.think_s
        return rate

    def rate(self, clients: float, z: float = 0.0) -> float:
        """Return the requests per second of a replica with `clients` in flight [1/s]."""
        whole_s = np.interp(clients, self.curve.clients, self.spread.request_s(self.curve, z))
        return clients / float(whole_s)

    def replicas(self, z: float = 0.0) -> int | None:
        """Return the replicas that serve the demand, z off p50; None where no number does."""
        return self.replicas_for(self.most(z))

    def replicas_for(self, load: RequiredLoad) -> int | None:
        """Return the replicas that serve the demand at a load each; None where no number does."""
        if load.served <= 0:
            return None
        needed = max(1, math.ceil(self.wanted.amount / load.served * (1 - 1e-9)))
        return needed if needed <= MOST_REPLICAS else None

    def holds(self, replicas: int) -> float:
        """Return the probability that so many replicas serve the demand within the limits [-]."""
        low, high = 0, len(PLACES)
        while low < high:  # the number needed grows with z
            middle = (low + high) // 2
            needed = self.replicas(float(PLACES[middle]))
            if needed is not None and needed <= replicas:
                low = middle + 1
            else:
                high = middle
        if low == len(PLACES):
            return 1.0
        return probability(float(PLACES[low - 1])) if low else 0.0


def binding(load: RequiredLoad, curve: Curve, capped: bool, transfer: float) -> Binding:
    """Return what binds a load: memory or the engine's cap on sequences where one more has no room,
    else the limit, or prompts or the link where they are most of what is limited.

    `transfer` is the share of TTFT in which a cache is on its way [-].
    """
    if load.binds == "room":
        return "engine_cap" if capped else "memory"
    if load.binds == "ttft" and transfer > MOSTLY:
        return "link"
    share = float(np.interp(load.clients, curve.clients, curve.prompt_share))
    if share > MOSTLY:
        return "prompts"
    names: dict[str, Binding] = {"tpot": "tpot", "ttft": "ttft", "e2e": "e2e"}
    return names[load.binds]
