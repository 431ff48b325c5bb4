"""Jobs done by a few threads of this service, each with a worker process: the queue on SQLite."""

from __future__ import annotations

import threading

from sqlalchemy.exc import SQLAlchemyError

from api.jobs.runner import Runner

LOOK_S = 2.0
"""Time after which jobs that another process made are seen [s]."""
PATIENCE_S = 5.0
"""Time a job may take to give itself back when the service stops [s]."""


class LocalQueue:
    """Takes the oldest job that waits in the store, whichever service was asked for it."""

    def __init__(self, runner: Runner, workers: int) -> None:
        self.runner = runner
        self._news = threading.Semaphore(0)
        self._threads = [
            threading.Thread(target=self._work, name=f"jobs-{number}", daemon=True)
            for number in range(workers)
        ]

    def start(self) -> None:
        """Begin to do jobs."""
        for thread in self._threads:
            thread.start()

    def put(self, ident: str) -> None:  # noqa: ARG002 - the row says it all
        """Wake a worker."""
        self._news.release()

    def stop(self) -> None:
        """Let jobs in progress give themselves back."""
        self.runner.stopping.set()
        for _ in self._threads:
            self._news.release()
        for thread in self._threads:
            if thread.is_alive():
                thread.join(PATIENCE_S)

    def _work(self) -> None:
        while not self.runner.stopping.is_set():
            try:
                waiting = self.runner.rows.queued()
            except (SQLAlchemyError, OSError):  # until the store is back
                waiting = []
            if not (waiting and self.runner.run(waiting[0])):
                self._news.acquire(timeout=LOOK_S)
