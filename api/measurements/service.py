"""The rules of measurements: what is read, stored and deleted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from api.measurements.calibrations import Calibrations
from api.measurements.changes import MeasuredRows, RowsChange
from api.measurements.reading import read_body
from api.measurements.schemas import (
    AddedMeasurement,
    Measurement,
    MeasurementPage,
    MeasurementSummary,
    WorkspaceCalibration,
)
from api.store.tables import MeasurementRow, new_id, now
from api.web import cursor as cursors
from api.web.idempotency import Once, StoredResponse, replayed, write_in
from api.web.problem import not_found
from planner.benchmarks import Context, Measurements
from planner.runs.entries import entry_of

PATH = "/v1/measurements"


class MeasuredRuns:
    """The measurements of one workspace."""

    def __init__(self, calibrations: Calibrations, workspace: str) -> None:
        self.calibrations = calibrations
        self.database = calibrations.database
        self.workspace = workspace

    def read(self, raw: bytes, kind: str, context: Context) -> Measurements:
        """Return the runs of results of a media type; raises a 4xx problem."""
        most = self.calibrations.settings.max_measured_runs
        return read_body(raw, kind, context, most)

    def add(self, read: Measurements, once: Once) -> StoredResponse:
        """Store results, and refit with them."""
        return self.calibrations.change(self.workspace, self.addition(read, once))

    def addition(
        self,
        read: Measurements,
        once: Once,
        beside: Callable[[Session, StoredResponse], None] = lambda *_: None,
    ) -> RowsChange[StoredResponse]:
        """Return the change that stores results; `beside` writes more in its transaction."""
        row = MeasurementRow(
            id=new_id(),
            workspace=self.workspace,
            format=read.format,
            notes=list(read.notes),
            runs=[entry_of(run) for run in read.rows],
            created_at=now(),
        )

        def make(session: Session, calibration: WorkspaceCalibration | None) -> StoredResponse:
            session.add(row)
            assert calibration is not None  # noqa: S101 - there is this measurement at least
            added = AddedMeasurement(measurement=_measurement(row), calibration=calibration)
            headers = {"Location": f"{PATH}/{row.id}"}
            response = StoredResponse(added.model_dump_json().encode(), headers=headers)
            beside(session, response)
            return response

        return RowsChange(
            after=lambda rows: {**rows, row.id: read.rows},
            write=lambda session, own: write_in(session, once, lambda s: make(s, own)),
            before=lambda: replayed(self.database, once),
        )

    def delete(self, ident: str) -> None:
        """Delete a measurement, and refit without it."""

        def after(rows: MeasuredRows) -> MeasuredRows:
            if ident not in rows:
                raise not_found("measurement")
            return {key: runs for key, runs in rows.items() if key != ident}

        def write(session: Session, _: WorkspaceCalibration | None) -> None:
            session.delete(self._row(session, ident))

        self.calibrations.change(self.workspace, RowsChange(after, write))

    def get(self, ident: str) -> Measurement:
        """Return a measurement with its runs."""
        with self.database.reading() as session:
            return _measurement(self._row(session, ident))

    def page(self, cursor: str | None, limit: int) -> MeasurementPage:
        """Return a page of measurements, and what they give together."""
        scope = f"{self.workspace} measurements"
        query = select(MeasurementRow).where(MeasurementRow.workspace == self.workspace)
        if cursor is not None:
            query = query.where(MeasurementRow.id > cursors.decode(cursor, scope))
        with self.database.reading() as session:
            rows = list(session.scalars(query.order_by(MeasurementRow.id).limit(limit + 1)))
        document = self.calibrations.document(self.workspace)
        return MeasurementPage(
            items=[_summary(row) for row in rows[:limit]],
            next_cursor=cursors.encode(rows[limit - 1].id, scope) if len(rows) > limit else None,
            calibration=WorkspaceCalibration.model_validate_json(document) if document else None,
        )

    def _row(self, session: Session, ident: str) -> MeasurementRow:
        query = select(MeasurementRow).where(
            MeasurementRow.workspace == self.workspace, MeasurementRow.id == ident
        )
        row = session.scalars(query).one_or_none()
        if row is None:
            raise not_found("measurement")
        return row


def _facts(row: MeasurementRow) -> dict[str, Any]:
    return {
        "id": row.id,
        "format": row.format,
        "runs": len(row.runs),
        "notes": row.notes,
        "created_at": row.created_at.isoformat(),
    }


def _summary(row: MeasurementRow) -> MeasurementSummary:
    return MeasurementSummary.model_validate(_facts(row))


def _measurement(row: MeasurementRow) -> Measurement:
    return Measurement.model_validate({**_facts(row), "rows": row.runs})
