"""A simulation of a deployment under a load, and what its requests saw."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from planner.deployment import Deployment
from planner.roofline import Array
from planner.serving.simulation.policy import Policy
from planner.serving.simulation.schedule import Outcome, Replica
from planner.serving.simulation.tables import StepTables, tables
from planner.workload.arrivals import RequestList

WARM = 0.1
"""Share of requests, the first, that are not counted [-]."""


@dataclass(frozen=True, slots=True, eq=False)
class Simulator:
    """A deployment's schedule and its step times, ready for any requests."""

    tables: StepTables
    policy: Policy

    @classmethod
    def of(
        cls,
        deployment: Deployment,
        mean_isl: float,
        mean_osl: float,
        longest: float,
        prefix_hit: float = 0.0,
    ) -> Simulator:
        """Return the simulator for requests of such mean lengths, none longer than `longest`."""
        context = mean_isl + deployment.engine.output_reserved * mean_osl
        policy = Policy.of(deployment, context, prefix_hit)
        # Short requests beside long ones: more of them may run than of the mean.
        most = min(policy.most_sequences, int(4 * policy.cache_tokens / context) + 8, 2**14)
        return cls.under(
            deployment, replace(policy, most_sequences=most), longest, prefix_hit=prefix_hit
        )

    @classmethod
    def under(
        cls, deployment: Deployment, policy: Policy, longest: float, prefix_hit: float = 0.0
    ) -> Simulator:
        """Return the simulator under a policy, for requests none longer than `longest`."""
        furthest = longest + 1.0 + policy.tokens_per_step  # the last step may yield more than asked
        return cls(tables(deployment, policy.most_sequences, furthest, prefix_hit), policy)

    def closed(self, requests: RequestList, clients: int) -> Outcome:
        """Return the outcome of clients in a closed loop; arrivals are think times."""
        return self._run(requests, clients)

    def open(self, requests: RequestList) -> Outcome:
        """Return the outcome of requests that come when they come."""
        return self._run(requests, None)

    def _run(self, requests: RequestList, clients: int | None) -> Outcome:
        replica = Replica(self.tables, self.policy, clients)
        return replica.run(requests.arrivals_s, requests.isl, requests.osl)


@dataclass(frozen=True, slots=True, eq=False)
class Seen:
    """Times that counted requests saw; arrays of shape (request,) [s]."""

    ttft_s: Array
    tpot_s: Array
    e2e_s: Array

    @classmethod
    def of(cls, outcome: Outcome, warm: float = WARM) -> Seen:
        """Return the times without those of the first share `warm` of requests."""
        first = int(len(outcome.e2e_s) * warm)
        several = outcome.outputs[first:] > 1
        return cls(
            outcome.first_token_s[first:], outcome.tpot_s[first:][several], outcome.e2e_s[first:]
        )

    def at(self, quantity: str, percentile: float | None) -> float:
        """Return a time at a percentile of requests, or its mean [s]."""
        values: Array = getattr(self, f"{quantity}_s")
        if not len(values):
            return 0.0
        return float(values.mean() if percentile is None else np.percentile(values, percentile))
