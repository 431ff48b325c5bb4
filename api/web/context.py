"""What is known about a request: its id, and who sent it."""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Literal

from litestar.connection import ASGIConnection
from litestar.types import Scope

LANE: ContextVar[str] = ContextVar("planner_lane", default="store")
"""Lane that the current request works in, see `api.lanes`."""

DEFAULT_WORKSPACE = "default"
AccessScope = Literal["read", "write"]


@dataclass(frozen=True, slots=True)
class Caller:
    """Who sent a request, and what they may do."""

    workspace: str
    scope: AccessScope
    key_id: str | None = None
    """Id of the API key, which is not the key; None without one."""

    def may(self, scope: AccessScope) -> bool:
        """Return whether the caller may do what needs `scope`."""
        return scope == "read" or self.scope == "write"


def client_of(scope: Scope) -> str | None:
    """Return the address that a request came from."""
    client = scope.get("planner_client") or (scope.get("client") or (None,))[0]
    return None if client is None else str(client)[:64]


def request_id(scope: Scope) -> str:
    """Return the id of a request."""
    return str(scope.get("planner_request_id", ""))


def caller(connection: ASGIConnection[Any, Any, Any, Any]) -> Caller:
    """Return who sent a request; the guard has put it there."""
    identified: Caller = connection.scope["planner_caller"]  # type: ignore[typeddict-item]
    return identified
