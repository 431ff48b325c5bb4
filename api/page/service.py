"""Answers for the page, in the names and with the calibration of one workspace."""

from __future__ import annotations

from collections.abc import Callable
from typing import ParamSpec, TypeVar

from api.catalog.names import Names
from api.catalog.own import OwnObjects
from api.checks.schemas import CheckQuery
from api.checks.service import Checks
from api.comparisons.schemas import ComparisonQuery, StoredComparison
from api.comparisons.service import PATH, Comparisons
from api.measurements.service import MeasuredRuns
from api.plans.service import Plans
from api.scenarios.listing import Filters
from api.scenarios.service import Scenarios
from api.services import Services
from api.web.call import call_planner
from api.web.context import Caller
from api.web.idempotency import Once
from planner.handover.checking import CheckReport
from planner.pictures import View, look
from planner.plans.editions import current_editions
from planner.plans.fleet import Fleet
from planner.plans.fleet_request import FleetRequest
from planner.plans.recommend import Recommendation, RecommendationRequest
from planner.runs.rows import INPUTS, Kind, Row
from planner.scenario import Scenario

P = ParamSpec("P")
T = TypeVar("T")
MOST_LISTED = 200
"""Saved scenarios, and measurements, that a view lists [-]."""


class Pages:
    """What the views of the page show, for one caller."""

    def __init__(self, services: Services, caller: Caller) -> None:
        self.services = services
        self.caller = caller
        self.names = Names(OwnObjects(services.database), caller.workspace)

    def calibrated(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Return what the planner answers with the calibration of the workspace."""
        with self.services.calibrations.used(self.caller.workspace):
            return call_planner(function, *args, **kwargs)

    def look(self, scenario: Scenario) -> View:
        """Return a scenario answered with its levers, and the columns of its pictures."""
        inlined = self.names.inline(scenario).scenario
        return self.calibrated(look, inlined, advice=True)

    def recommend(self, request: RecommendationRequest) -> Recommendation:
        """Return the batch to run on each accelerator of the request."""
        return Plans(self.services, self.caller.workspace).recommend(request)

    def fleet(self, request: FleetRequest) -> Fleet:
        """Return a fleet's day."""
        return Plans(self.services, self.caller.workspace).fleet(request)

    def check(self, query: CheckQuery) -> CheckReport:
        """Return whether a deployment starts, meets limits, and what it wastes."""
        return Checks(self.services, self.caller.workspace).check(query)

    def compare(self, query: ComparisonQuery) -> StoredComparison:
        """Return a comparison that is not kept."""
        once = Once.of(self.caller.workspace, None, PATH, b"")
        stored = Comparisons(self.services, self.caller).create(query, once)
        return StoredComparison.model_validate_json(stored.body)

    def saved(self) -> list[tuple[str, str]]:
        """Return id and words of the scenarios of the workspace, oldest first."""
        scenarios = Scenarios(self.services, self.caller.workspace)
        items = scenarios.page(Filters(), None, MOST_LISTED).items
        return [(one.id, one.name) for one in items]

    def edition(self) -> str:
        """Return the edition of the calibration of the workspace."""
        return self.calibrated(current_editions).calibration

    def own_runs(self, kind: Kind) -> list[Row]:
        """Return the workspace's own measured runs of a kind."""
        runs = MeasuredRuns(self.services.calibrations, self.caller.workspace)
        summaries = runs.page(None, MOST_LISTED).items
        rows = [row for summary in summaries for row in runs.get(summary.id).rows]
        blank = dict.fromkeys(INPUTS[kind], "")  # what is blank was not stored
        return [
            Row(one.kind, blank | dict(one.inputs), dict(one.measured), dict(one.remarks))
            for one in rows
            if one.kind == kind
        ]
