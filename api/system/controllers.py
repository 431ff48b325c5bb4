"""Routes for operating the service."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any, Literal

from litestar import Controller, Request, Response, get
from sqlalchemy import func, select
from sqlalchemy.exc import SQLAlchemyError

from api.lanes import LaneFull
from api.services import services
from api.settings import Settings
from api.store import Database
from api.store.tables import JobRow
from api.system.health import PATIENCE_S, check_ready
from api.system.metrics import MEDIA_TYPE
from api.web.context import caller
from planner.answer import Answer, Editions
from planner.plans.editions import current_editions

AnyRequest = Request[Any, Any, Any]
PUBLIC = {"public": True}
COMPUTE = {"lane": "compute"}
LIMITS = {name for name in Settings.model_fields if name.startswith("max_")}
"""Settings that bound what a request may ask for."""


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
        """Say that the store answers too, and that no lane is stuck; 503 otherwise."""
        await check_ready(services(request))
        return Health()

    @get("/metrics", operation_id="metrics", opt={"any_media": True})
    async def metrics(self, request: AnyRequest) -> Response[str]:
        """Return Prometheus metrics of this process."""
        metrics, application = request.app.state.metrics, services(request)
        with suppress(SQLAlchemyError, OSError, TimeoutError, LaneFull):  # the last count stays
            async with asyncio.timeout(PATIENCE_S):
                loop, lane = asyncio.get_running_loop(), application.lanes["probe"]
                metrics.jobs = await loop.run_in_executor(lane, job_counts, application.database)
        text = metrics.text()
        return Response(text, headers={"content-type": MEDIA_TYPE})

    @get("/v1/about", operation_id="about", sync_to_thread=True, opt=COMPUTE)
    def about(self, request: AnyRequest) -> About:
        """Return version, editions of the data this workspace's answers use, and limits."""
        application = services(request)
        limits = application.settings.model_dump(include=LIMITS)
        with application.calibrations.used(caller(request).workspace):
            return About(version=version(), editions=current_editions(), limits=limits)


def job_counts(database: Database) -> dict[tuple[str, str], int]:
    """Return how many jobs are kept, of all workspaces, by kind and state."""
    query = select(JobRow.kind, JobRow.state, func.count()).group_by(JobRow.kind, JobRow.state)
    with database.reading() as session:
        return {(kind, state): count for kind, state, count in session.execute(query)}


def version() -> str:
    """Return the version of the installed package."""
    from importlib.metadata import version as installed

    return installed("decode-planner")
