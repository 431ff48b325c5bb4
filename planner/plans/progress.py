"""How far long work is: it reports to whoever waits, and need not know who that is."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

T = TypeVar("T")
Report = Callable[[int, int], None]
"""Takes the parts of the work that are done, and how many there are."""

_REPORT: ContextVar[Report | None] = ContextVar("planner_progress", default=None)


@contextmanager
def reporting(report: Report) -> Iterator[None]:
    """Call `report` whenever work inside the block has done a part."""
    token = _REPORT.set(report)
    try:
        yield
    finally:
        _REPORT.reset(token)


def tracked(items: Iterable[T], total: int) -> Iterator[T]:
    """Yield items, of which there are `total`, and report each once the next one is wanted.

    Work in several stages counts each from its start.
    """
    report = _REPORT.get()
    if report is None:
        yield from items
        return
    report(0, total)
    for done, item in enumerate(items, 1):
        yield item
        report(done, total)
