"""Long work in processes of its own: it cannot hold the service's lock, nor keep its memory.

One process does one piece of work and ends. It is forked from a server that has the planner loaded,
which takes some ten milliseconds; it gives way to the service, and ends when the service does.
"""

from __future__ import annotations

import multiprocessing
import os
import threading
from collections.abc import Callable
from multiprocessing.connection import Connection, wait
from multiprocessing.context import ForkServerContext
from typing import ParamSpec, TypeVar

from api.web.problem import Problem

P = ParamSpec("P")
T = TypeVar("T")

NICE = 10
"""How much long work gives way to the answers of the service."""


class WorkEnded(Problem):
    """A worker process ended without an answer."""

    def __init__(self) -> None:
        super().__init__(
            503, "the work was ended before it was done; try again", headers={"Retry-After": "1"}
        )


class Processes:
    """A bounded number of worker processes."""

    def __init__(self, most: int, preload: str = "") -> None:
        """Allow `most` at once, forked from a process that has loaded the module `preload`."""
        self.context: ForkServerContext = multiprocessing.get_context("forkserver")
        if preload:
            self.context.set_forkserver_preload([preload])
        self.places = threading.BoundedSemaphore(most)
        self.running: set[int] = set()
        """Process ids of the work in progress."""

    def run(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Return what `work`, a function of a module, returns; it raises what `work` raises.

        Raises WorkEnded where the process was killed.
        """
        with self.places:
            receiver, sender = self.context.Pipe(duplex=False)
            process = self.context.Process(
                target=_work, args=(sender, work, args, kwargs), daemon=True
            )
            process.start()
            sender.close()
            pid = process.pid or 0
            self.running.add(pid)
            try:
                failed, result = receiver.recv()
            except EOFError:
                raise WorkEnded from None
            finally:
                receiver.close()
                process.kill()
                process.join()
                self.running.discard(pid)
                process.close()
        if failed:
            raise result
        answer: T = result
        return answer


def _work(
    sender: Connection,
    work: Callable[..., object],
    args: tuple[object, ...],
    kwargs: dict[str, object],
) -> None:
    threading.Thread(target=_end_with_parent, daemon=True).start()
    os.nice(NICE)
    try:
        answer: tuple[bool, object] = (False, work(*args, **kwargs))
    except Exception as error:  # noqa: BLE001 - whatever it is, the caller gets it
        answer = (True, error)
    sender.send(answer)
    sender.close()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(1)
