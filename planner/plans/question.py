"""What a recommendation is asked, read once: requests, limits, prices, what is open."""

from __future__ import annotations

from dataclasses import dataclass

from planner.engines.settings import MemorySettings
from planner.models.spec import ModelSpec
from planner.plans.curves import Requests
from planner.plans.money import PriceBook, Tariff
from planner.plans.request import RecommendationRequest, several
from planner.plans.sizing import Wanted
from planner.plans.space import Axes
from planner.plans.uncertainty import z_of
from planner.workload.distributions import moments
from planner.workload.sessions import session_hit


@dataclass(frozen=True, slots=True, eq=False)
class Question:
    """A request, read once."""

    request: RecommendationRequest
    spec: ModelSpec
    requests: Requests
    wanted: Wanted
    z: float
    """Place of the uncertainty that numbers are taken at [-]."""
    prices: PriceBook

    @classmethod
    def of(cls, request: RecommendationRequest, spec: ModelSpec) -> Question:
        """Return the question of a request; raises ValueError that names a field."""
        isl, osl = moments(request.isl or 1), moments(request.osl or 1)
        hit = session_hit(isl.mean, osl.mean, request.turns, request.prefix_tokens)
        prices = PriceBook(
            request.price_kind,
            request.provider,
            request.usd_per_gpu_hour,
            request.price_days,
            request.duty_cycle,
        )
        return cls(
            request,
            spec,
            Requests(isl, osl, request.prefix_hit or float(hit)),
            Wanted.of(request),
            z_of(request.percentile),
            prices,
        )

    @property
    def axes(self) -> Axes:
        """What is open and what is fixed."""
        request = self.request
        return Axes(
            settings=MemorySettings.of(request),
            engines=several(request.engine),
            engine_version=request.engine_version,
            weights=several(request.weights) or (None,),
            kv=several(request.kv),
            tp=request.tp,
            pp=request.pp,
            ep=request.ep,
            attention_dp=request.attention_dp,
            speculation=request.speculation,
            most_gpus=request.gpus,
        )

    def most_gpus(self, tariff: Tariff | None) -> int | None:
        """Return the GPUs that there are or that the budget pays; None without such a limit [-]."""
        budget = self.request.usd_per_month
        if budget is None:
            return self.request.gpus
        if tariff is None:
            return 0
        return int(budget / self.prices.usd_per_month(tariff.usd_per_gpu_hour))
