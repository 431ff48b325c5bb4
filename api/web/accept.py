"""Content negotiation: what a route can answer, what a client takes, and what it may send."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from litestar import Request

from api.web.body import refuse_nul
from api.web.context import LANE
from api.web.problem import FieldError, Problem

JSON = "application/json"
CSV = "text/csv"
MARKDOWN = "text/markdown"
JSON_LINES = ("application/jsonl", "application/x-ndjson")
BYTES = "application/octet-stream"
MERGE_PATCH = "application/merge-patch+json"
PARQUET = "application/vnd.apache.parquet"
TIME = re.compile(r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d(:\d\d(\.\d+)?)?([Zz]|[+-]\d\d:\d\d)")


def choose(accept: str | None, offered: Sequence[str]) -> str:
    """Return the offered type that the Accept header likes best; raises 406 where it takes none."""
    if not accept or not accept.strip():
        return offered[0]
    ranges = [_range(part) for part in accept.split(",") if part.strip()]
    best = max(offered, key=lambda kind: _quality(kind, ranges))
    if _quality(best, ranges) <= 0:
        raise Problem(406, f"Accept: nothing of it can be answered; offered: {', '.join(offered)}")
    return best


def _range(part: str) -> tuple[str, float]:
    kind, *parameters = (piece.strip().lower() for piece in part.split(";"))
    quality = 1.0
    for parameter in parameters:
        name, _, value = parameter.partition("=")
        if name.strip() == "q":
            try:
                quality = float(value)
            except ValueError:
                quality = 0.0
    return kind, quality


def _quality(offered: str, ranges: Sequence[tuple[str, float]]) -> float:
    """Quality of the most specific range that matches."""
    main = offered.partition("/")[0]
    for pattern in (offered, f"{main}/*", "*/*"):
        qualities = [quality for kind, quality in ranges if kind == pattern]
        if qualities:
            return max(qualities)
    return 0.0


def query_parameters(document: Mapping[str, Any]) -> dict[str, dict[str, Mapping[str, Any]]]:
    """Return the schemas of each operation's query parameters, by operation id and name."""
    return {
        operation["operationId"]: {
            parameter["name"]: parameter.get("schema", {})
            for parameter in operation.get("parameters", ())
            if parameter.get("in") == "query"
        }
        for item in document["paths"].values()
        for operation in item.values()
        if isinstance(operation, dict) and "operationId" in operation
    }


def _check_query(request: Request[Any, Any, Any], operation: object) -> None:
    """Refuse what would have no effect, or another: unknown names, second values, nulls."""
    known = request.app.state.query_parameters.get(operation)
    if known is None:
        return
    for name in sorted(set(request.query_params)):
        if name not in known:
            accepted = ", ".join(sorted(known)) or "none"
            raise _refused(name, f"unknown query parameter; accepted: {accepted}")
        values, schema = request.query_params.getall(name), known[name]
        if len(values) > 1:
            raise _refused(name, "given more than once; accepted: one value")
        if values == ["null"] and (schema.get("type") != "string" or "format" in schema):
            raise _refused(name, "null; accepted: a value, or leave it out")
        if schema.get("format") == "date-time" and not TIME.fullmatch(values[0]):
            raise _refused(name, "not a time with its zone; accepted: 2026-12-01T00:00:00Z")


def _refused(name: str, reason: str) -> Problem:
    message = f"{name}: {reason}"
    return Problem(400, message, errors=[FieldError(field=name, message=message)])


async def before_request(request: Request[Any, Any, Any]) -> None:
    """Refuse unknown parameters (400), unreadable answers (406), bodies not called JSON (415)."""
    handler = request.route_handler
    LANE.set(handler.opt.get("lane", "store"))
    if request.method == "OPTIONS" or handler.opt.get("any_media"):
        return
    _check_query(request, handler.operation_id)
    choose(request.headers.get("accept"), handler.opt.get("produces", (JSON,)))
    if request.method in {"POST", "PUT", "PATCH"} and not handler.opt.get("bodiless"):
        kind, accepted = body_kind(request), handler.opt.get("consumes", (JSON,))
        if kind not in accepted:
            message = f"Content-Type: {kind or 'none'}; accepted: {', '.join(accepted)}"
            raise Problem(415, message)
        if handler.opt.get("reads_stream"):
            request.scope["planner_body"].by_piece = True  # type: ignore[typeddict-item] # ours
        else:
            refuse_nul(await request.body())


def body_kind(request: Request[Any, Any, Any]) -> str:
    """Return the media type that a request gives its body."""
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()
