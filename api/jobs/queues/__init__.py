"""Who does which job: on Postgres the queue of procrastinate, on SQLite a few local workers."""

from __future__ import annotations

from importlib.util import find_spec

from api.jobs.queues.local import LocalQueue
from api.jobs.queues.queue import Queue
from api.jobs.runner import Runner
from api.settings import Settings

__all__ = ["Queue", "queue_of"]


def queue_of(settings: Settings, runner: Runner) -> Queue:
    """Return the queue of a store; on Postgres without procrastinate its rows are looked at."""
    if settings.sqlite_file is not None or find_spec("procrastinate") is None:
        return LocalQueue(runner, settings.lane_jobs)
    from api.jobs.queues.postgres import PostgresQueue

    return PostgresQueue(settings, runner)
