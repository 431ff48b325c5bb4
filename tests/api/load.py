"""Clients that load a started service, and what they see."""

from __future__ import annotations

import statistics
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

from tests.api.server import Server

Send = Callable[[httpx.Client], httpx.Response]


class Seen:
    """Statuses that clients saw; 0 is a connection that failed."""

    def __init__(self) -> None:
        self.statuses: Counter[int] = Counter()
        self._lock = threading.Lock()

    def add(self, status: int) -> None:
        with self._lock:
            self.statuses[status] += 1

    @property
    def failures(self) -> int:
        """Answers of 500 and beyond, the documented 503 excepted, and connections that failed."""
        return sum(n for s, n in self.statuses.items() if s == 0 or (s >= 500 and s != 503))


def work(base: str, send: Send, until: threading.Event, seen: Seen) -> None:
    """Send one request after another until told to stop."""
    with httpx.Client(base_url=base, timeout=60) as client:
        while not until.is_set():
            try:
                status = send(client).status_code
            except httpx.TransportError:
                status = 0
            seen.add(status)
            if status in {0, 503}:
                until.wait(0.05)


@contextmanager
def clients(base: str, sends: list[Send]) -> Iterator[Seen]:
    """So many clients at work inside the block."""
    seen, until = Seen(), threading.Event()
    threads = [threading.Thread(target=work, args=(base, send, until, seen)) for send in sends]
    for thread in threads:
        thread.start()
    try:
        yield seen
    finally:
        until.set()
        for thread in threads:
            thread.join()


def times_ms(base: str, send: Send, seconds: float, seen: Seen | None = None) -> list[float]:
    """The time of each request, one after the other with a pause between them [ms]."""
    times, end = [], time.monotonic() + seconds
    with httpx.Client(base_url=base, timeout=60) as client:
        while time.monotonic() < end:
            began = time.perf_counter()
            status = send(client).status_code
            times.append((time.perf_counter() - began) * 1e3)
            if seen is not None:
                seen.add(status)
            time.sleep(0.005)
    return times


def p99(times: list[float]) -> float:
    return statistics.quantiles(times, n=100)[98]


def processes_of(server: Server) -> list[int]:
    """Process ids of a service and of all that it started."""
    pids, frontier = [server.process.pid], [server.process.pid]
    while frontier:
        pid = frontier.pop()
        for task in Path(f"/proc/{pid}/task").glob("*/children"):
            children = [int(each) for each in task.read_text().split()]
            pids += children
            frontier += children
    return pids


def memory_mb(server: Server) -> float:
    """Memory of a service and of all that it started, shared pages counted once [MB].

    The least of ten samples: worker processes come and go, and are no growth.
    """
    samples = []
    for _ in range(10):
        samples.append(sum(map(_share_kb, processes_of(server))) / 1e3)
        time.sleep(0.3)
    return min(samples)


def _share_kb(pid: int) -> int:
    """A process's share of the memory it uses, 0 once it has ended [kB]."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return sum(int(line.split()[1]) for line in lines if line.startswith("Pss:"))


def descriptors(server: Server) -> int:
    """Open files of a service and of all that it started."""
    total = 0
    for pid in processes_of(server):
        try:
            total += len(list(Path(f"/proc/{pid}/fd").iterdir()))
        except OSError:
            continue
    return total


def post(path: str, body: Any, **query: Any) -> Send:
    return lambda client: client.post(path, json=body, params=query)


def get(path: str, **query: Any) -> Send:
    return lambda client: client.get(path, params=query)
