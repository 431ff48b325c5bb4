"""From exceptions to problems."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import structlog
from litestar import Request, Response
from litestar.exceptions import HTTPException, ValidationException
from sqlalchemy.exc import (
    DataError,
    IntegrityError,
    InterfaceError,
    InternalError,
    OperationalError,
    StatementError,
)
from sqlalchemy.exc import TimeoutError as PoolTimeout

from api.web.context import request_id
from api.web.problem import MEDIA_TYPE, FieldError, Problem

log = structlog.get_logger("api")
AnyRequest = Request[Any, Any, Any]
Handler = Callable[[AnyRequest, Any], Response[bytes]]
RETRY = {"Retry-After": "1"}


def answer(request: AnyRequest, problem: Problem) -> Response[bytes]:
    """Return the response that carries a problem."""
    details = problem.details(request.url.path, request_id(request.scope))
    return Response(
        details.model_dump_json().encode(),
        status_code=problem.status,
        headers=problem.headers,
        media_type=MEDIA_TYPE,
    )


def on_problem(request: AnyRequest, error: Problem) -> Response[bytes]:
    """Answer a problem that a service raised."""
    return answer(request, error)


def on_validation(request: AnyRequest, error: ValidationException) -> Response[bytes]:
    """Answer a path, query or header that is not acceptable; bodies are `api.web.body`'s."""
    errors = [
        FieldError(field=_field(item), message=str(item.get("message", "")))
        for item in error.extra or []
        if isinstance(item, Mapping)
    ]
    detail = "; ".join(f"{e.field}: {e.message}" if e.field else e.message for e in errors)
    return answer(request, Problem(400, detail[:2000] or "not valid", errors=errors))


def _field(item: Mapping[str, Any]) -> str:
    """Return the name a client knows: headers are those of HTTP, not of the handler's argument."""
    key = str(item.get("key", ""))
    if item.get("source") == "header":
        return "-".join(word.capitalize() for word in key.split("_"))
    return "" if key == "data" else key


def on_http(request: AnyRequest, error: HTTPException) -> Response[bytes]:
    """Answer an exception of the framework."""
    if error.status_code >= 500:
        return on_other(request, error)
    detail = str(error.detail)
    if error.status_code == 404:
        detail = "no such path"
    elif error.status_code == 413:
        detail = "the body is larger than this route accepts; /v1/about has the limits"
    elif error.status_code == 400:
        detail = detail.split("\n")[0][:300]
    return answer(request, Problem(error.status_code, detail, headers=error.headers))


def on_recursion(request: AnyRequest, _error: RecursionError) -> Response[bytes]:
    """Answer JSON that is nested too deep to read."""
    return answer(request, Problem(400, "the body is nested too deep"))


def on_storage(request: AnyRequest, error: Exception) -> Response[bytes]:
    """Answer trouble with the database, by what it is: the driver's class says, not a wrapper's."""
    if isinstance(error, IntegrityError):
        return answer(request, Problem(409, "it exists already, or something else refers to it"))
    if isinstance(error, DataError):
        return answer(request, Problem(422, "a value does not fit into the store"))
    if isinstance(error, UNAVAILABLE) or _reads_only(error):
        log.error("storage", request_id=request_id(request.scope), error=type(error).__name__)
        problem = Problem(503, "the store does not answer; try again", headers=RETRY)
        return answer(request, problem)
    return on_other(request, error)


UNAVAILABLE = (OperationalError, InterfaceError, PoolTimeout)


def _reads_only(error: Exception) -> bool:
    """Return whether Postgres takes no writes: a standby, or one that was told so."""
    return isinstance(error, InternalError) and getattr(error.orig, "sqlstate", "") == "25006"


def on_other(request: AnyRequest, error: Exception) -> Response[bytes]:
    """Log a defect with its request id, and answer without a word about it."""
    log.error(
        "unhandled",
        request_id=request_id(request.scope),
        error=type(error).__name__,
        exc_info=error,
    )
    return answer(request, Problem(500, "the service failed; the log has it by its request id"))


HANDLERS: dict[int | type[Exception], Any] = {
    Problem: on_problem,
    ValidationException: on_validation,
    HTTPException: on_http,
    RecursionError: on_recursion,
    StatementError: on_storage,
    PoolTimeout: on_storage,
    500: on_other,
}
