"""The application: one function builds it for the server, the tests and the command line."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from litestar import Litestar, Request
from litestar.datastructures import State
from litestar.di import Provide
from litestar.enums import ScopeType
from litestar.plugins.pydantic import PydanticInitPlugin
from litestar.types import Receive, Scope, Send

from api.openapi import openapi_config
from api.plans.controllers import PlanController
from api.plans.service import Plans
from api.scenarios.controllers import ScenarioController
from api.scenarios.service import Scenarios
from api.settings import Settings
from api.store import Database, migrate
from api.system.controllers import SystemController
from api.system.metrics import Metrics
from api.web import log
from api.web.accept import before_request
from api.web.body import BodyPlugin
from api.web.context import Services, caller, services
from api.web.gate import Gate
from api.web.guard import authorise
from api.web.handlers import HANDLERS
from api.web.idempotency import forget

AnyRequest = Request[Any, Any, Any]


class Application(Litestar):
    """Litestar with the gate around it."""

    gate: Gate | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # type: ignore[override]
        """Serve one connection, through the gate."""
        inner = super().__call__
        if self.gate is None or scope["type"] != ScopeType.HTTP:
            await inner(scope, receive, send)
            return
        await self.gate(inner, scope, receive, send)


def create_app(settings: Settings | None = None) -> Application:
    """Return the service; it opens (and on SQLite makes) its store when it starts."""
    settings = settings or Settings()
    log.configure(settings.log_level)
    metrics = Metrics()
    app = Application(
        route_handlers=[PlanController, ScenarioController, SystemController],
        lifespan=[_store],
        state=State({"services": None, "settings": settings, "metrics": metrics}),
        dependencies={
            "plans": Provide(_plans, sync_to_thread=False),
            "scenarios": Provide(_scenarios, sync_to_thread=False),
            "raw": Provide(_raw),
        },
        guards=[authorise],
        before_request=before_request,
        exception_handlers=HANDLERS,
        plugins=[PydanticInitPlugin(), BodyPlugin()],
        logging_config=None,
        request_max_body_size=settings.max_body_bytes,
        openapi_config=openapi_config(),
    )
    app.gate = Gate(settings, metrics)
    return app


@asynccontextmanager
async def _store(app: Litestar) -> AsyncIterator[None]:
    settings: Settings = app.state.settings
    if settings.migrates:
        migrate.upgrade(settings)
    else:
        migrate.require(settings)
    database = Database(settings)
    app.state.services = Services(settings, database)
    try:
        forget(database, settings.idempotency_hours)
        yield
    finally:
        database.close()


def _plans(request: AnyRequest) -> Plans:
    held = services(request)
    return Plans(held.database, held.settings, caller(request).workspace)


def _scenarios(request: AnyRequest) -> Scenarios:
    held = services(request)
    return Scenarios(held.database, held.settings, caller(request).workspace)


async def _raw(request: AnyRequest) -> bytes:
    return await request.body()
