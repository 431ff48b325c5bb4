"""Rows of jobs: every change of state is one statement that says which state it starts from.

So several services can share a store: of two that want a job one gets it, and a service that was
taken for dead writes nothing any more to what another has begun anew.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from sqlalchemy import CursorResult, delete, func, insert, select, update
from sqlalchemy.orm import Session

from api.jobs.schemas import FINISHED
from api.settings import Settings
from api.store import Database
from api.store.tables import JobRow, PieceRow, now

LEASE_S = 30.0
"""Time without a sign of life after which a job's worker counts as dead [s]."""
ATTEMPTS = 2
"""Times a job is begun: the second one after its worker ended [-]."""

CRASHED: dict[str, Any] = {
    "status": 503,
    "detail": f"its worker ended {ATTEMPTS} times before it was done",
}


class JobRows:
    """The jobs of all workspaces, as one service sees them."""

    def __init__(self, database: Database, settings: Settings, holder: str) -> None:
        self.database = database
        self.settings = settings
        self.holder = holder

    def queued(self) -> list[str]:
        """Return the ids of jobs that wait, oldest first."""
        query = select(JobRow.id).where(JobRow.state == "queued").order_by(JobRow.id)
        with self.database.reading() as session:
            return list(session.scalars(query))

    def claim(self, ident: str) -> JobRow | None:
        """Begin a job that waits; None where it does no more."""
        with self.database.writing() as session:
            return self._claimed(session, [ident]).get(ident)

    def claim_like(self, job: JobRow) -> list[JobRow]:
        """Begin the jobs of a job's kind and workspace that wait, beside it; oldest first."""
        with self.database.writing() as session:
            query = select(JobRow.id).where(
                JobRow.state == "queued", JobRow.workspace == job.workspace, JobRow.kind == job.kind
            )
            claimed = self._claimed(session, list(session.scalars(query)))
        return [claimed[ident] for ident in sorted(claimed)]

    def _claimed(self, session: Session, idents: Sequence[str]) -> dict[str, JobRow]:
        time = now()
        values = {"state": "running", "holder": self.holder, "done": 0, "total": 0}
        begun = session.execute(
            update(JobRow)
            .where(JobRow.id.in_(idents), JobRow.state == "queued")
            .values(attempts=JobRow.attempts + 1, started_at=time, heard_at=time, **values)
            .returning(JobRow)
            .execution_options(synchronize_session=False)
        )
        rows = {row.id: row for row in begun.scalars()}
        session.execute(delete(PieceRow).where(PieceRow.job_id.in_(list(rows))))
        return rows

    def progress(self, ident: str, done: int, total: int) -> bool:
        """Say how far a job is; return whether it shall go on."""
        return self._held(ident, {"done": done, "total": total, "heard_at": now()})

    def heard(self) -> None:
        """Say that all jobs of this service are being worked on."""
        with self.database.writing() as session:
            session.execute(
                update(JobRow)
                .where(JobRow.state == "running", JobRow.holder == self.holder)
                .values(heard_at=now())
            )

    def _held(self, ident: str, values: dict[str, Any]) -> bool:
        with self.database.writing() as session:
            return self._update_held(session, ident, values)

    def _update_held(self, session: Session, ident: str, values: dict[str, Any]) -> bool:
        """Change a job unless it is cancelled or another service's; return whether it was."""
        updated = session.execute(
            update(JobRow)
            .where(JobRow.id == ident, JobRow.state == "running", JobRow.holder == self.holder)
            .where(JobRow.cancelled.is_(False))
            .values(**values)
        )
        return _count(updated) == 1

    def add_piece(self, ident: str, number: int, body: bytes) -> bool:
        """Store a piece of a job's result; return whether the job shall go on."""
        with self.database.writing() as session:
            if held := self._update_held(session, ident, {"heard_at": now()}):
                piece = {"job_id": ident, "number": number, "body": body}
                session.execute(insert(PieceRow), [piece])
            return held

    def finish(self, ident: str, result_bytes: int) -> bool:
        """Say that a job is done; return whether it was this service's, and not cancelled."""
        with self.database.writing() as session:
            return self.finish_in(session, ident, result_bytes)

    def finish_in(self, session: Session, ident: str, result_bytes: int) -> bool:
        """The same, in a transaction that writes what came of it."""
        values = {"state": "done", "result_bytes": result_bytes, **self.ending()}
        return self._update_held(session, ident, values)

    def fail(self, ident: str, error: dict[str, Any]) -> None:
        """Say why a job failed, and drop what there is of its result."""
        with self.database.writing() as session:
            if self._end(session, ident, "failed", {"error": error}):
                session.execute(delete(PieceRow).where(PieceRow.job_id == ident))

    def drop(self, ident: str) -> None:
        """Say that the work on a cancelled job has ended."""
        with self.database.writing() as session:
            if self._end(session, ident, "cancelled", {}):
                session.execute(delete(PieceRow).where(PieceRow.job_id == ident))

    def give_back(self, ident: str, as_if_never_begun: bool) -> None:
        """Put a job back that this service does not finish: it stops, or the worker was killed."""
        uncounted = 1 if as_if_never_begun else 0
        with self.database.writing() as session:
            session.execute(
                update(JobRow)
                .where(JobRow.id == ident, JobRow.state == "running", JobRow.holder == self.holder)
                .values(state="queued", holder="", attempts=JobRow.attempts - uncounted)
            )

    def _end(self, session: Session, ident: str, state: str, values: dict[str, Any]) -> bool:
        ended = session.execute(
            update(JobRow)
            .where(JobRow.id == ident, JobRow.state == "running", JobRow.holder == self.holder)
            .values(state=state, **self.ending(), **values)
        )
        return _count(ended) == 1

    def ending(self) -> dict[str, Any]:
        """Return the columns that a finished job gets."""
        time = now()
        return {"finished_at": time, "expires_at": time + timedelta(hours=self.settings.job_hours)}

    def recover(self) -> list[str]:
        """Put jobs back whose workers are dead, or fail them; return the ids of all that wait."""
        silent = (JobRow.state == "running", JobRow.heard_at < now() - timedelta(seconds=LEASE_S))
        endings = (
            (JobRow.cancelled.is_(True), {"state": "cancelled", **self.ending()}),
            (JobRow.attempts >= ATTEMPTS, {"state": "failed", "error": CRASHED, **self.ending()}),
            (JobRow.attempts < ATTEMPTS, {"state": "queued", "holder": ""}),
        )
        with self.database.reading() as session:
            dead = session.scalar(select(JobRow.id).where(*silent).limit(1))
        if dead is not None:
            with self.database.writing() as session:
                for which, values in endings:
                    session.execute(update(JobRow).where(*silent, which).values(**values))
        return self.queued()

    def expire(self) -> None:
        """Forget finished jobs whose time is over, and their results."""
        over = (JobRow.state.in_(FINISHED), JobRow.expires_at < now())
        with self.database.reading() as session:
            oldest = session.scalar(select(JobRow.id).where(*over).limit(1))
        if oldest is not None:
            with self.database.writing() as session:
                session.execute(delete(JobRow).where(*over))


def unfinished(session: Session, workspace: str) -> int:
    """Return how many jobs of a workspace wait or run."""
    query = select(func.count()).where(
        JobRow.workspace == workspace, JobRow.state.in_(("queued", "running"))
    )
    return session.scalar(query) or 0


def drop_oldest(session: Session, workspace: str, most: int) -> None:
    """Forget the oldest finished jobs of a workspace beyond `most` jobs."""
    of_workspace = select(JobRow.id).where(JobRow.workspace == workspace)
    count = session.scalar(select(func.count()).select_from(of_workspace.subquery())) or 0
    if count > most:
        oldest = of_workspace.where(JobRow.state.in_(FINISHED)).order_by(JobRow.id)
        session.execute(
            delete(JobRow).where(JobRow.id.in_(list(session.scalars(oldest.limit(count - most)))))
        )


def _count(result: object) -> int:
    return result.rowcount if isinstance(result, CursorResult) else 0
