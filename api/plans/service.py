"""Answering without storing, within the service's limits."""

from __future__ import annotations

import math

from api.catalog.names import Names
from api.catalog.own import OwnObjects
from api.plans.schemas import RooflineAsked
from api.settings import Settings
from api.store import Database
from api.web.call import ask
from api.web.problem import over_limit
from planner.answer import Plan
from planner.hw import get_accelerator
from planner.kernel_view import Roofline, place
from planner.models import get_model
from planner.recommend import Recommendation, RecommendationRequest, recommend
from planner.scenario import Scenario
from planner.sweep import SweepRequest, SweepResult, sweep


class Plans:
    """Answers for one workspace."""

    def __init__(self, database: Database, settings: Settings, workspace: str) -> None:
        self.settings = settings
        self.names = Names(OwnObjects(database), workspace)

    def plan(self, scenario: Scenario) -> Plan:
        """Return the plan of a scenario."""
        most = self.settings.max_plan_points
        points = len(scenario.batch or [1]) * len(scenario.context or [1])
        if points > most:
            raise over_limit("batch", points, most, "PLANNER_MAX_PLAN_POINTS")
        return self.names.plan(scenario)[0]

    def sweep(self, request: SweepRequest) -> SweepResult:
        """Return the rows of a sweep; own accelerators may stand in its axis."""
        rows = _rows(request)
        if rows > self.settings.max_sweep_points:
            raise over_limit(
                "axes", rows, self.settings.max_sweep_points, "PLANNER_MAX_SWEEP_POINTS"
            )
        # The scenario's own gpu need not be one where the axis replaces it, but no file either.
        changed = {"scenario": self.names.inline(request.scenario).scenario}
        if request.gpu is not None:
            changed["gpu"] = [self.names.accelerator(name) for name in request.gpu]  # type: ignore[assignment]
        return ask(sweep, request.model_copy(update=changed))

    def recommend(self, request: RecommendationRequest) -> Recommendation:
        """Return the batch to run on each accelerator asked about."""
        changed = {"model": self.names.model(request.model)}
        if request.gpu is not None:
            changed["gpu"] = [self.names.accelerator(name) for name in request.gpu]  # type: ignore[assignment]
        found = ask(recommend, request.model_copy(update=changed))
        return found.model_copy(update={"request": request})

    def roofline(self, asked: RooflineAsked) -> Roofline:
        """Return the kernels of each kind of layer on the accelerator's roofline."""
        spec = ask(get_model, self.names.model(asked.model), local=False)
        accelerator = ask(get_accelerator, self.names.accelerator(asked.gpu), allow_files=False)
        formats = ask(spec.formats, asked.weights, asked.kv)
        return ask(place, spec, accelerator, formats, asked.batch, asked.context, asked.phase)


def _rows(request: SweepRequest) -> int:
    base = request.scenario
    axes = (request.gpu, request.tp, request.weights, request.kv,
            request.batch or base.batch, request.context or base.context)  # fmt: skip
    return math.prod(len(axis or [None]) for axis in axes)
