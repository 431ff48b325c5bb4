"""Answers for the page, in the names and with the calibration of one workspace."""

from __future__ import annotations

from api.catalog.names import Names
from api.catalog.own import OwnObjects
from api.services import Services
from api.web.call import call_planner
from planner.pictures import View, look
from planner.scenario import Scenario


class Pages:
    """What the views of the page show, for one workspace."""

    def __init__(self, services: Services, workspace: str) -> None:
        self.services = services
        self.names = Names(OwnObjects(services.database), workspace)

    def look(self, scenario: Scenario) -> View:
        """Return a scenario answered with its levers, and the columns of its pictures."""
        inlined = self.names.inline(scenario).scenario
        with self.services.calibrations.used(self.names.workspace):
            return call_planner(look, inlined, advice=True)
