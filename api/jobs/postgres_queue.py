"""Jobs on Postgres: procrastinate's queue, from which workers on any machine take them."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from typing import Any

import procrastinate
import structlog
from procrastinate.exceptions import AlreadyEnqueued, ConnectorException
from psycopg import Error

from api.jobs.runner import Runner
from api.settings import Settings
from api.store import queue_schema

log = structlog.get_logger("api.jobs")

TASK = "planner.job"
PATIENCE_S = 5.0
"""Time a job may take to give itself back when the service stops [s]."""
AGAIN_S = 2.0
"""Time after which a worker that lost its connection begins anew [s]."""


class PostgresQueue:
    """Puts ids into procrastinate's queue, and does the jobs that it hands out."""

    def __init__(self, settings: Settings, runner: Runner) -> None:
        self.settings = settings
        self.runner = runner
        self._putting: procrastinate.App | None = None
        self._lock = threading.Lock()
        self._worker = threading.Thread(target=self._work, name="jobs", daemon=True)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Make the queue where a store has none yet, and begin to do jobs."""
        queue_schema.prepare(self.settings)
        if self.settings.lane_jobs:
            self._worker.start()

    def put(self, ident: str) -> None:
        """Put a job into the queue, unless it waits there already."""
        try:
            with contextlib.suppress(AlreadyEnqueued):
                self._app().configure_task(TASK, queueing_lock=ident).defer(ident=ident)
        except (ConnectorException, Error):
            # Its row is stored: housekeeping puts it again once the store is back.
            log.warning("job", job=ident, error="not put into the queue yet")

    def stop(self) -> None:
        """Let jobs in progress give themselves back, and close all connections."""
        self.runner.stopping.set()
        if self._loop is not None and self._task is not None:
            with contextlib.suppress(RuntimeError):  # it has ended by itself
                self._loop.call_soon_threadsafe(self._task.cancel)
        if self._worker.is_alive():
            self._worker.join(PATIENCE_S)
        if self._putting is not None:
            self._putting.close()

    def _app(self) -> procrastinate.App:
        with self._lock:
            if self._putting is None:
                connector = procrastinate.SyncPsycopgConnector(**self._connections(1))
                app = procrastinate.App(connector=connector)
                app.open()
                self._putting = app
            return self._putting

    def _connections(self, most: int) -> dict[str, Any]:
        """Return what a pool of connections to the queue takes."""
        return {
            "conninfo": self.settings.url.replace("postgresql+psycopg://", "postgresql://", 1),
            "kwargs": {"options": f"-c search_path={queue_schema.NAME}"},
            "min_size": 1,
            "max_size": most,
            "timeout": 5,
        }

    def _work(self) -> None:
        while not self.runner.stopping.is_set():
            try:
                asyncio.run(self._take())
            except asyncio.CancelledError:
                return
            except (ConnectorException, Error) as error:
                log.warning("jobs", error=type(error).__name__)
            self.runner.stopping.wait(AGAIN_S)

    async def _take(self) -> None:
        connector = procrastinate.PsycopgConnector(**self._connections(self.settings.lane_jobs + 2))
        app = procrastinate.App(connector=connector)
        app.task(name=TASK, pass_context=False)(self._run)
        self._loop, self._task = asyncio.get_running_loop(), asyncio.current_task()
        async with app.open_async():
            await app.run_worker_async(
                concurrency=self.settings.lane_jobs,
                install_signal_handlers=False,
                delete_jobs="always",
                shutdown_graceful_timeout=PATIENCE_S,
            )

    def _run(self, ident: str) -> None:
        self.runner.run(ident)
