"""What a service does with time: one thread, and what it deletes because it does not count."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta

from sqlalchemy import delete
from sqlalchemy.exc import SQLAlchemyError

from api.store import Database
from api.store.tables import ChangeRow, IdempotencyRow, ImportedRow, now

ROUND_S = 5.0
"""Time between two looks at what is due [s]."""
HOUR_S = 3600.0

Task = tuple[float, Callable[[], object]]
"""Something to do, and the time between two times [s]."""


class Housekeeper:
    """A thread that does all that is due, one after the other, everything at the start."""

    def __init__(self, *tasks: Task) -> None:
        self._tasks = tasks
        self._due = [0.0] * len(tasks)
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._run, name="housekeeper", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """End, once what is being done is done."""
        self._end.set()
        if self._thread.is_alive():
            self._thread.join()

    def round(self, at_s: float) -> None:
        """Do what is due; where the store does not answer, it is due again the next round."""
        for number, (every_s, task) in enumerate(self._tasks):
            if at_s < self._due[number]:
                continue
            with suppress(SQLAlchemyError, OSError):
                task()
                self._due[number] = at_s + every_s

    def _run(self) -> None:
        while True:
            self.round(time.monotonic())
            if self._end.wait(ROUND_S):
                return


def tidy(database: Database, changes_days: int) -> None:
    """Delete answers to Idempotency-Keys, what imports came to, and the oldest of the audit trail.

    An import is resumed as long as a request is repeated.
    """
    old = now() - database.idempotency
    with database.writing() as session:
        session.execute(delete(IdempotencyRow).where(IdempotencyRow.created_at < old))
        session.execute(delete(ImportedRow).where(ImportedRow.created_at < old))
        changes = ChangeRow.changed_at < now() - timedelta(days=changes_days)
        session.execute(delete(ChangeRow).where(changes))
