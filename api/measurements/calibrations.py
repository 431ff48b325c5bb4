"""The calibration of each workspace: which one counts.

Answers that only compute use what was read last: a thread reads what other processes changed, twice
a second, and a change of this process counts at once. What is stored is computed with what the
store has at that moment.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import lru_cache

import structlog
from sqlalchemy import select
from sqlalchemy.exc import InterfaceError, OperationalError, SQLAlchemyError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from api.lanes.processes import Processes
from api.measurements.changes import MeasuredRows, Refits, RowsChange, T
from api.measurements.fitting import fitted
from api.measurements.schemas import WorkspaceCalibration
from api.settings import Settings
from api.store import Database
from api.store.tables import CalibrationRow
from planner.calibration import Calibration, shipped, using
from planner.calibration.own import applied

log = structlog.get_logger("api")

REFRESH_S = 0.5
"""Time after which a change made by another process counts here [s]."""


class Calibrations:
    """The calibrations of all workspaces."""

    def __init__(self, database: Database, settings: Settings, processes: Processes) -> None:
        self.database = database
        self.settings = settings
        self.processes = processes
        self.refits = Refits(database, self._fit)
        self.read: dict[str, tuple[int, str]] = {}
        """Number and document of each workspace's calibration, as last read."""
        self._end = threading.Event()
        self._refresher = threading.Thread(target=self._refresh, name="calibrations", daemon=True)

    def start(self) -> None:
        """Read all of them, and from now on what changes."""
        self._load()
        self._refresher.start()

    def stop(self) -> None:
        """End the thread that reads changes."""
        self._end.set()
        if self._refresher.is_alive():
            self._refresher.join()

    def _refresh(self) -> None:
        while not self._end.wait(REFRESH_S):
            with suppress(SQLAlchemyError, OSError):  # until the store is back, the last one counts
                self._load()

    def _load(self) -> None:
        query = select(CalibrationRow.workspace, CalibrationRow.number)
        with self.database.reading() as session:
            numbers = dict(session.execute(query).tuples().all())
            changed = [w for w, n in numbers.items() if self.read.get(w, (0, ""))[0] != n]
            if changed:
                rows = select(CalibrationRow).where(CalibrationRow.workspace.in_(changed))
                for row in session.scalars(rows):
                    self.read[row.workspace] = (row.number, row.document)

    @contextmanager
    def used(self, workspace: str) -> Iterator[None]:
        """Answer with the calibration of a workspace inside the block."""
        with using(calibration_of(self.last(workspace))):
            yield

    @contextmanager
    def current(self, workspace: str) -> Iterator[None]:
        """Answer with the calibration that the store has now, for an answer that is stored."""
        with using(calibration_of(self.document(workspace))):
            yield

    def at_hand(self, workspace: str) -> str | None:
        """Return the calibration as last read, None where it has to be refitted first."""
        document = self.read.get(workspace, (0, ""))[1]
        if document and _shipped_with(document) != shipped().edition:
            return None
        return document

    def last(self, workspace: str) -> str:
        """Return a workspace's calibration as last read; empty where nothing was measured."""
        document = self.read.get(workspace, (0, ""))[1]
        return self._of_this_release(workspace, document)

    def document(self, workspace: str) -> str:
        """Return a workspace's WorkspaceCalibration as JSON; empty where nothing was measured."""
        query = select(CalibrationRow).where(CalibrationRow.workspace == workspace)
        try:
            with self.database.reading() as session:
                row = session.scalars(query).one_or_none()
        except (OperationalError, InterfaceError, PoolTimeout):
            return self.last(workspace)
        if row is None:
            return ""
        self.read[workspace] = (row.number, row.document)
        return self._of_this_release(workspace, row.document)

    def _of_this_release(self, workspace: str, document: str) -> str:
        """Return a document, refitted where it adjusts the calibration of another release."""
        if not document or _shipped_with(document) == shipped().edition:
            return document
        log.info("refit", workspace=workspace, because="another release of the calibration")
        return self.change(workspace, RowsChange(lambda rows: rows, lambda _, own: _text(own)))

    def change(self, workspace: str, change: RowsChange[T]) -> T:
        """Refit a workspace to the rows that a change leaves, and store all it writes."""
        return self.change_all(workspace, [change])[0].result()

    def change_all(self, workspace: str, changes: Sequence[RowsChange[T]]) -> list[Future[T]]:
        """Make changes with one refit; return what became of each."""
        results = self.refits.change_all(workspace, changes)
        with suppress(SQLAlchemyError):
            self._load()
        return results

    def _fit(self, rows: MeasuredRows) -> WorkspaceCalibration | None:
        if not rows:
            return None
        return self.processes.run(fitted, rows, self.settings.max_measured_runs)


def _text(calibration: WorkspaceCalibration | None) -> str:
    return calibration.model_dump_json() if calibration else ""


def calibration_of(document: str) -> Calibration | None:
    """Return the calibration of a document, None for the shipped one."""
    return _calibration(document) if document else None


@lru_cache(maxsize=256)
def _calibration(document: str) -> Calibration:
    """Return the shipped calibration with a document's factors: one object for one document."""
    own = WorkspaceCalibration.model_validate_json(document)
    return replace(applied(shipped(), own.factors), edition=own.edition)


@lru_cache(maxsize=256)
def _shipped_with(document: str) -> str:
    return WorkspaceCalibration.model_validate_json(document).shipped
