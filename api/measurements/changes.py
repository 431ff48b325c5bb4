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

Kept = Mapping[str, Sequence[Row]]
"""Rows by id of measurement."""
Move = Callable[[Session], None]
"""Stores the new calibration in a session."""
T = TypeVar("T")
ATTEMPTS = 8


class Moved(Exception):
    """Another writer changed the workspace's measurements meanwhile."""


def change(
    database: Database,
    workspace: str,
    most: int,
    after: Callable[[Kept], Kept],
    write: Callable[[WorkspaceCalibration | None, Move], T],
) -> T:
    """Refit to the rows that `after` leaves, and have `write` store all in one transaction.

    The fit takes long and holds no lock. `write` calls what it gets first in its transaction, where
    it is noticed that another was faster: then all begins anew.
    """
    for _ in range(ATTEMPTS):
        number, kept = _kept(database, workspace)
        told = fitted(after(kept), most)
        document = told.model_dump_json() if told else ""

        def move(session: Session, number: int = number, document: str = document) -> None:
            _move(session, workspace, number, document)

        try:
            return write(told, move)
        except Moved:
            continue
    raise Problem(
        503,
        "the measurements of this workspace keep changing; try again",
        headers={"Retry-After": "1"},
    )


def _kept(database: Database, workspace: str) -> tuple[int, Kept]:
    """Return the number of changes so far, then the rows: a change between is noticed."""
    number = select(CalibrationRow.number).where(CalibrationRow.workspace == workspace)
    rows = select(MeasurementRow).where(MeasurementRow.workspace == workspace)
    with database.reading() as session:
        found = session.scalar(number) or 0
        kept = list(session.scalars(rows.order_by(MeasurementRow.id)))
    return found, {row.id: [row_of(entry) for entry in row.runs] for row in kept}


def _move(session: Session, workspace: str, number: int, document: str) -> None:
    """Store a calibration as the next one after `number`; raises Moved where that has passed."""
    if number == 0:
        session.add(CalibrationRow(workspace=workspace, number=1, document=document))
        try:
            session.flush()
        except IntegrityError:
            raise Moved from None
        return
    found = session.execute(
        update(CalibrationRow)
        .where(CalibrationRow.workspace == workspace, CalibrationRow.number == number)
        .values(number=number + 1, document=document)
        .returning(CalibrationRow.number)
    )
    if found.first() is None:
        raise Moved
