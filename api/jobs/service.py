"""The rules of jobs: who may ask for how many, what is read of them, and how they are cancelled."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any

from sqlalchemy import delete, select, update
from sqlalchemy.orm import Session

from api.jobs.kinds import KINDS
from api.jobs.rows import drop_oldest, unfinished
from api.jobs.schemas import FINISHED, AnyJob, Job, JobPage
from api.jobs.workshop import Workshop
from api.services import Services
from api.store.tables import JobRow, PieceRow, new_id, now
from api.web import cursor as cursors
from api.web.idempotency import Once, StoredResponse, write_once
from api.web.problem import FieldError, Problem, not_found

PATH = "/v1/jobs"


class Jobs:
    """The jobs of one workspace."""

    def __init__(self, services: Services, workshop: Workshop, workspace: str) -> None:
        self.services = services
        self.workshop = workshop
        self.database = services.database
        self.workspace = workspace

    def create(self, job: AnyJob, once: Once) -> StoredResponse:
        """Have work done later; raises a 422 problem where it can be seen that it is refused."""
        kind = KINDS[job.kind]
        kind.prepare(self.services, self.workspace, job)
        settings = self.services.settings
        row = JobRow(
            id=new_id(),
            workspace=self.workspace,
            kind=job.kind,
            state="queued",
            document=job.model_dump_json(exclude_unset=True),
            media_type=kind.media_type(job),
            created_at=now(),
            **dict.fromkeys(("done", "total", "attempts", "result_bytes"), 0),
            cancelled=False,
            holder="",
        )

        def make(session: Session) -> StoredResponse:
            waiting, most = unfinished(session, self.workspace), settings.max_jobs_unfinished
            if waiting >= most:
                raise Problem(
                    409,
                    f"{waiting} jobs of this workspace wait or run; accepted: {most} at most "
                    f"(setting PLANNER_MAX_JOBS_UNFINISHED); wait for one or cancel it",
                    kind="over-limit",
                )
            session.add(row)
            session.flush()
            drop_oldest(session, self.workspace, settings.max_jobs_kept)
            headers = {"Location": f"{PATH}/{row.id}"}
            return StoredResponse(_job(row).model_dump_json().encode(), 202, headers)

        response = write_once(self.database, once, make)
        if "Idempotency-Replayed" not in response.headers:
            self.workshop.queue.put(row.id)
        return response

    def get(self, ident: str) -> Job:
        """Return a job."""
        with self.database.reading() as session:
            return _job(self._row(session, ident))

    def page(self, state: str | None, cursor: str | None, limit: int) -> JobPage:
        """Return a page of jobs, of one state or of all."""
        scope = f"{self.workspace} jobs {state}"
        query = select(JobRow).where(JobRow.workspace == self.workspace)
        if state is not None:
            query = query.where(JobRow.state == state)
        if cursor is not None:
            query = query.where(JobRow.id > cursors.decode(cursor, scope))
        with self.database.reading() as session:
            rows = list(session.scalars(query.order_by(JobRow.id).limit(limit + 1)))
        following = cursors.encode(rows[limit - 1].id, scope) if len(rows) > limit else None
        return JobPage(items=[_job(row) for row in rows[:limit]], next_cursor=following)

    def cancel(self, ident: str) -> Job:
        """Cancel a job that waits or runs; one that has ended stays as it is."""
        with self.database.writing() as session:
            self._row(session, ident)
            mine = (JobRow.id == ident, JobRow.workspace == self.workspace)
            ended = {"state": "cancelled", **self.workshop.rows.ending()}
            session.execute(update(JobRow).where(*mine, JobRow.state == "queued").values(**ended))
            running = update(JobRow).where(*mine, JobRow.state == "running")
            session.execute(running.values(cancelled=True))
            session.expire_all()
            return _job(self._row(session, ident))

    def delete(self, ident: str) -> None:
        """Forget a job with its result; one that has not ended is cancelled too."""
        with self.database.writing() as session:
            row = self._row(session, ident)
            session.execute(delete(JobRow).where(JobRow.id == row.id))

    def result(self, ident: str) -> tuple[Job, Iterator[bytes]]:
        """Return a job that is done, and the pieces of its result; raises 409 before."""
        job = self.get(ident)
        if job.state == "failed" and job.error is not None:
            raise Problem(409, f"the job failed: {job.error.detail}"[:2000])
        if job.state != "done":
            raise Problem(409, f"the job is {job.state}: there is no result")
        return job, self._pieces(ident)

    def _pieces(self, ident: str) -> Iterator[bytes]:
        """Yield the pieces of a result, each read when it is wanted."""
        number = 1
        while True:
            with self.database.reading() as session:
                query = select(PieceRow.body).where(
                    PieceRow.job_id == ident, PieceRow.number == number
                )
                body = session.scalar(query)
            if body is None:
                return
            yield body
            number += 1

    def _row(self, session: Session, ident: str) -> JobRow:
        query = select(JobRow).where(JobRow.workspace == self.workspace, JobRow.id == ident)
        row = session.scalars(query).one_or_none()
        if row is None:
            raise not_found("job")
        return row


def _job(row: JobRow) -> Job:
    shown = {name: getattr(row, name) for name in Job.model_fields if name != "error"}
    times = {name: _text(value) for name, value in shown.items() if name.endswith("_at")}
    error = _problem(row.error).details(f"{PATH}/{row.id}", "") if row.error else None
    return Job.model_validate({**shown, **times, "error": error})


def _text(time: datetime | None) -> str | None:
    return None if time is None else time.isoformat()


def _problem(error: dict[str, Any]) -> Problem:
    return Problem(
        error["status"],
        error["detail"],
        kind=error.get("kind"),
        errors=[FieldError.model_validate(item) for item in error.get("errors", ())],
    )


__all__ = ["FINISHED", "PATH", "Jobs"]
