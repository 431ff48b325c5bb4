"""Long work in processes of its own: it cannot hold the service's lock, nor keep its memory.

One process does one piece of work and ends. It is forked from a server that has the planner loaded,
which takes some ten milliseconds; it gives way to the service, and ends when the service does.
"""

from __future__ import annotations

import multiprocessing
import os
import threading
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection, wait
from multiprocessing.context import ForkServerContext
from typing import Any, Concatenate, ParamSpec, TypeVar

from api.web.problem import Problem

P = ParamSpec("P")
T = TypeVar("T")
Send = Callable[[object], None]
"""Hands something of work in progress to whoever waits for it."""

PATIENCE_S = 5.0
"""Time a process may take to end once it has answered [s]."""

SILENCE_S = 0.5
"""Time after which whoever waits for work is told that nothing came [s]."""

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
        with self._started(work, args, kwargs, sends=False) as receiver:
            answer: T = _received(receiver)[1]
            return answer

    def stream(
        self, work: Callable[Concatenate[Send, P], object], *args: P.args, **kwargs: P.kwargs
    ) -> Generator[object, None, None]:
        """Yield what `work` sends with its first argument; None where nothing came for a while.

        It raises what `work` raises, and WorkEnded where the process was killed. Closing the
        iterator kills the process.
        """
        with self._started(work, args, kwargs, sends=True) as receiver:
            while True:
                if not receiver.poll(SILENCE_S):
                    yield None
                    continue
                ended, item = _received(receiver)
                if ended:
                    return
                yield item

    @contextmanager
    def _started(
        self,
        work: Callable[..., object],
        args: tuple[object, ...],
        kwargs: dict[str, object],
        *,
        sends: bool,
    ) -> Iterator[Connection]:
        """Run work in a process; one that has not ended by the end of the block is killed."""
        with self.places:
            receiver, sender = self.context.Pipe(duplex=False)
            process = self.context.Process(
                target=_work, args=(sender, work, args, kwargs, sends), daemon=True
            )
            process.start()
            sender.close()
            pid = process.pid or 0
            self.running.add(pid)
            patience_s = 0.0
            try:
                yield receiver
                patience_s = PATIENCE_S
            finally:
                receiver.close()
                process.join(patience_s)
                if process.is_alive():
                    process.kill()
                    process.join()
                self.running.discard(pid)
                process.close()


def _received(receiver: Connection) -> tuple[bool, Any]:
    """Return whether work has ended, and what it sent or returned; raises what it raised."""
    try:
        kind, item = receiver.recv()
    except (EOFError, ConnectionResetError):
        raise WorkEnded from None
    if kind == "raised":
        raise item
    return kind == "ended", item


def _work(
    sender: Connection,
    work: Callable[..., object],
    args: tuple[object, ...],
    kwargs: dict[str, object],
    sends: bool,
) -> None:
    threading.Thread(target=_end_with_parent, daemon=True).start()
    os.nice(NICE)
    first: tuple[object, ...] = (lambda item: sender.send(("sent", item)),) if sends else ()
    try:
        last: tuple[str, object] = ("ended", work(*first, *args, **kwargs))
    except Exception as error:  # noqa: BLE001 - whatever it is, the caller gets it
        last = ("raised", error)
    sender.send(last)
    sender.close()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(1)
