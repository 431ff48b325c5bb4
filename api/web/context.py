"""What is known about a request: its id, who asks, and the objects that serve it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from litestar.connection import ASGIConnection
from litestar.types import Scope

from api.measurements.calibrations import Calibrations
from api.settings import Settings
from api.store import Database

DEFAULT_WORKSPACE = "default"
AccessScope = Literal["read", "write"]


@dataclass(frozen=True, slots=True)
class Caller:
    """Who asks, and what they may do."""

    workspace: str
    scope: AccessScope

    def may(self, scope: AccessScope) -> bool:
        """Return whether the caller may do what needs `scope`."""
        return scope == "read" or self.scope == "write"


@dataclass(frozen=True, slots=True)
class Services:
    """What the application holds for all requests."""

    settings: Settings
    database: Database
    calibrations: Calibrations


def request_id(scope: Scope) -> str:
    """Return the id of a request."""
    return str(scope.get("planner_request_id", ""))


def services(connection: ASGIConnection[Any, Any, Any, Any]) -> Services:
    """Return the application's services."""
    found: Services = connection.app.state.services
    return found


def caller(connection: ASGIConnection[Any, Any, Any, Any]) -> Caller:
    """Return who asks; the guard has put it there."""
    found: Caller = connection.scope["planner_caller"]  # type: ignore[typeddict-item]
    return found
