"""Checking without storing."""

from __future__ import annotations

from api.catalog.names import Names
from api.catalog.own import OwnObjects
from api.checks.schemas import CheckQuery
from api.services import Services
from api.web.call import call_planner
from planner.handover.checking import CheckReport, check


class Checks:
    """Checks for one workspace."""

    def __init__(self, services: Services, workspace: str) -> None:
        self.names = Names(OwnObjects(services.database), workspace)
        self.calibrated = services.calibrations.used

    def check(self, query: CheckQuery) -> CheckReport:
        """Return the report on the query's files; own models and accelerators may be named."""
        question = query.question
        named = {
            "model": None if question.model is None else self.names.model(question.model),
            "gpu": None if question.gpu is None else self.names.accelerator(question.gpu),
        }
        baseline = None if query.baseline is None else {"baseline": query.baseline}
        with self.calibrated(self.names.workspace):
            return call_planner(
                check,
                query.files,
                question.model_copy(update=named),
                baseline=baseline,
                regression=query.regression,
            )
