"""Routes for operating the service."""

from __future__ import annotations

from typing import Any, Literal

import anyio.to_thread
from litestar import Controller, Request, Response, get, post
from litestar.di import NamedDependency
from litestar.params import JSONBody
from sqlalchemy.exc import SQLAlchemyError

from api.system.metrics import MEDIA_TYPE
from api.system.workspace import Imported, Workspace, Workspaces
from api.web.answer import as_json
from api.web.context import caller, services
from api.web.idempotency import Once
from api.web.parameters import IdempotencyKey
from api.web.problem import Problem
from planner.answer import Answer, Editions
from planner.plans.editions import current_editions

AnyRequest = Request[Any, Any, Any]
PUBLIC = {"public": True}


class Health(Answer):
    """The service is there."""

    status: Literal["ok"] = "ok"


class About(Answer):
    """What this service computes with and accepts."""

    version: str
    editions: Editions
    limits: dict[str, int]


class SystemController(Controller):
    """Health, metrics and editions."""

    tags = ["system"]  # noqa: RUF012 - the framework's own protocol

    @get("/health/live", operation_id="live", opt=PUBLIC)
    async def live(self) -> Health:
        """Say that the process answers."""
        return Health()

    @get("/health/ready", operation_id="ready", opt=PUBLIC)
    async def ready(self, request: AnyRequest) -> Health:
        """Say that the store answers too; 503 otherwise."""
        database = services(request).database
        try:
            with anyio.fail_after(2):
                await anyio.to_thread.run_sync(database.ping, abandon_on_cancel=True)
        except (SQLAlchemyError, OSError, TimeoutError):
            raise Problem(503, "the store does not answer", headers={"Retry-After": "1"}) from None
        return Health()

    @get("/metrics", operation_id="metrics", opt={"any_media": True})
    async def metrics(self, request: AnyRequest) -> Response[str]:
        """Return Prometheus metrics of this process."""
        text = request.app.state.metrics.text()
        return Response(text, headers={"content-type": MEDIA_TYPE})

    @get("/v1/about", operation_id="about", sync_to_thread=True)
    def about(self, request: AnyRequest) -> About:
        """Return version, editions of the data this workspace's answers use, and limits."""
        held = services(request)
        names = [n for n in type(held.settings).model_fields if n[:4] == "max_"]
        limits = {name: getattr(held.settings, name) for name in names}
        with held.calibrations.used(caller(request).workspace):
            return About(version=version(), editions=current_editions(), limits=limits)


class WorkspaceController(Controller):
    """Export and import."""

    path = "/v1/workspace"
    tags = ["workspace"]  # noqa: RUF012 - the framework's own protocol

    @get("/export", operation_id="exportWorkspace", sync_to_thread=True)
    def export(self, workspaces: NamedDependency[Workspaces]) -> Response[Workspace]:
        """Export everything in the workspace as one document, API keys excepted."""
        return as_json(workspaces.export())

    @post("/import", operation_id="importWorkspace", sync_to_thread=True, opt={"large": True})
    def load(
        self,
        data: JSONBody[Workspace],
        workspaces: NamedDependency[Workspaces],
        raw: NamedDependency[bytes],
        idempotency_key: IdempotencyKey = None,
    ) -> Response[Imported]:
        """Store an export under new ids, all of it or nothing."""
        once = Once.of(workspaces.workspace, idempotency_key, "/v1/workspace/import", raw)
        return workspaces.load(data, once).response()


def version() -> str:
    """Return the version of the installed package."""
    from importlib.metadata import version as installed

    return installed("decode-planner")
