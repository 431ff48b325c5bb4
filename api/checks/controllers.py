"""The route that checks deployments."""

from __future__ import annotations

from litestar import Controller, Response, post
from litestar.di import NamedDependency
from litestar.params import JSONBody

from api.checks.schemas import CheckQuery
from api.checks.service import Checks
from api.web.answer import as_json
from planner.handover.checking import CheckReport

Service = NamedDependency[Checks]
READ = {"scope": "read", "lane": "compute"}


class CheckController(Controller):
    """Checks."""

    path = "/v1/checks"
    tags = ["checks"]  # noqa: RUF012 - the framework's own protocol

    @post(operation_id="createCheck", sync_to_thread=True, status_code=200, opt=READ)
    def create(self, data: JSONBody[CheckQuery], checks: Service) -> Response[CheckReport]:
        """Say whether command lines and manifests start, meet limits, and what they waste."""
        return as_json(checks.check(data))
