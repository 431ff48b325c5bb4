"""Answering without storing, within the service's limits."""

from __future__ import annotations

from api.catalog.names import Names
from api.catalog.own import OwnObjects
from api.settings import Settings
from api.store import Database
from api.web.problem import over_limit
from planner.answer import Plan
from planner.scenario import Scenario


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
