"""The application: one function builds it for the server, the tests and the command line."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from litestar import Litestar, Request, Router
from litestar.datastructures import State
from litestar.di import Provide
from litestar.enums import ScopeType
from litestar.plugins.pydantic import PydanticInitPlugin
from litestar.routes import HTTPRoute
from litestar.types import Receive, Scope, Send

from api.agents.mount import agent_routes
from api.catalog.controllers import AcceleratorController, EngineController, ModelController
from api.catalog.service import Catalog
from api.changes.controllers import ChangeController
from api.checks.controllers import CheckController
from api.checks.service import Checks
from api.comparisons.controllers import ComparisonController
from api.comparisons.service import Comparisons
from api.jobs.controllers import JobController
from api.jobs.service import Jobs
from api.jobs.workshop import open_services
from api.measurements.controllers import MeasurementController
from api.measurements.service import MeasuredRuns
from api.openapi import document_of, openapi_config, swagger_files
from api.page.controllers import ROUTES as PAGES
from api.page.controllers import page_files
from api.page.service import Pages
from api.plans.controllers import PlanController
from api.plans.service import Plans
from api.scenarios.controllers import ScenarioController
from api.scenarios.service import Scenarios
from api.services import services
from api.settings import Settings
from api.system.controllers import SystemController, version
from api.system.guard import authorise
from api.system.keys import Keys
from api.system.metrics import Metrics
from api.web import log
from api.web.accept import before_request, query_parameters
from api.web.body import BodyPlugin
from api.web.context import caller
from api.web.gate import AllowedMethods, Gate
from api.web.handlers import HANDLERS
from api.web.tracing import TRACING
from api.workspace.controllers import LinesController, WorkspaceController
from api.workspace.service import Workspaces

AnyRequest = Request[Any, Any, Any]


CONTROLLERS = (
    PlanController,
    ModelController,
    AcceleratorController,
    EngineController,
    ScenarioController,
    JobController,
    ComparisonController,
    CheckController,
    ChangeController,
    SystemController,
    *PAGES,
)


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


def create_app(settings: Settings | None = None, agents: bool = True) -> Application:
    """Return the service; it opens (and on SQLite makes) its store when it starts.

    Without `agents` it has no /mcp, whose package takes long to import.
    """
    settings = settings or Settings()
    log.configure(settings.log_level)
    metrics = Metrics()
    tools, beside = agent_routes(settings) if agents else ([], [])
    app = Application(
        route_handlers=[*CONTROLLERS, _importer(settings), swagger_files(), page_files(), *tools],
        lifespan=[_store, *beside],
        state=State({"services": None, "settings": settings, "metrics": metrics}),
        dependencies={
            **{name: Provide(make, sync_to_thread=False) for name, make in SERVICES.items()},
            "raw": Provide(_raw),
        },
        guards=[authorise],
        before_request=before_request,
        exception_handlers=HANDLERS,
        plugins=[PydanticInitPlugin(), BodyPlugin()],
        logging_config=None,
        request_max_body_size=settings.max_body_bytes,
        openapi_config=openapi_config(version(), settings),
    )
    app.gate = Gate(settings, _allowed_methods(app), metrics.observe)
    app.state.query_parameters = query_parameters(document_of(app, settings.keys_required))
    return app


def _allowed_methods(app: Litestar) -> AllowedMethods:
    """Return the methods of every path, the most specific path first."""
    methods: dict[str, set[str]] = {}
    for route in app.routes:
        if isinstance(route, HTTPRoute):
            for handler in route.route_handlers:
                methods.setdefault(route.path_format, set()).update(map(str, handler.http_methods))
    paths = sorted(methods, key=lambda path: (path.count("{"), -len(path)))
    return [(_pattern(path), ", ".join(sorted(methods[path]))) for path in paths]


def _pattern(path: str) -> re.Pattern[str]:
    inner = re.sub(r"\{[^}]*\}$", ".+", path)
    return re.compile(re.sub(r"\{[^}]*\}", "[^/]+", inner))


@asynccontextmanager
async def _store(app: Litestar) -> AsyncIterator[None]:
    settings: Settings = app.state.settings
    with open_services(settings) as (shared, workshop):
        asyncio.get_running_loop().set_default_executor(shared.lanes)
        keys = app.state.api_keys = Keys(shared.database, settings.key_cache_s)
        app.state.services, app.state.workshop = shared, workshop
        app.state.metrics.watch(shared, keys)
        if settings.otlp_endpoint:
            TRACING.start(settings.otlp_endpoint)
        TRACING.watch(shared.database.engine)
        shared.points.span = TRACING.span
        try:
            yield
        finally:
            TRACING.stop()


def _importer(settings: Settings) -> Router:
    """Return the routes that take more than other bodies."""
    return Router(
        "/",
        route_handlers=[WorkspaceController, LinesController, MeasurementController],
        request_max_body_size=settings.max_import_bytes,
    )


def _catalog(request: AnyRequest) -> Catalog:
    return Catalog(services(request).database, caller(request).workspace)


def _plans(request: AnyRequest) -> Plans:
    return Plans(services(request), caller(request).workspace)


def _scenarios(request: AnyRequest) -> Scenarios:
    return Scenarios(services(request), caller(request).workspace)


def _comparisons(request: AnyRequest) -> Comparisons:
    return Comparisons(services(request), caller(request))


def _jobs(request: AnyRequest) -> Jobs:
    return Jobs(services(request), request.app.state.workshop, caller(request).workspace)


def _checks(request: AnyRequest) -> Checks:
    return Checks(services(request), caller(request).workspace)


def _measured(request: AnyRequest) -> MeasuredRuns:
    return MeasuredRuns(services(request).calibrations, caller(request).workspace)


def _workspaces(request: AnyRequest) -> Workspaces:
    return Workspaces(services(request), caller(request).workspace)


def _pages(request: AnyRequest) -> Pages:
    return Pages(services(request), caller(request))


SERVICES = {
    "catalog": _catalog,
    "plans": _plans,
    "scenarios": _scenarios,
    "comparisons": _comparisons,
    "checks": _checks,
    "jobs": _jobs,
    "measured": _measured,
    "workspaces": _workspaces,
    "pages": _pages,
}


async def _raw(request: AnyRequest) -> bytes:
    return await request.body()
