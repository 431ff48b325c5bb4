"""A trace or a day's shape as windows of equal length: how many requests, of which lengths.

Only sums are kept, by window and class of length, so that memory does not grow with the requests.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from planner.errors import InvalidInput
from planner.roofline import Array
from planner.workload.lengths import Lengths
from planner.workload.traces import Event

MOST_WINDOWS = 100_000
"""Windows of a trace at most [-]."""


class InvalidWindows(InvalidInput):
    """A trace that is empty, runs backwards or is too long."""


@dataclass(frozen=True, slots=True, eq=False)
class Windows:
    """Requests by window and class; arrays of shape (window, class)."""

    seconds: float
    """Length of a window [s]."""
    count: Array
    isl: Array
    """Sum of input tokens [token]."""
    isl_square: Array
    osl: Array
    osl_square: Array

    @property
    def requests_per_s(self) -> Array:
        """Requests per second, (window, class) [1/s]."""
        return np.asarray(self.count / self.seconds)

    def lengths(self, window: int, group: int) -> tuple[Lengths, Lengths]:
        """Return input and output lengths of a window's class by their moments."""
        n = max(float(self.count[window, group]), 1e-12)
        sums = (self.isl, self.isl_square, self.osl, self.osl_square)
        isl, isl2, osl, osl2 = (float(each[window, group]) / n for each in sums)
        return Lengths(isl, max(isl2, isl * isl)), Lengths(osl, max(osl2, osl * osl))

    def times(self, factor: float) -> Windows:
        """Return the same with so many times the requests."""
        sums = (self.count, self.isl, self.isl_square, self.osl, self.osl_square)
        return Windows(self.seconds, *(np.asarray(each * factor) for each in sums))


def gather(events: Iterable[Event], seconds: float, limits: Sequence[float] = ()) -> Windows:
    """Return the windows of requests, those with inputs up to each limit [token] by themselves.

    Windows start with the first request. Raises InvalidWindows.
    """
    classes = len(limits) + 1
    rows: list[list[float]] = []
    start: float | None = None
    for event in events:
        if start is None:
            start = event.at_s
        for at_s, count in _spread(event, seconds):
            window = int((at_s - start) // seconds)
            if window < 0:
                raise InvalidWindows(
                    f"trace: a request at {event.at_s:g} s comes after ones a window later; "
                    f"accepted: ascending times"
                )
            if window >= MOST_WINDOWS:
                raise InvalidWindows(
                    f"trace: more than {MOST_WINDOWS} windows of {seconds:g} s; accepted: fewer, "
                    f"or a longer window"
                )
            while len(rows) <= window:
                rows.append([0.0] * (5 * classes))
            group = sum(event.isl > limit for limit in limits)
            row, at = rows[window], 5 * group
            isl, osl = max(event.isl, 1.0), max(event.osl, 1.0)
            row[at] += count
            row[at + 1] += count * isl
            row[at + 2] += count * isl * isl
            row[at + 3] += count * osl
            row[at + 4] += count * osl * osl
    if not rows:
        raise InvalidWindows("trace: it has no requests; accepted: one or more")
    table = np.array(rows).reshape(len(rows), classes, 5)
    return Windows(seconds, *(table[:, :, i] for i in range(5)))


def _spread(event: Event, seconds: float) -> Iterable[tuple[float, float]]:
    """Return what an event puts into windows: one request, or a share of many in each."""
    if not event.over_s:
        return ((event.at_s, event.count),)
    pieces = max(1, round(event.over_s / seconds))
    width = event.over_s / pieces
    return tuple((event.at_s + (i + 0.5) * width, event.count / pieces) for i in range(pieces))
