"""What the service wants of a queue."""

from __future__ import annotations

from typing import Protocol


class Queue(Protocol):
    """Has each job done by one of the workers of the services that share a store.

    The rows of the jobs are the truth, and a queue only knows ids: one that it lost is put again,
    and one that it has twice is done once.
    """

    def start(self) -> None:
        """Begin to do jobs, where this service does any."""

    def put(self, ident: str) -> None:
        """Have a job done that waits."""

    def stop(self) -> None:
        """Do no more jobs; those in progress are given back."""
