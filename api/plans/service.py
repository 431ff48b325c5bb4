"""Answering without storing, within the service's limits."""

from __future__ import annotations

import math
from collections.abc import Sequence

from api.catalog.names import Name, Names, is_own, label
from api.catalog.own import OwnObjects
from api.plans.schemas import RooflineAsked
from api.web.call import ask
from api.web.context import Services
from api.web.problem import over_limit
from planner.answer import Plan
from planner.hw import get_accelerator
from planner.models import get_model
from planner.plans.recommend import Recommendation, RecommendationRequest, recommend
from planner.plans.sweep import SweepRequest, SweepResult, sweep
from planner.scenario import Scenario
from planner.step.placement import Roofline, place


class Plans:
    """Answers for one workspace."""

    def __init__(self, services: Services, workspace: str) -> None:
        self.settings = services.settings
        self.names = Names(OwnObjects(services.database), workspace)
        self.calibrated = services.calibrations.used

    def plan(self, scenario: Scenario, advice: bool) -> Plan:
        """Return the plan of a scenario, with its levers if `advice`."""
        most = self.settings.max_plan_points
        points = len(scenario.batch or [1]) * len(scenario.context or [1])
        if points > most:
            raise over_limit("batch", points, most, "PLANNER_MAX_PLAN_POINTS")
        with self.calibrated(self.names.workspace):
            return self.names.plan(scenario, advice)[0]

    def sweep(self, request: SweepRequest) -> SweepResult:
        """Return the rows of a sweep; own accelerators may stand in its axis."""
        rows = _rows(request)
        if rows > self.settings.max_sweep_points:
            raise over_limit(
                "axes", rows, self.settings.max_sweep_points, "PLANNER_MAX_SWEEP_POINTS"
            )
        inlined = self.names.inline(request.scenario).scenario
        gpus = self._accelerators(request.gpu)
        with self.calibrated(self.names.workspace):
            found = ask(sweep, request.model_copy(update={"scenario": inlined, "gpu": gpus}))
        # The accelerator is the outermost axis: its rows are together.
        names = [label(gpu) for gpu in (*(request.gpu or ()),)] or [label(request.scenario.gpu)]
        size = found.rows // len(names)
        told = {"gpu": [name for name in names for _ in range(size)]}
        return found.model_copy(update={"columns": {**found.columns, **told}})

    def recommend(self, request: RecommendationRequest) -> Recommendation:
        """Return the batch to run on each accelerator asked about."""
        model, gpus = self.names.model(request.model), self._accelerators(request.gpu)
        with self.calibrated(self.names.workspace):
            found = ask(recommend, request.model_copy(update={"model": model, "gpu": gpus}))
        names = _names(request.gpu or [], gpus or [])
        told = {
            field: [one.model_copy(update={"gpu": names.get(one.gpu, one.gpu)}) for one in items]
            for field, items in (("choices", found.choices), ("refused", found.refused))
        }
        return found.model_copy(update={"request": request, **told})

    def _accelerators(self, names: Sequence[Name] | None) -> list[Name] | None:
        return None if names is None else [self.names.accelerator(name) for name in names]

    def roofline(self, asked: RooflineAsked) -> Roofline:
        """Return the kernels of each kind of layer on the accelerator's roofline."""
        spec = ask(get_model, self.names.model(asked.model), local=False)
        accelerator = ask(get_accelerator, self.names.accelerator(asked.gpu), allow_files=False)
        formats = ask(spec.formats, asked.weights, asked.kv)
        return ask(place, spec, accelerator, formats, asked.batch, asked.context, asked.phase)


def _rows(request: SweepRequest) -> int:
    base = request.scenario
    axes = (
        request.gpu,
        request.tp,
        request.weights,
        request.kv,
        request.batch or base.batch,
        request.context or base.context,
    )
    return math.prod(len(axis or [None]) for axis in axes)


def _names(asked: Sequence[Name], found: Sequence[Name]) -> dict[str, str]:
    """Return the own id by the planner's, where only one accelerator asked about has that."""
    ids = [ask(get_accelerator, one, allow_files=False).id for one in found]
    pairs = zip(ids, asked, strict=True)
    return {ident: str(name) for ident, name in pairs if is_own(name) and ids.count(ident) == 1}
