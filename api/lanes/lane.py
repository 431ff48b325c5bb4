"""Lanes of threads: each has its own places and a bounded queue in front of them."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from typing import Any, TypeVar

from api.settings import Settings
from api.web.context import LANE
from api.web.problem import Problem

T = TypeVar("T")


class LaneFull(Problem):
    """Every place of a lane is taken, and every place in its queue."""

    def __init__(self, lane: str) -> None:
        super().__init__(
            503,
            f"the service is busy: its {lane} lane is full; try again",
            kind="busy",
            headers={"Retry-After": "1"},
        )


class Lane(Executor):
    """A few threads and a bounded queue; it refuses at once what it cannot hold."""

    def __init__(self, name: str, size: int, waiting: int) -> None:
        self.name = name
        self.size = size
        """Threads."""
        self.most = size + waiting
        """Pieces of work that are running or waiting, at most."""
        self.inside = 0
        self.refused = 0
        self.begun = 0
        """Pieces of work that got a place."""
        self.waited_s = 0.0
        """Time they waited for it, all together [s]."""
        self._lock = threading.Lock()
        self._pool = ThreadPoolExecutor(size, thread_name_prefix=f"lane-{name}")

    def submit(self, fn: Callable[..., T], /, *args: Any, **kwargs: Any) -> Future[T]:
        """Queue work; raises LaneFull."""
        return self._enter(self.most, fn, args, kwargs)

    def go_on(self, fn: Callable[..., T], /, *args: Any) -> Future[T]:
        """Queue more work of a request that was let in before, full or not."""
        return self._enter(None, fn, args, {})

    def probe(self) -> Future[None]:
        """Queue nothing, full or not: it is done when the lane gets round to it."""
        return self._enter(None, lambda: None, (), {})

    def _enter(self, most: int | None, work: Callable[..., T], args: Any, kwargs: Any) -> Future[T]:
        with self._lock:
            if most is not None and self.inside >= most:
                self.refused += 1
                raise LaneFull(self.name)
            self.inside += 1
        try:
            future = self._pool.submit(self._begin, time.monotonic(), work, args, kwargs)
        except RuntimeError:  # the service is ending
            self._leave(None)
            raise LaneFull(self.name) from None
        future.add_done_callback(self._leave)
        return future

    def _begin(self, since: float, work: Callable[..., T], args: Any, kwargs: Any) -> T:
        with self._lock:
            self.begun += 1
            self.waited_s += time.monotonic() - since
        return work(*args, **kwargs)

    def _leave(self, _future: Future[Any] | None) -> None:
        with self._lock:
            self.inside -= 1

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """End the threads."""
        self._pool.shutdown(wait, cancel_futures=cancel_futures)


class Lanes(ThreadPoolExecutor):
    """All lanes as the default executor of the event loop: LANE says which one work goes to.

    The event loop takes no other class of executor as its default; the threads of this one itself
    are never started.
    """

    def __init__(self, settings: Settings) -> None:
        super().__init__(1)
        sizes = {
            "compute": settings.lane_compute,
            "store": settings.lane_store,
            "long": settings.lane_long,
            "refit": REFITS_AT_ONCE * settings.lane_long,
            "keys": settings.lane_store,
            "probe": 1,
        }
        self.lanes = {
            name: Lane(name, size, size * settings.lane_waiting) for name, size in sizes.items()
        }

    def __getitem__(self, name: str) -> Lane:
        """Return a lane."""
        return self.lanes[name]

    def submit(self, fn: Callable[..., T], /, *args: Any, **kwargs: Any) -> Future[T]:
        """Queue work of a request in its lane; raises LaneFull."""
        return self.lanes[LANE.get()].submit(fn, *args, **kwargs)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """End the threads of all lanes."""
        for lane in self.lanes.values():
            lane.shutdown(wait, cancel_futures=cancel_futures)
        super().shutdown(wait, cancel_futures=cancel_futures)


REFITS_AT_ONCE = 8
"""Refits for each worker process: most of them wait for the fit of another [-]."""
