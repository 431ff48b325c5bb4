"""Around every request: its id, the Host check, one log line and the metrics."""

from __future__ import annotations

import re
import time
import uuid
from collections.abc import Callable, Sequence
from typing import Any

import structlog
from litestar.types import ASGIApp, Message, Receive, Send

from api.web.problem import MEDIA_TYPE, Problem

log = structlog.get_logger("api.access")

Observe = Callable[[str, str, int, float], None]
"""Counts one request: method, route template, status, seconds."""
AllowedMethods = Sequence[tuple[re.Pattern[str], str]]
"""The value of Allow for each pattern of paths, the most specific pattern first."""


PROBED = frozenset({"/health/live", "/health/ready"})
"""Paths that checks reach by address, whatever names the service has; they say nothing of use."""


class Gate:
    """The outermost layer; bodies, query strings and headers never reach the log."""

    def __init__(self, hosts: frozenset[str], allowed: AllowedMethods, observe: Observe) -> None:
        self.hosts = hosts
        """Accepted names of Host, lower case; empty accepts any."""
        self.allowed = allowed
        """Methods by path; the framework names those of one handler only, or none."""
        self.observe = observe

    async def __call__(self, app: ASGIApp, scope: Any, receive: Receive, send: Send) -> None:
        """Serve one request."""
        headers = dict(scope["headers"])
        ident = _proxy_id(headers.get(b"x-request-id")) or uuid.uuid4().hex
        scope["planner_request_id"] = ident
        began = time.perf_counter()
        status = 0

        async def send_with_id(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                response_headers = [*message["headers"], (b"x-request-id", ident.encode())]
                if status == 405 or scope["method"] == "OPTIONS":
                    response_headers = [item for item in response_headers if item[0] != b"allow"]
                    response_headers += self._allow(scope)
                message["headers"] = response_headers
            await send(message)

        try:
            if scope["path"] in PROBED or self._accepts(headers.get(b"host", b"")):
                await app(scope, receive, send_with_id)
            else:
                await _refuse(ident, scope["path"], send_with_id)
        finally:
            self._record(scope, status or 499, time.perf_counter() - began)

    def _accepts(self, host: bytes) -> bool:
        # A page of another site that resolves its own name to this machine is stopped here.
        if not self.hosts:
            return True
        name = host.decode("latin-1").lower()
        return (name if name.endswith("]") else name.rpartition(":")[0] or name) in self.hosts

    def _allow(self, scope: Any) -> list[tuple[bytes, bytes]]:
        path = scope["path"].rstrip("/") or "/"
        methods = next((allow for pattern, allow in self.allowed if pattern.fullmatch(path)), "")
        return [(b"allow", methods.encode())] if methods else []

    def _record(self, scope: Any, status: int, seconds: float) -> None:
        route = scope.get("path_template") or "unmatched"
        self.observe(scope["method"], route, status, seconds)
        caller = scope.get("planner_caller")
        log.info(
            "request",
            request_id=scope["planner_request_id"],
            method=scope["method"],
            route=route,
            status=status,
            ms=round(seconds * 1e3, 2),
            workspace=caller.workspace if caller else None,
        )


def _proxy_id(value: bytes | None) -> str | None:
    """Return a request id from a proxy, if it is one."""
    text = (value or b"").decode("latin-1")
    plain = text.replace("-", "").replace("_", "")
    return text if 8 <= len(text) <= 64 and plain.isascii() and plain.isalnum() else None


async def _refuse(ident: str, path: str, send: Send) -> None:
    problem = Problem(400, "Host: not a name of this service; see PLANNER_ALLOWED_HOSTS")
    body = problem.details(path, ident).model_dump_json().encode()
    headers = [(b"content-type", MEDIA_TYPE.encode()), (b"content-length", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": 400, "headers": headers})
    await send({"type": "http.response.body", "body": body, "more_body": False})
