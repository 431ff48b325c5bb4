"""Content negotiation: what a route can answer, what a client takes, and what it may send."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from litestar import Request

from api.web.body import refuse_nul
from api.web.problem import Problem

JSON = "application/json"
CSV = "text/csv"
MARKDOWN = "text/markdown"
PARQUET = "application/vnd.apache.parquet"


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
    for wanted in (offered, f"{main}/*", "*/*"):
        found = [quality for kind, quality in ranges if kind == wanted]
        if found:
            return max(found)
    return 0.0


async def before_request(request: Request[Any, Any, Any]) -> None:
    """Refuse what the client cannot read (406) and bodies that do not say they are JSON (415)."""
    handler = request.route_handler
    if request.method == "OPTIONS" or handler.opt.get("any_media"):
        return
    choose(request.headers.get("accept"), handler.opt.get("produces", (JSON,)))
    if request.method in {"POST", "PUT", "PATCH"} and not handler.opt.get("bodiless"):
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind != JSON:
            raise Problem(415, f"Content-Type: {kind or 'none'}; accepted: {JSON}")
        refuse_nul(await request.body())
