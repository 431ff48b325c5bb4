"""API keys: made once, kept as a hash, revoked by id."""

from __future__ import annotations

import hashlib
import secrets
from typing import cast

from sqlalchemy import select

from api.store import Database
from api.store.tables import KeyRow, now
from api.web.context import AccessScope, Caller

PREFIX = "dpk_"


class Keys:
    """The API keys of all workspaces."""

    def __init__(self, database: Database) -> None:
        self.database = database

    def create(self, workspace: str, name: str, scope: AccessScope) -> tuple[str, str]:
        """Return the id of a new key and the key itself, which is not kept."""
        key = PREFIX + secrets.token_urlsafe(32)
        row = KeyRow(workspace=workspace, name=name, scope=scope, hash=_hash(key))
        with self.database.writing() as session:
            session.add(row)
        return row.id, key

    def find(self, key: str) -> Caller | None:
        """Return whom a key lets in, None if it is unknown or revoked."""
        query = select(KeyRow).where(KeyRow.hash == _hash(key), KeyRow.revoked_at.is_(None))
        with self.database.reading() as session:
            row = session.scalars(query).one_or_none()
        return Caller(row.workspace, cast("AccessScope", row.scope)) if row else None

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
        return True


def _hash(key: str) -> str:
    # A key holds 256 random bits: nothing slower than one SHA-256 is needed against guessing.
    return hashlib.sha256(key.encode()).hexdigest()
