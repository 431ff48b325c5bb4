"""Models and accelerators of a workspace: stored once, never changed, used by id."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from api.store import Database
from api.store.tables import OwnRow, ScenarioRow
from api.web.call import call_planner
from api.web.problem import Problem, not_found, rejected
from planner.hw import get_accelerator
from planner.models import get_model

OWN = "own/"
"""Prefix of the ids of own objects, so that no catalogue edition can ever take one over."""
MODEL, ACCELERATOR = "model", "accelerator"
FIELDS = {MODEL: "model", ACCELERATOR: "gpu"}
BODIES = {MODEL: "config", ACCELERATOR: "spec"}
"""What an object is called in a scenario, and in the request that stores it."""


class OwnObjects:
    """The own objects of all workspaces."""

    def __init__(self, database: Database) -> None:
        self.database = database

    def document(self, workspace: str, kind: str, name: str) -> dict[str, Any]:
        """Return the object a request names; raises a 422 problem where there is none."""
        return dict(self._named(workspace, kind, name).document)

    def digest(self, workspace: str, kind: str, name: object) -> str:
        """Return the digest of an object."""
        return self._named(workspace, kind, str(name)).digest

    def _named(self, workspace: str, kind: str, name: str) -> OwnRow:
        with self.database.reading() as session:
            row = session.get(OwnRow, (workspace, kind, name.removeprefix(OWN)))
        if row is None:
            known = ", ".join(OWN + i for i in self.ids(workspace, kind)[:5]) or "none yet"
            raise rejected(f"{FIELDS[kind]}: unknown {kind} {name[:60]!r}; own ones: {known}")
        return row

    def ids(self, workspace: str, kind: str) -> list[str]:
        """Return the ids of a workspace's objects of one kind, without prefix."""
        return [row.id for row in self.list(workspace, kind)]

    def list(self, workspace: str, kind: str) -> list[OwnRow]:
        """Return a workspace's objects of one kind, by id."""
        query = select(OwnRow).where(OwnRow.workspace == workspace, OwnRow.kind == kind)
        with self.database.reading() as session:
            return list(session.scalars(query.order_by(OwnRow.id)))

    def get(self, workspace: str, kind: str, name: str) -> OwnRow:
        """Return one object; raises 404."""
        with self.database.reading() as session:
            row = session.get(OwnRow, (workspace, kind, name.removeprefix(OWN)))
        if row is None:
            raise not_found(kind)
        return row

    def delete(self, workspace: str, kind: str, name: str) -> None:
        """Delete an object that no scenario uses; raises 404 or 409."""
        column = ScenarioRow.model if kind == MODEL else ScenarioRow.gpu
        bare = name.removeprefix(OWN)
        with self.database.writing() as session:
            row = session.get(OwnRow, (workspace, kind, bare))
            if row is None:
                raise not_found(kind)
            used = session.scalar(
                select(func.count()).where(ScenarioRow.workspace == workspace, column == OWN + bare)
            )
            if used:
                raise Problem(409, f"{used} scenarios use it, deleted ones included")
            session.delete(row)


def check(kind: str, document: dict[str, Any]) -> None:
    """Raise a 422 problem unless the planner takes the object."""
    try:
        if kind == MODEL:
            call_planner(get_model, document)
        else:
            call_planner(get_accelerator, document, allow_files=False)
    except Problem as problem:
        raise rejected(BODIES[kind] + problem.detail.removeprefix(FIELDS[kind])) from None


def store(
    session: Session, workspace: str, kind: str, ident: str, document: dict[str, Any]
) -> OwnRow:
    """Store a checked object; raises 409 where the id is taken by a different one."""
    digest = digest_of(document)
    row = session.get(OwnRow, (workspace, kind, ident))
    if row is not None:
        if row.digest == digest:
            return row
        raise Problem(409, f"id: {OWN}{ident} is taken; own objects never change: choose another")
    row = OwnRow(workspace=workspace, kind=kind, id=ident, document=document, digest=digest)
    session.add(row)
    session.flush()
    return row


def digest_of(document: dict[str, Any]) -> str:
    """Return a digest of what an object says, whatever the order of its fields."""
    text = json.dumps(document, sort_keys=True, ensure_ascii=True, allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()
