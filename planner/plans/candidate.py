"""An option of a search: a deployment, its curve, and the number of it that is needed."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from planner.deployment import Deployment
from planner.plans.curves import Curve
from planner.plans.money import Tariff
from planner.plans.question import Question
from planner.plans.sizing import RequiredLoad, Sizing
from planner.plans.uncertainty import Spread


@dataclass(frozen=True, slots=True, eq=False)
class Feeding:
    """Workers for prompts beside a replica that decodes."""

    deployment: Deployment
    prompt_s: float
    """Time a prompt takes of one worker [s]."""
    busy: float


@dataclass(frozen=True, slots=True, eq=False)
class Candidate:
    """An option with its curve and the number of it that is needed."""

    deployment: Deployment
    engine: str | None
    feeding: Feeding | None
    sizing: Sizing
    load: RequiredLoad
    """The largest of one replica within the limits."""
    replicas: int
    """0 where a limit is missed at any load, or what there is does not hold one."""
    tariff: Tariff | None
    transfer: float = 0.0
    """Share of TTFT in which a cache is on its way [-]."""

    @property
    def gpu(self) -> str:
        """The accelerator's id."""
        return self.deployment.accelerator.id

    def usd(self) -> float:
        """Return the price of all GPUs an hour for what they serve [USD]; infinite without one."""
        if self.tariff is None:
            return math.inf
        return self.tariff.usd_per_gpu_hour * self.gpus / self.served

    @property
    def prefill_workers(self) -> int:
        """Workers for prompts that feed all replicas [-]."""
        return feeding_workers(self.feeding, self.replicas * self.rate)

    @property
    def rate(self) -> float:
        """Requests per second of one replica at its largest load [1/s]."""
        return self.sizing.rate(self.load.clients)

    @property
    def gpus(self) -> int:
        """GPUs in all [-]."""
        each = self.deployment.sharding.gpus
        if self.feeding is None:
            return self.replicas * each
        return self.replicas * each + self.prefill_workers * self.feeding.deployment.sharding.gpus

    @property
    def served(self) -> float:
        """What all replicas serve at most, in the demand's unit [-]."""
        return self.replicas * self.load.served

    @property
    def e2e_s(self) -> float:
        """Time of a request at the largest load [s]."""
        curve = self.sizing.curve
        return float(np.interp(self.load.clients, curve.clients, curve.e2e_s()))

    def worst(self, z: float) -> float:
        """Return the largest ratio of a time to its limit at the smallest load [-]."""
        return max((float(r[0]) for r in self.sizing.excess(z).values()), default=0.0)


def feeding_workers(feeding: Feeding | None, rate: float) -> int:
    """Return the workers that prompts of `rate` requests per second need [-]."""
    if feeding is None:
        return 0
    return max(1, math.ceil(rate * feeding.prompt_s / feeding.busy * (1 - 1e-9)))


def within_means(question: Question, candidate: Candidate) -> bool:
    """Return whether an option takes no more GPUs or money than there is."""
    most = question.most_gpus(candidate.tariff)
    return most is None or candidate.gpus <= most


def sized(
    question: Question,
    deployment: Deployment,
    engine: str | None,
    feeding: Feeding | None,
    curve: Curve,
    tariff: Tariff | None,
    transfer: float = 0.0,
) -> Candidate:
    """Return an option with the number that the demand needs; without one, that there is."""
    aim = question.wanted
    sizing = Sizing(curve, Spread.of(deployment), aim)
    load = sizing.most(question.z)
    candidate = Candidate(deployment, engine, feeding, sizing, load, 0, tariff, transfer)
    if load.served <= 0:
        return candidate
    most = question.most_gpus(tariff)
    if aim.demand:
        replicas = sizing.replicas_for(load) or 0
    elif most is None:
        replicas = 1
    else:
        replicas = _fitting(candidate, most)
    return Candidate(deployment, engine, feeding, sizing, load, replicas, tariff, transfer)


def _fitting(candidate: Candidate, most: int) -> int:
    """Return the replicas that `most` GPUs hold, with the workers that feed them [-]."""
    each = candidate.deployment.sharding.gpus
    replicas, feeding = most // each, candidate.feeding
    if feeding is None:
        return replicas
    worker = feeding.deployment.sharding.gpus
    while replicas and (
        replicas * each + feeding_workers(feeding, replicas * candidate.rate) * worker > most
    ):
        replicas -= 1
    return replicas
