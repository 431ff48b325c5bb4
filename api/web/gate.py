"""Around every request: its id, limits on its head and body, one log line and the metrics."""

from __future__ import annotations

import re
import time
import uuid
from collections.abc import Callable, Sequence
from typing import Any

import structlog
from litestar.types import ASGIApp, Message, Receive, Send

from api.settings import Settings
from api.web.bodies import Body, is_expected
from api.web.context import client_of
from api.web.outgoing import Outgoing
from api.web.problem import MEDIA_TYPE, Problem
from api.web.tracing import TRACING

log = structlog.get_logger("api.access")

Observe = Callable[[str, str, int, float], None]
"""Counts one request: method, route template, status, seconds."""
AllowedMethods = Sequence[tuple[re.Pattern[str], str]]
"""The value of Allow for each pattern of paths, the most specific pattern first."""


PROBED = frozenset({"/health/live", "/health/ready"})
"""Paths that checks reach by address, whatever names the service has; they say nothing of use."""


class Gate:
    """The outermost layer; bodies, query strings and headers never reach the log."""

    def __init__(self, settings: Settings, allowed: AllowedMethods, observe: Observe) -> None:
        self.settings = settings
        self.hosts = settings.hosts
        """Accepted names of Host, lower case; empty accepts any."""
        self.allowed = allowed
        """Methods by path; the framework names those of one handler only, or none."""
        self.observe = observe

    async def __call__(self, app: ASGIApp, scope: Any, receive: Receive, send: Send) -> None:
        """Serve one request."""
        headers = dict(scope["headers"])
        ident = _proxy_id(headers.get(b"x-request-id")) or uuid.uuid4().hex
        scope["planner_request_id"] = ident
        if self.settings.behind_proxy:
            scope["planner_client"] = _forwarded(headers.get(b"x-forwarded-for"))
        began = time.perf_counter()
        body = Body(receive, self.settings.body_timeout_s, expected=is_expected(headers))
        scope["planner_body"] = body
        out = Outgoing(send, scope, body, headers.get(b"accept-encoding", b"").decode("latin-1"))
        out.headers.append((b"x-request-id", ident.encode()))
        with TRACING.request(scope["method"], headers) as span:
            try:
                problem = self._refusal(scope, headers)
                if problem is None:
                    await app(scope, body, lambda message: out.send(self._allowing(scope, message)))
                else:
                    await _refuse(problem, ident, scope["path"], out.send)
            finally:
                status = out.status or 499
                self._record(scope, status, time.perf_counter() - began)
                if span is not None:
                    _describe(span, scope, status)

    def _refusal(self, scope: Any, headers: dict[bytes, bytes]) -> Problem | None:
        """Return what is wrong with the head of a request."""
        if sum(len(name) + len(value) for name, value in scope["headers"]) > MOST_HEADER_BYTES:
            return Problem(431, f"headers: accepted: {MOST_HEADER_BYTES} bytes of them at most")
        if len(scope["query_string"]) + len(scope["path"]) > MOST_TARGET_BYTES:
            return Problem(414, f"path and query: accepted: {MOST_TARGET_BYTES} bytes at most")
        if scope["path"] in PROBED or self._accepts(headers.get(b"host", b"")):
            return None
        return Problem(400, "Host: not a name of this service; see PLANNER_ALLOWED_HOSTS")

    def _accepts(self, host: bytes) -> bool:
        # A page of another site that resolves its own name to this machine is stopped here.
        if not self.hosts:
            return True
        name = host.decode("latin-1").lower()
        return (name if name.endswith("]") else name.rpartition(":")[0] or name) in self.hosts

    def _allowing(self, scope: Any, message: Message) -> Message:
        if message["type"] == "http.response.start" and (
            message["status"] == 405 or scope["method"] == "OPTIONS"
        ):
            others = [item for item in message["headers"] if item[0] != b"allow"]
            message["headers"] = [*others, *self._allow(scope)]
        return message

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
            client=client_of(scope),
            workspace=caller.workspace if caller else None,
            key_id=caller.key_id if caller else None,
        )


def _describe(span: Any, scope: Any, status: int) -> None:
    route = scope.get("path_template") or "unmatched"
    span.update_name(f"{scope['method']} {route}")
    span.set_attribute("http.route", route)
    span.set_attribute("http.response.status_code", status)
    span.set_attribute("planner.request_id", scope["planner_request_id"])


MOST_HEADER_BYTES = 32_768
"""Names and values of a request's headers together [byte]."""
MOST_TARGET_BYTES = 16_384
"""Path and query of a request [byte]."""


def _proxy_id(value: bytes | None) -> str | None:
    """Return a request id from a proxy, if it is one."""
    text = (value or b"").decode("latin-1")
    plain = text.replace("-", "").replace("_", "")
    return text if 8 <= len(text) <= 64 and plain.isascii() and plain.isalnum() else None


def _forwarded(value: bytes | None) -> str | None:
    """Return the address that the proxy in front saw: the last one, others may be made up."""
    text = (value or b"").decode("latin-1").rpartition(",")[2].strip()
    return text if re.fullmatch(r"[0-9a-fA-F.:]{2,45}", text) else None


async def _refuse(problem: Problem, ident: str, path: str, send: Send) -> None:
    body = problem.details(path[:200], ident).model_dump_json().encode()
    headers = [(b"content-type", MEDIA_TYPE.encode()), (b"content-length", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": problem.status, "headers": headers})
    await send({"type": "http.response.body", "body": body, "more_body": False})
