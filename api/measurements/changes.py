"""Changing the measurements of a workspace, and with them its calibration."""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from sqlalchemy import select, update
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from api.measurements.schemas import WorkspaceCalibration
from api.store import Database
from api.store.tables import CalibrationRow, MeasurementRow
from api.web.problem import Problem
from planner.runs.entries import row_of
from planner.runs.rows import Row

MeasuredRows = Mapping[str, Sequence[Row]]
"""Rows by id of measurement."""
Fit = Callable[[MeasuredRows], WorkspaceCalibration | None]
T = TypeVar("T")
ATTEMPTS = 8


class ConcurrentChange(Exception):
    """Another process changed the workspace's measurements meanwhile."""


@dataclass
class RowsChange(Generic[T]):
    """What becomes of the rows, and what is stored with the calibration they give."""

    after: Callable[[MeasuredRows], MeasuredRows]
    write: Callable[[Session, WorkspaceCalibration | None], T]
    before: Callable[[], T | None] = lambda: None
    """What the same request was answered, if it was made before."""
    result: Future[T] = field(default_factory=Future)


class Refits:
    """Changes of all workspaces; those that wait for the same fit are fitted and stored together.

    A fit takes long and holds no lock of the store. Another process that was faster is noticed when
    the calibration is stored: then all begins anew.
    """

    def __init__(self, database: Database, fit: Fit) -> None:
        self.database = database
        self.fit = fit
        self._lock = threading.Lock()
        self._turns: defaultdict[str, threading.Lock] = defaultdict(threading.Lock)
        self._waiting: defaultdict[str, list[RowsChange[Any]]] = defaultdict(list)

    def change_all(self, workspace: str, changes: Sequence[RowsChange[T]]) -> list[Future[T]]:
        """Make changes, with all that wait for their turn; return what became of each of these."""
        with self._lock:
            self._waiting[workspace] += changes
            turn = self._turns[workspace]
        with turn:
            if not all(change.result.done() for change in changes):
                with self._lock:
                    together = self._waiting.pop(workspace)
                self._make(workspace, together)
        return [change.result for change in changes]

    def _make(self, workspace: str, changes: Sequence[RowsChange[Any]]) -> None:
        """Make changes together; where that fails, one after the other."""
        try:
            results = self._together(workspace, changes)
        except Exception as error:  # noqa: BLE001 - it belongs to whoever made the change
            if len(changes) == 1:
                self._fail(changes[0], error)
                return
            for change in changes:
                self._make(workspace, [change])
        else:
            for change, result in zip(changes, results, strict=True):
                change.result.set_result(result)

    def _fail(self, change: RowsChange[Any], error: Exception) -> None:
        try:
            result = change.before() if isinstance(error, IntegrityError) else None
        except Exception as other:  # noqa: BLE001 - the same
            error, result = other, None
        if result is None:
            change.result.set_exception(error)
        else:
            change.result.set_result(result)

    def _together(self, workspace: str, changes: Sequence[RowsChange[Any]]) -> list[Any]:
        answered = [change.before() for change in changes]
        new = [change for change, known in zip(changes, answered, strict=True) if known is None]
        made = iter(self._store(workspace, new) if new else ())
        return [next(made) if known is None else known for known in answered]

    def _store(self, workspace: str, changes: Sequence[RowsChange[Any]]) -> list[Any]:
        for _ in range(ATTEMPTS):
            number, rows = _read(self.database, workspace)
            for change in changes:
                rows = change.after(rows)
            calibration = self.fit(rows)
            document = calibration.model_dump_json() if calibration else ""
            try:
                with self.database.writing() as session:
                    _store(session, workspace, number, document)
                    return [change.write(session, calibration) for change in changes]
            except ConcurrentChange:
                continue
        raise Problem(
            503,
            "the measurements of this workspace keep changing; try again",
            headers={"Retry-After": "1"},
        )


def _read(database: Database, workspace: str) -> tuple[int, MeasuredRows]:
    """Return the number of changes so far, then the rows: a change between is noticed."""
    query = select(CalibrationRow.number).where(CalibrationRow.workspace == workspace)
    measurements = select(MeasurementRow).where(MeasurementRow.workspace == workspace)
    with database.reading() as session:
        number = session.scalar(query) or 0
        rows = list(session.scalars(measurements.order_by(MeasurementRow.id)))
    return number, {row.id: [row_of(entry) for entry in row.runs] for row in rows}


def _store(session: Session, workspace: str, number: int, document: str) -> None:
    """Store a calibration as the next one after `number`.

    Raises ConcurrentChange where there is a next one already.
    """
    if number == 0:
        session.add(CalibrationRow(workspace=workspace, number=1, document=document))
        try:
            session.flush()
        except IntegrityError:
            raise ConcurrentChange from None
        return
    updated = session.execute(
        update(CalibrationRow)
        .where(CalibrationRow.workspace == workspace, CalibrationRow.number == number)
        .values(number=number + 1, document=document)
        .returning(CalibrationRow.number)
    )
    if updated.first() is None:
        raise ConcurrentChange
