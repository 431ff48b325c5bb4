"""Changing the measurements of a workspace, and with them its calibration."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from sqlalchemy import select, update
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from api.measurements.fitting import fitted
from api.measurements.schemas import WorkspaceCalibration
from api.store import Database
from api.store.tables import CalibrationRow, MeasurementRow
from api.web.problem import Problem
from planner.runs.entries import row_of
from planner.runs.rows import Row

MeasuredRows = Mapping[str, Sequence[Row]]
"""Rows by id of measurement."""
StoreCalibration = Callable[[Session], None]
"""Stores the new calibration in a session."""
T = TypeVar("T")
ATTEMPTS = 8


class ConcurrentChange(Exception):
    """Another writer changed the workspace's measurements meanwhile."""


def change(
    database: Database,
    workspace: str,
    most: int,
    after: Callable[[MeasuredRows], MeasuredRows],
    write: Callable[[WorkspaceCalibration | None, StoreCalibration], T],
) -> T:
    """Refit to the rows that `after` leaves, and have `write` store all in one transaction.

    The fit takes long and holds no lock. `write` calls what it gets first in its transaction, where
    it is noticed that another was faster: then all begins anew.
    """
    for _ in range(ATTEMPTS):
        number, rows = _read(database, workspace)
        calibration = fitted(after(rows), most)
        document = calibration.model_dump_json() if calibration else ""

        def store(session: Session, number: int = number, document: str = document) -> None:
            _store(session, workspace, number, document)

        try:
            return write(calibration, store)
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
