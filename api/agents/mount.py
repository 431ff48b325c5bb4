"""The agent's tools at /mcp: streamable HTTP without sessions, given the extra `mcp`."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from importlib.util import find_spec
from typing import Any

from litestar import Litestar, Request
from litestar.handlers import ASGIRouteHandler, asgi
from litestar.types import Receive, Scope, Send

from api.agents.names import WorkspaceNames
from api.catalog.own import OwnObjects
from api.services import services
from api.settings import Settings
from api.web.context import caller

PATH = "/mcp"
Lifespan = Callable[[Litestar], AbstractAsyncContextManager[None]]


def agent_routes(settings: Settings) -> tuple[list[ASGIRouteHandler], list[Lifespan]]:
    """Return the route of the tools and what runs beside it; none without the extra.

    A tool answers with the calibration and the own objects of the caller's workspace. Requests that
    carry an Origin come from a page, and are refused; Host is checked by the gate.
    """
    if find_spec("mcp") is None:
        return [], []
    from mcp.server.transport_security import TransportSecuritySettings

    from planner.handover.agents import server
    from planner.handover.own_names import resolved_by

    made = server()
    hosts = sorted(settings.hosts)
    security = TransportSecuritySettings(
        enable_dns_rebinding_protection=bool(hosts),
        allowed_hosts=[*hosts, *(f"{host}:*" for host in hosts)],
    )
    inner: Any = made.streamable_http_app(
        streamable_http_path=PATH,
        json_response=True,
        stateless_http=True,
        max_request_body_size=settings.max_body_bytes,
        transport_security=security,
    )

    @asgi(PATH, is_mount=True, opt={"scope": "read"}, copy_scope=True)
    async def agents(scope: Scope, receive: Receive, send: Send) -> None:
        request = Request[Any, Any, Any](scope)
        workspace = caller(request).workspace
        at = services(request)
        names = WorkspaceNames(OwnObjects(at.database), workspace)
        with at.calibrations.used(workspace), resolved_by(names):
            await inner({**scope, "path": PATH, "root_path": ""}, receive, send)

    @asynccontextmanager
    async def running(app: Litestar) -> AsyncIterator[None]:
        del app
        async with made.session_manager.run():
            yield

    return [agents], [running]
