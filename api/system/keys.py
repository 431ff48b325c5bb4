"""API keys: made once, kept as a hash, revoked by id."""

from __future__ import annotations

import hashlib
import secrets
import time
from typing import cast

from sqlalchemy import select

from api.store import Database
from api.store.tables import KeyRow, now
from api.web.context import AccessScope, Caller

PREFIX = "dpk_"
MOST_KNOWN = 10_000
"""Keys that are remembered [-]."""


class Keys:
    """The API keys of all workspaces."""

    def __init__(self, database: Database, cached_s: float = 0.0) -> None:
        """Open the keys of a store; a valid one is not looked up again for `cached_s` seconds."""
        self.database = database
        self.cached_s = cached_s
        self.hits = 0
        self.misses = 0
        self._known: dict[str, tuple[Caller, float]] = {}

    def create(self, workspace: str, name: str, scope: AccessScope) -> tuple[str, str]:
        """Return the id of a new key and the key itself, which is not kept."""
        key = PREFIX + secrets.token_urlsafe(32)
        row = KeyRow(workspace=workspace, name=name, scope=scope, hash=_hash(key))
        with self.database.writing() as session:
            session.add(row)
        return row.id, key

    def cached(self, key: str) -> Caller | None:
        """Return whom a key lets in, if that was looked up a moment ago."""
        caller, until = self._known.get(_hash(key), (None, 0.0))
        if time.monotonic() < until:
            self.hits += 1
            return caller
        self.misses += 1
        return None

    def __len__(self) -> int:
        """Keys that are remembered."""
        return len(self._known)

    def find(self, key: str) -> Caller | None:
        """Return whom a key lets in, None if it is unknown or revoked."""
        query = select(KeyRow).where(KeyRow.hash == _hash(key), KeyRow.revoked_at.is_(None))
        with self.database.reading() as session:
            row = session.scalars(query).one_or_none()
        if row is None:
            return None
        caller = Caller(row.workspace, cast("AccessScope", row.scope), row.id)
        if len(self._known) >= MOST_KNOWN:
            self._known.clear()
        self._known[row.hash] = caller, time.monotonic() + self.cached_s
        return caller

    def list(self) -> list[KeyRow]:
        """Return all keys, oldest first."""
        with self.database.reading() as session:
            return list(session.scalars(select(KeyRow).order_by(KeyRow.id)))

    def revoke(self, key_id: str) -> bool:
        """Make a key invalid; return whether there was one."""
        with self.database.writing() as session:
            row = session.get(KeyRow, key_id)
            if row is None or row.revoked_at is not None:
                return False
            row.revoked_at = now()
            self._known.pop(row.hash, None)
        return True


def _hash(key: str) -> str:
    # A key holds 256 random bits: nothing slower than one SHA-256 is needed against guessing.
    return hashlib.sha256(key.encode()).hexdigest()
