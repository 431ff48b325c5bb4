"""Doing one job: a worker process works on it, and what it sends is stored as it comes."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import closing
from functools import partial
from typing import Any

import structlog
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import Session

from api.jobs.kinds import KINDS, Work
from api.jobs.reports import Progress
from api.jobs.rows import ATTEMPTS, CRASHED, JobRows
from api.jobs.schemas import AnyJob, JobRequest
from api.lanes import Processes
from api.lanes.processes import WorkEnded
from api.measurements.changes import RowsChange
from api.measurements.service import MeasuredRuns
from api.services import Services
from api.store.tables import JobRow, PieceRow
from api.web.idempotency import Once, StoredResponse
from api.web.problem import Problem, over_limit

log = structlog.get_logger("api.jobs")

STORED_S = 0.5
"""Time between two looks at the row of a job in progress [s]."""


class NotHeld(Exception):
    """The job is cancelled, or another service's."""


class Runner:
    """Does the jobs that one service has taken."""

    def __init__(self, services: Services, rows: JobRows, processes: Processes) -> None:
        self.services = services
        self.rows = rows
        self.processes = processes
        self.stopping = threading.Event()
        self.running: set[str] = set()

    def run(self, ident: str) -> bool:
        """Do a job that waits, and with a refit all others of its workspace; never raises.

        Return whether it was this service that did it.
        """
        try:
            job = self.rows.claim(ident)
            if job is None:
                return False
            self.running.add(ident)
            if KINDS[job.kind].refits:
                self._refit(job)
            else:
                self._guarded(job, lambda: self._stream(job))
        except SQLAlchemyError as error:  # the store is away: the lease of the job runs out
            log.error("job", job=ident, error=type(error).__name__)
            return False
        finally:
            self.running.discard(ident)
        return True

    def _guarded(self, job: JobRow, work: Callable[[], object]) -> None:
        """Do work for a job; what goes wrong becomes the job's error."""
        try:
            work()
        except NotHeld:
            self.rows.drop(job.id)
        except WorkEnded:
            if self.stopping.is_set() or job.attempts < ATTEMPTS:
                self.rows.give_back(job.id, self.stopping.is_set())
            else:
                self.rows.fail(job.id, CRASHED)
        except Problem as problem:
            self.rows.fail(job.id, _error(problem))
        except SQLAlchemyError:
            raise
        except Exception as error:
            log.error("job", job=job.id, error=type(error).__name__, exc_info=error)
            self.rows.fail(job.id, {"status": 500, "detail": "the work failed; the log has it"})

    def _stream(self, job: JobRow) -> None:
        """Store what the worker process of a job sends until it ends."""
        prepared: Work | None = KINDS[job.kind].prepare(
            self.services, job.workspace, question_of(job)
        )
        assert prepared is not None  # noqa: S101 - only refits have none
        work, arguments = prepared
        progress, number, size, next_s = Progress(0, 0), 0, 0, 0.0
        most = self.services.settings.max_job_result_bytes
        with closing(self.processes.stream(work, *arguments)) as items:
            for item in items:
                if self.stopping.is_set():
                    self.rows.give_back(job.id, as_if_never_begun=True)
                    return
                if isinstance(item, Progress):
                    progress = item
                elif isinstance(item, bytes):
                    number, size = number + 1, size + len(item)
                    if size > most:
                        raise over_limit("result", size, most, "PLANNER_MAX_JOB_RESULT_BYTES")
                    if not self.rows.add_piece(job.id, number, item):
                        raise NotHeld
                if time.monotonic() >= next_s:
                    next_s = time.monotonic() + STORED_S
                    if not self.rows.progress(job.id, progress.done, progress.total):
                        raise NotHeld
        self.rows.progress(job.id, progress.total, progress.total)
        if not self.rows.finish(job.id, size):
            raise NotHeld

    def _refit(self, first: JobRow) -> None:
        """Add the results of all refits that wait to a workspace, and fit once."""
        jobs = [first, *self.rows.claim_like(first)]
        self.running.update(job.id for job in jobs)
        measured = MeasuredRuns(self.services.calibrations, first.workspace)
        changes: list[tuple[JobRow, RowsChange[StoredResponse]]] = []

        def add(job: JobRow) -> None:
            results = question_of(job).question
            raw, kind = results.body()
            read = measured.read(raw, kind, results.context())
            once = Once(job.workspace, None, "")
            changes.append((job, measured.addition(read, once, self._finisher(job))))

        try:
            for job in jobs:
                self._guarded(job, partial(add, job))
            results = self.services.calibrations.change_all(
                first.workspace, [change for _, change in changes]
            )
            for (job, _), result in zip(changes, results, strict=True):
                self._guarded(job, result.result)
        finally:
            self.running.difference_update(job.id for job in jobs)

    def _finisher(self, job: JobRow) -> Callable[[Session, StoredResponse], None]:
        def finish(session: Session, response: StoredResponse) -> None:
            session.add(PieceRow(job_id=job.id, number=1, body=response.body))
            if not self.rows.finish_in(session, job.id, len(response.body)):
                raise NotHeld

        return finish


def question_of(job: JobRow) -> Any:
    """Return what a job was asked."""
    request: AnyJob = JobRequest.model_validate_json(job.document).root
    return request


def _error(problem: Problem) -> dict[str, Any]:
    return {
        "status": problem.status,
        "detail": problem.detail,
        "kind": problem.kind,
        "errors": [error.model_dump() for error in problem.errors],
    }
