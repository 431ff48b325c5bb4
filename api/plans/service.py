"""Answering without storing, within the service's limits."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Hashable, Iterator, Sequence
from contextlib import contextmanager

from api.catalog.names import Name, Names, is_own, label
from api.catalog.own import OwnObjects
from api.plans.quick import kind_of, quick_json
from api.plans.schemas import RooflineQuery
from api.plans.work import (
    FleetWork,
    RecommendationWork,
    SweepWork,
    answer_fleet,
    answer_recommendation,
    answer_sweep,
)
from api.services import Services
from api.web.body import json_of, read
from api.web.call import call_planner
from api.web.problem import Problem, over_limit, rejected
from api.web.tracing import TRACING
from planner.answer import Plan
from planner.hw import get_accelerator
from planner.models import get_model
from planner.plans.fleet import Fleet
from planner.plans.fleet_request import FleetRequest
from planner.plans.recommend import Recommendation, RecommendationRequest
from planner.plans.sweep import SweepRequest
from planner.scenario import Scenario
from planner.step.placement import Roofline, place

SMALL = 500
"""Rows of a sweep up to which a process of its own would take longer than the answer [-]."""


class Plans:
    """Answers for one workspace."""

    def __init__(self, services: Services, workspace: str) -> None:
        self.settings = services.settings
        self.names = Names(OwnObjects(services.database), workspace)
        self.calibrations = services.calibrations
        self.calibrated = services.calibrations.used
        self.processes = services.processes
        self.quick = services.quick

    def at_once(self, body: bytes) -> bytes | None:
        """Return the plan of a question, both as JSON, where it is quick.

        None where it may not be, and where the body is no question: the route says what is wrong.
        """
        try:
            scenario = read(Scenario, json_of(body))
        except Problem:
            return None
        kind = kind_of(scenario)
        fitted = self.calibrations.at_hand(self.names.workspace) is not None
        if kind is None or not fitted or not self.quick.is_quick(kind):
            return None
        return self._quick(scenario, kind)

    async def plan_bytes(self, scenario: Scenario, advice: bool) -> bytes:
        """Return the plan of a scenario as JSON, with its levers if `advice`."""
        kind = None if advice else kind_of(scenario)
        if kind is not None:
            return await asyncio.to_thread(self._quick, scenario, kind)
        return await asyncio.to_thread(
            lambda: self.plan(scenario, advice).model_dump_json().encode()
        )

    def plan(self, scenario: Scenario, advice: bool) -> Plan:
        """Return the plan of a scenario, with its levers if `advice`."""
        with self._answering(scenario):
            return self.names.plan(scenario, advice)[0]

    def _quick(self, scenario: Scenario, kind: Hashable) -> bytes:
        with self._answering(scenario):
            return self.quick.timed(kind, lambda: quick_json(kind, scenario))

    @contextmanager
    def _answering(self, scenario: Scenario) -> Iterator[None]:
        """Trace an answer that is computed inside, with the calibration of the workspace."""
        most = self.settings.max_plan_points
        points = len(scenario.batch or [1]) * len(scenario.context or [1])
        if points > most:
            raise over_limit("batch", points, most, "PLANNER_MAX_PLAN_POINTS")
        with (
            TRACING.span("plan", model=label(scenario.model), points=points),
            self.calibrated(self.names.workspace),
        ):
            yield

    def sweep(self, request: SweepRequest, kind: str) -> bytes:
        """Return the rows of a sweep in a media type; own accelerators may stand in its axis.

        A large sweep is answered in a process of its own.
        """
        rows = _rows(request)
        if rows > self.settings.max_sweep_points:
            raise over_limit(
                "axes", rows, self.settings.max_sweep_points, "PLANNER_MAX_SWEEP_POINTS"
            )
        work = self.sweep_work(request, kind)
        return answer_sweep(*work) if rows <= SMALL else self.processes.run(answer_sweep, *work)

    def sweep_work(self, request: SweepRequest, kind: str) -> SweepWork:
        """Return what `answer_sweep` needs of this workspace; raises a 422 problem."""
        inlined = self.names.inline(request.scenario).scenario
        gpus = self._accelerators(request.gpu)
        labels = [label(gpu) for gpu in (*(request.gpu or ()),)] or [label(request.scenario.gpu)]
        resolved = request.model_copy(update={"scenario": inlined, "gpu": gpus})
        return resolved, labels, self.calibrations.last(self.names.workspace), kind

    def recommend(self, request: RecommendationRequest) -> Recommendation:
        """Return the batch to run on each accelerator of the request."""
        return answer_recommendation(*self.recommendation_work(request))

    def recommendation_work(self, request: RecommendationRequest) -> RecommendationWork:
        """Return what `answer_recommendation` needs of this workspace; raises a 422 problem."""
        model, gpus = self.names.model(request.model), self._accelerators(request.gpu)
        names = _names(request.gpu or [], gpus or [])
        resolved = request.model_copy(update={"model": model, "gpu": gpus})
        return resolved, request, names, self.calibrations.last(self.names.workspace)

    def fleet(self, request: FleetRequest) -> Fleet:
        """Return a fleet's day by its shape; own models and accelerators may stand in its pools."""
        if request.trace is not None:
            raise rejected(
                "trace: files of the service are not read; accepted: requests_per_s_by_window"
            )
        shape = request.requests_per_s_by_window or []
        cells, most = len(shape) * len(request.pools), self.settings.max_sweep_points
        if cells * (request.months + 1) > most:
            raise over_limit(
                "requests_per_s_by_window",
                cells * (request.months + 1),
                most,
                "PLANNER_MAX_SWEEP_POINTS",
            )
        return answer_fleet(*self.fleet_work(request))

    def fleet_work(self, request: FleetRequest) -> FleetWork:
        """Return what `answer_fleet` needs of this workspace; raises a 422 problem."""
        pools = [
            pool.model_copy(
                update={
                    "model": self.names.model(pool.model),
                    "gpu": self.names.accelerator(pool.gpu),
                }
            )
            for pool in request.pools
        ]
        resolved = request.model_copy(update={"pools": pools})
        return resolved, request, self.calibrations.last(self.names.workspace)

    def _accelerators(self, names: Sequence[Name] | None) -> list[Name] | None:
        return None if names is None else [self.names.accelerator(name) for name in names]

    def roofline(self, query: RooflineQuery) -> Roofline:
        """Return the kernels of each kind of layer on the accelerator's roofline."""
        spec = call_planner(get_model, self.names.model(query.model), local=False)
        accelerator = call_planner(
            get_accelerator, self.names.accelerator(query.gpu), allow_files=False
        )
        formats = call_planner(spec.formats, query.weights, query.kv)
        return call_planner(
            place, spec, accelerator, formats, query.batch, query.context, query.phase, query.tp
        )


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


def _names(requested: Sequence[Name], resolved: Sequence[Name]) -> dict[str, str]:
    """Return the own id by the planner's, where only one accelerator of the request has that."""
    ids = [call_planner(get_accelerator, one, allow_files=False).id for one in resolved]
    pairs = zip(ids, requested, strict=True)
    return {ident: str(name) for ident, name in pairs if is_own(name) and ids.count(ident) == 1}
