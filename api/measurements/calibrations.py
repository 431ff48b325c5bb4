"""The calibration of each workspace: which one counts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import lru_cache
from typing import TypeVar

from sqlalchemy import select
from sqlalchemy.exc import InterfaceError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from api.measurements.changes import MeasuredRows, StoreCalibration, change
from api.measurements.schemas import WorkspaceCalibration
from api.settings import Settings
from api.store import Database
from api.store.tables import CalibrationRow
from planner.calibration import Calibration, shipped, using
from planner.calibration.own import applied

T = TypeVar("T")


class Calibrations:
    """The calibrations of all workspaces."""

    def __init__(self, database: Database, settings: Settings) -> None:
        self.database = database
        self.settings = settings
        self.last_read: dict[str, str] = {}
        """Documents as last read: what counts while the store does not answer."""

    def load(self) -> None:
        """Read all of them, so that each is known when the store is lost."""
        with self.database.reading() as session:
            rows = session.scalars(select(CalibrationRow))
            self.last_read = {row.workspace: row.document for row in rows}

    @contextmanager
    def used(self, workspace: str) -> Iterator[None]:
        """Answer with the calibration of a workspace inside the block."""
        document = self.document(workspace)
        with using(_calibration(document) if document else None):
            yield

    def document(self, workspace: str) -> str:
        """Return a workspace's WorkspaceCalibration as JSON; empty where nothing was measured."""
        query = select(CalibrationRow.document).where(CalibrationRow.workspace == workspace)
        try:
            with self.database.reading() as session:
                document = session.scalar(query) or ""
        except (OperationalError, InterfaceError, PoolTimeout):
            return self.last_read.get(workspace, "")
        if document and _shipped_with(document) != shipped().edition:
            document = self.change(workspace, lambda rows: rows, self._renew)
        self.last_read[workspace] = document
        return document

    def _renew(self, calibration: WorkspaceCalibration | None, store: StoreCalibration) -> str:
        """Store a refit to the calibration of another release."""
        with self.database.writing() as session:
            store(session)
        return calibration.model_dump_json() if calibration else ""

    def change(
        self,
        workspace: str,
        after: Callable[[MeasuredRows], MeasuredRows],
        write: Callable[[WorkspaceCalibration | None, StoreCalibration], T],
    ) -> T:
        """Refit a workspace to the rows that `after` leaves, see `changes.change`."""
        most = self.settings.max_measured_runs
        return change(self.database, workspace, most, after, write)


@lru_cache(maxsize=256)
def _calibration(document: str) -> Calibration:
    """Return the shipped calibration with a document's factors: one object for one document."""
    own = WorkspaceCalibration.model_validate_json(document)
    return replace(applied(shipped(), own.factors), edition=own.edition)


@lru_cache(maxsize=256)
def _shipped_with(document: str) -> str:
    return WorkspaceCalibration.model_validate_json(document).shipped
