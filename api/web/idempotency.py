"""A write that carries an Idempotency-Key happens once, however often it is sent."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from litestar import Response
from sqlalchemy import delete
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from api.store import Database
from api.store.tables import IdempotencyRow, now
from api.web.problem import Problem

MOST = 200
"""Longest key."""


@dataclass(frozen=True, slots=True)
class Once:
    """The key of a request and what the request was."""

    workspace: str
    key: str | None
    fingerprint: str

    @classmethod
    def of(cls, workspace: str, key: str | None, path: str, body: bytes) -> Once:
        """Return the identity of a request."""
        if key is not None and not (0 < len(key) <= MOST and key.isprintable() and key.isascii()):
            raise Problem(400, f"Idempotency-Key: accepted: 1 to {MOST} printable ASCII characters")
        digest = hashlib.sha256(path.encode() + b"\n" + body).hexdigest()
        return cls(workspace, key, digest)


@dataclass(frozen=True, slots=True)
class StoredResponse:
    """A response that can be stored, and sent again."""

    body: bytes
    status: int = 201
    headers: dict[str, str] = field(default_factory=dict)

    def response(self) -> Response[Any]:
        """Return the response."""
        return Response(
            self.body, status_code=self.status, headers=self.headers, media_type="application/json"
        )


def write_once(
    database: Database, once: Once, make: Callable[[Session], StoredResponse]
) -> StoredResponse:
    """Return what `make` answers in one transaction, or its first answer to the same request.

    The key is inserted first: a second request with it waits for the first one's transaction.
    """
    if (before := replayed(database, once)) is not None:
        return before
    try:
        with database.writing() as session:
            return write_in(session, once, make)
    except IntegrityError:
        if (before := replayed(database, once)) is not None:
            return before
        raise


def write_in(
    session: Session, once: Once, make: Callable[[Session], StoredResponse]
) -> StoredResponse:
    """Return what `make` answers, stored under the key of the request if it has one.

    Raises IntegrityError where the key was used before.
    """
    if once.key is None:
        return make(session)
    stale = (IdempotencyRow.created_at < now() - session.info["idempotency"],)
    mine = (IdempotencyRow.workspace == once.workspace, IdempotencyRow.key == once.key)
    session.execute(delete(IdempotencyRow).where(*mine, *stale))
    row = IdempotencyRow(
        workspace=once.workspace,
        key=once.key,
        fingerprint=once.fingerprint,
        status=0,
        headers={},
        body="",
    )
    session.add(row)
    session.flush()
    made = make(session)
    row.status, row.headers, row.body = made.status, made.headers, made.body.decode()
    return made


def replayed(database: Database, once: Once) -> StoredResponse | None:
    """Return what the same request was answered before; raises 422 where it was another."""
    if once.key is None:
        return None
    with database.reading() as session:
        row = session.get(IdempotencyRow, (once.workspace, once.key))
    if row is None or row.created_at < now() - database.idempotency:
        return None
    if row.fingerprint != once.fingerprint:
        raise Problem(422, "Idempotency-Key: used before with a different request")
    headers = {**row.headers, "Idempotency-Replayed": "true"}
    return StoredResponse(row.body.encode(), row.status, headers)
