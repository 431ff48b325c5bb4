"""Entity tags: If-Match guards a write, If-None-Match spares a read."""

from __future__ import annotations

import hashlib
from typing import Any

from litestar import Response

from api.web.problem import Problem


def etag(revision: int | str) -> str:
    """Return the tag of a revision."""
    return f'"{revision}"'


def require_match(if_match: str | None) -> str:
    """Return the If-Match header; raises 428 when it is missing."""
    if if_match is None or not if_match.strip():
        raise Problem(428, "send If-Match with the ETag you read")
    return if_match


def check_match(if_match: str, revision: int) -> None:
    """Raise 412 unless If-Match names this revision."""
    if not _names(if_match, etag(revision)):
        raise Problem(
            412,
            f"it has changed since: it is at revision {revision}",
            kind="stale-revision",
            headers={"ETag": etag(revision)},
        )


def _names(header: str, tag: str) -> bool:
    listed = [part.strip() for part in header.split(",")]
    return "*" in listed or tag in listed


def tagged_by_content(if_none_match: str | None, body: bytes) -> Response[Any]:
    """Return a JSON document whose tag is a digest of it, or 304 where the client has it."""
    return tagged(if_none_match, body, etag(hashlib.sha256(body).hexdigest()[:32]))


def tagged(if_none_match: str | None, body: bytes, tag: str) -> Response[Any]:
    """Return a JSON document with its tag, or 304 where the client has it already."""
    headers = {"ETag": tag, "Cache-Control": "private, no-cache"}
    if if_none_match and _names(if_none_match.replace("W/", ""), tag):
        return Response(None, status_code=304, headers=headers, media_type="application/json")
    return Response(body, headers=headers, media_type="application/json")
