"""Routes of jobs."""

from __future__ import annotations

from typing import Annotated

from litestar import Controller, Response, delete, get, post
from litestar.di import NamedDependency
from litestar.params import FromPath, JSONBody, QueryParameter
from litestar.response import Stream

from api.jobs.kinds import LINES
from api.jobs.schemas import Job, JobPage, JobRequest, State
from api.jobs.service import PATH, Jobs
from api.lanes import streamed
from api.web.accept import CSV, JSON, PARQUET
from api.web.idempotency import Once
from api.web.parameters import Cursor, IdempotencyKey, Limit

Service = NamedDependency[Jobs]


class JobController(Controller):
    """Jobs."""

    path = PATH
    tags = ["jobs"]  # noqa: RUF012 - the framework's own protocol

    @post(operation_id="createJob", sync_to_thread=True, status_code=202)
    def create(
        self,
        data: JSONBody[JobRequest],
        jobs: Service,
        raw: NamedDependency[bytes],
        idempotency_key: IdempotencyKey = None,
    ) -> Response[Job]:
        """Have long work done; its Location says how far it is."""
        once = Once.of(jobs.workspace, idempotency_key, PATH, raw)
        return jobs.create(data.root, once).response()

    @get(operation_id="listJobs", sync_to_thread=True)
    def page(
        self,
        jobs: Service,
        in_state: Annotated[State | None, QueryParameter(name="state")] = None,
        limit: Limit = 50,
        cursor: Cursor = None,
    ) -> JobPage:
        """List jobs, oldest first."""
        return jobs.page(in_state, cursor, limit)

    @get("/{job_id:str}", operation_id="getJob", sync_to_thread=True)
    def read(self, job_id: FromPath[str], jobs: Service) -> Job:
        """Say how far a job is."""
        return jobs.get(job_id)

    @post(
        "/{job_id:str}/cancel",
        operation_id="cancelJob",
        sync_to_thread=True,
        status_code=200,
        opt={"bodiless": True},
    )
    def cancel(self, job_id: FromPath[str], jobs: Service) -> Job:
        """Cancel a job; one that has ended stays as it is."""
        return jobs.cancel(job_id)

    @delete("/{job_id:str}", operation_id="deleteJob", sync_to_thread=True)
    def remove(self, job_id: FromPath[str], jobs: Service) -> None:
        """Forget a job with its result; one that waits or runs is cancelled too."""
        jobs.delete(job_id)

    @get(
        "/{job_id:str}/result",
        operation_id="getJobResult",
        sync_to_thread=True,
        opt={"any_media": True, "streams": (JSON, CSV, PARQUET, LINES)},
    )
    def result(self, job_id: FromPath[str], jobs: Service) -> Stream:
        """Read the result of a job that is done, in the job's media type."""
        job, pieces = jobs.result(job_id)
        headers = {"content-type": job.media_type, "content-length": str(job.result_bytes)}
        return Stream(streamed(jobs.services.lanes["store"], pieces), headers=headers)
