"""Who changed what: a row beside every change, written by the same transaction."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from sqlalchemy import event, insert
from sqlalchemy.orm import Session, sessionmaker

from api.store.tables import (
    ChangeRow,
    ComparisonRow,
    KeyRow,
    MeasurementRow,
    OwnRow,
    RevisionRow,
    ScenarioRow,
    new_id,
    now,
)


@dataclass(frozen=True, slots=True)
class Author:
    """Who sends the current request; all empty where a command works on the store itself."""

    key_id: str | None = None
    client: str | None = None
    request_id: str | None = None


AUTHOR: ContextVar[Author] = ContextVar("planner_author", default=Author())  # noqa: B039 - frozen
KINDS: dict[type[Any], str] = {
    OwnRow: "own",
    MeasurementRow: "measurement",
    ComparisonRow: "comparison",
    KeyRow: "key",
}
"""What rows are called that are made and deleted; scenarios have revisions."""


Change = tuple[str, str, str, str, int | None]
"""Workspace, kind, object, action and revision."""


def note(session: Session, changes: Iterable[Change]) -> None:
    """Note changes that rows added in bulk make, which no session sees."""
    rows = [_values(*change) for change in changes]
    if rows:
        session.execute(insert(ChangeRow), rows)


def record_changes(sessions: sessionmaker[Session]) -> None:
    """Have every session of a factory note what it changes before it writes it."""

    @event.listens_for(sessions, "before_flush")
    def _note(session: Session, _context: Any, _instances: Any) -> None:
        session.add_all([ChangeRow(**_values(*change)) for change in _changes(session)])


def _changes(session: Session) -> Iterator[Change]:
    for row in session.new:
        if isinstance(row, RevisionRow):
            scenario = session.get(ScenarioRow, row.scenario_id)
            if scenario is not None:
                yield scenario.workspace, "scenario", scenario.id, row.action, row.revision
        elif type(row) in KINDS:
            yield _change(row, "created")
    for row in session.deleted:
        if type(row) in KINDS:
            yield _change(row, "deleted")
    for row in session.dirty:
        if isinstance(row, KeyRow) and row.revoked_at is not None:
            yield _change(row, "revoked")


def _change(row: Any, action: str) -> Change:
    if row.id is None:
        row.id = new_id()  # a default, which the flush would fill in too late
    return row.workspace, KINDS[type(row)], row.id, action, None


def _values(
    workspace: str, kind: str, ident: str, action: str, revision: int | None
) -> dict[str, Any]:
    author = AUTHOR.get()
    return {
        "id": new_id(),
        "workspace": workspace,
        "kind": kind,
        "object": ident,
        "action": action,
        "revision": revision,
        "key_id": author.key_id,
        "client": author.client,
        "request_id": author.request_id,
        "changed_at": now(),
    }
