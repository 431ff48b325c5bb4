"""A workspace as lines of JSON: one thing a line, a few of them in memory, in pages to resume at.

The lines are `{"format": …}`, then own models and accelerators, measurements, scenarios and
comparisons, each as `{KIND: …}`; after every page `{"cursor": …}`, and at the end `{"end": true}`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Select, Text, cast, func, select
from sqlalchemy.orm import Session

from api.catalog.own import ACCELERATOR, MODEL
from api.catalog.schemas import OwnAccelerator, OwnModel
from api.comparisons.schemas import ComparisonQuery, StoredComparison
from api.measurements.transfer import export_measurement
from api.store import Database
from api.store.tables import ComparisonRow, MeasurementRow, OwnRow, RevisionRow, ScenarioRow, now
from api.web import cursor as cursors
from api.web.problem import Problem
from api.workspace.schemas import ExportedComparison

FORMAT = "decode-planner-lines/1"
PAGE = 200
"""Things read at a time."""

Report = Callable[[int, int], None]
Page = list[tuple[str, str]]
"""The id and the JSON of each thing."""


def export_lines(
    database: Database,
    workspace: str,
    cursor: str | None = None,
    limit: int | None = None,
    report: Report | None = None,
) -> Iterator[bytes]:
    """Yield the lines of a workspace, from a cursor on, with `limit` things at most.

    Each page is from one state of the store; what changes meanwhile is in the export or not. Raises
    a 400 problem for a cursor of something else.
    """
    scope = f"{workspace} lines"
    kind, after = _place(cursor, scope)
    return _lines(database, workspace, scope, kind, after, limit, report)


def _lines(
    database: Database,
    workspace: str,
    scope: str,
    kind: str,
    after: str,
    limit: int | None,
    report: Report | None,
) -> Iterator[bytes]:
    yield _line("format", FORMAT, workspace=workspace, exported_at=now().isoformat())
    done, total = 0, _count(database, workspace) if report else 0
    kinds = list(READERS)
    for name in kinds[kinds.index(kind) :]:
        while limit is None or limit > 0:
            size = PAGE if limit is None else min(PAGE, limit)
            with database.reading() as session:
                page = READERS[name](session, workspace, after, size)
            for _, text in page:
                yield f'{{"{name}": {text}}}\n'.encode()
            done += len(page)
            if report:
                report(done, max(total, done))
            if page:
                after = page[-1][0]
                limit = None if limit is None else limit - len(page)
                yield _line("cursor", cursors.encode(f"{name} {after}", scope))
            if len(page) < size:
                break
        else:
            return
        after = ""
    yield _line("end", True)


def _place(cursor: str | None, scope: str) -> tuple[str, str]:
    if cursor is None:
        return next(iter(READERS)), ""
    kind, _, after = cursors.decode(cursor, scope).partition(" ")
    if kind not in READERS:
        raise Problem(400, "cursor: not one of an export")
    return kind, after


def _line(key: str, value: Any, **more: Any) -> bytes:
    return json.dumps({key: value, **more}).encode() + b"\n"


def _count(database: Database, workspace: str) -> int:
    tables = (OwnRow, MeasurementRow, ScenarioRow, ComparisonRow)
    with database.reading() as session:
        return sum(
            session.scalar(
                select(func.count()).select_from(table).where(table.workspace == workspace)
            )
            or 0
            for table in tables
        )


def _paged(query: Select[Any], ident: Any, after: str, size: int) -> Select[Any]:
    return query.where(ident > after).order_by(ident).limit(size)


@dataclass(frozen=True, slots=True)
class _Own:
    """Reads own models, or own accelerators."""

    kind: str
    document: type[OwnModel | OwnAccelerator]
    field: str

    def __call__(self, session: Session, workspace: str, after: str, size: int) -> Page:
        query = select(OwnRow).where(OwnRow.workspace == workspace, OwnRow.kind == self.kind)
        rows = session.scalars(_paged(query, OwnRow.id, after, size))
        return [
            (row.id, self.document(**{"id": row.id, self.field: row.document}).model_dump_json())
            for row in rows
        ]


def _measurements(session: Session, workspace: str, after: str, size: int) -> Page:
    query = select(MeasurementRow).where(MeasurementRow.workspace == workspace)
    rows = session.scalars(_paged(query, MeasurementRow.id, after, size))
    return [(row.id, export_measurement(row).model_dump_json()) for row in rows]


def _comparisons(session: Session, workspace: str, after: str, size: int) -> Page:
    query = select(ComparisonRow).where(ComparisonRow.workspace == workspace)
    rows = session.scalars(_paged(query, ComparisonRow.id, after, size))
    return [
        (
            row.id,
            ExportedComparison(
                asked=ComparisonQuery.model_validate(row.asked),
                answer=StoredComparison.model_validate_json(row.answer),
            ).model_dump_json(exclude_unset=True),
        )
        for row in rows
    ]


def _scenarios(session: Session, workspace: str, after: str, size: int) -> Page:
    """Return scenarios with their revisions: documents go out as stored, without being read."""
    query = select(ScenarioRow.id, ScenarioRow.deleted_at)
    paged = _paged(query.where(ScenarioRow.workspace == workspace), ScenarioRow.id, after, size)
    deleted = dict(session.execute(paged).tuples().all())
    documents = (RevisionRow.question, RevisionRow.plan, RevisionRow.editions, RevisionRow.own)
    rows = session.execute(
        select(
            RevisionRow.scenario_id,
            RevisionRow.revision,
            RevisionRow.action,
            *(cast(document, Text) for document in documents),
            RevisionRow.created_at,
        )
        .where(RevisionRow.scenario_id.in_(list(deleted)))
        .order_by(RevisionRow.scenario_id, RevisionRow.revision)
    )
    revisions: dict[str, list[str]] = {ident: [] for ident in deleted}
    for ident, number, action, question, plan, editions, own, time in rows:
        revisions[ident].append(
            f'{{"revision": {number}, "action": "{action}", "question": {question}, '
            f'"plan": {plan}, "editions": {editions}, "own": {own}, '
            f'"created_at": "{time.isoformat()}"}}'
        )
    return [(ident, _scenario(ident, deleted[ident], items)) for ident, items in revisions.items()]


def _scenario(ident: str, deleted: datetime | None, revisions: list[str]) -> str:
    time = "null" if deleted is None else f'"{deleted.isoformat()}"'
    listed = ", ".join(revisions)
    return f'{{"id": "{ident}", "deleted_at": {time}, "revisions": [{listed}]}}'


READERS: dict[str, Callable[[Session, str, str, int], Page]] = {
    "model": _Own(MODEL, OwnModel, "config"),
    "accelerator": _Own(ACCELERATOR, OwnAccelerator, "spec"),
    "measurement": _measurements,
    "scenario": _scenarios,
    "comparison": _comparisons,
}
"""What reads the things of each kind after an id, in the order of an export."""
