"""Cursors: opaque, bound to the query they continue, and refused when mangled."""

from __future__ import annotations

import base64
import binascii
import hashlib

from api.web.problem import Problem


def encode(last_id: str, query: str) -> str:
    """Return the cursor that continues `query` after `last_id`."""
    return base64.urlsafe_b64encode(_check(last_id, query) + last_id.encode()).decode().rstrip("=")


def decode(cursor: str, query: str) -> str:
    """Return the id to continue after; raises a 400 problem for anything `encode` did not make."""
    try:
        raw = base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4))
        last_id = raw[8:].decode()
    except (binascii.Error, UnicodeError, ValueError):
        raise _mangled() from None
    if _check(last_id, query) != raw[:8] or encode(last_id, query) != cursor:
        raise _mangled()
    return last_id


def _check(last_id: str, query: str) -> bytes:
    return hashlib.sha256(f"{last_id}\n{query}".encode()).digest()[:8]


def _mangled() -> Problem:
    return Problem(
        400, "cursor: not one that this query returned; start again without it", kind="bad-cursor"
    )
