"""Jobs in one service: its queue, its worker processes, and the rows that it takes over."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec

from api.housekeeping import HOUR_S, ROUND_S, Housekeeper, tidy
from api.jobs.local_queue import LocalQueue
from api.jobs.queue import Queue
from api.jobs.rows import JobRows
from api.jobs.runner import Runner
from api.lanes import AnswerCache, Lanes, Processes, QuickWork
from api.measurements.calibrations import Calibrations
from api.services import Services
from api.settings import Settings
from api.store import Database, PointReads, migrate
from api.store.tables import new_id


class Workshop:
    """Everything about jobs that one service holds for all requests."""

    def __init__(self, services: Services) -> None:
        settings = services.settings
        self.rows = JobRows(services.database, settings, new_id())
        processes = Processes(max(settings.lane_jobs, 1), preload="api.plans.warm")
        self.runner = Runner(services, self.rows, processes)
        self.queue = queue_of(settings, self.runner)

    def start(self) -> None:
        """Begin to do jobs, those left over from before first."""
        self.queue.start()

    def stop(self) -> None:
        """Give jobs in progress back, and end."""
        self.queue.stop()

    def keep(self) -> None:
        """Give a sign of life, take over from the dead, and forget what is over."""
        if self.runner.running:
            self.rows.heard()
        for ident in self.rows.recover():
            self.queue.put(ident)
        self.rows.expire()


def queue_of(settings: Settings, runner: Runner) -> Queue:
    """Return procrastinate's queue on Postgres, and elsewhere one that looks at the rows.

    So it is on Postgres too where procrastinate is not installed.
    """
    if settings.sqlite_file is not None or find_spec("procrastinate") is None:
        return LocalQueue(runner, settings.lane_jobs)
    from api.jobs.postgres_queue import PostgresQueue

    return PostgresQueue(settings, runner)


@contextmanager
def open_services(settings: Settings) -> Iterator[tuple[Services, Workshop]]:
    """Open a store at the right revision, with its calibrations, lanes and jobs, for the block."""
    if settings.migrates:
        migrate.upgrade(settings)
    else:
        migrate.require(settings)
    database = Database(settings)
    processes = Processes(settings.lane_long, preload="api.plans.warm")
    calibrations = Calibrations(database, settings, processes)
    lanes = Lanes(settings)
    points = PointReads(settings, database)
    answers = AnswerCache(settings.answer_cache_bytes)
    services = Services(
        settings, database, points, calibrations, lanes, processes, answers, QuickWork()
    )
    workshop = Workshop(services)
    housekeeper = Housekeeper(
        (ROUND_S, workshop.keep), (HOUR_S, lambda: tidy(database, settings.changes_days))
    )
    try:
        calibrations.start()
        workshop.start()
        housekeeper.start()
        yield services, workshop
    finally:
        housekeeper.stop()
        workshop.stop()
        calibrations.stop()
        lanes.shutdown()
        points.close()
        database.close()
