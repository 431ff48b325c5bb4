"""A bar on a terminal while work takes longer than a second."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

AFTER_S = 1.0
"""Time before a bar is shown [s]."""


class Bar:
    """A bar with the time passed, and with the part that is done once work reports it."""

    def __init__(self, text: str) -> None:
        """Take what is being done, in a few words."""
        self.text = text
        self._lock = threading.Lock()
        self._shown: tuple[Progress, TaskID] | None = None
        self._state: tuple[int, int] = (0, 0)
        self._over = False

    def __call__(self, done: int, total: int) -> None:
        """Take the parts that are done, and how many there are; 0 where that is not known."""
        with self._lock:
            self._state = (done, total)
            self._update()

    def start(self) -> None:
        """Show the bar, unless what it waited for is over."""
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

        with self._lock:
            if self._over:
                return
            columns = (TextColumn("{task.description}"), BarColumn(30), TimeElapsedColumn())
            progress = Progress(*columns, console=Console(stderr=True), transient=True)
            self._shown = progress, progress.add_task(self.text, total=None)
            self._update()
            progress.start()

    def stop(self) -> None:
        """Take the bar away, so that the answer stands alone."""
        with self._lock:
            self._over = True
            if self._shown is not None:
                self._shown[0].stop()

    def _update(self) -> None:
        if self._shown is not None:
            progress, task = self._shown
            done, total = self._state
            progress.update(task, completed=done, total=total or None)


@contextmanager
def busy(text: str, after_s: float = AFTER_S) -> Iterator[Bar]:
    """Show a bar on stderr, where that is a terminal, while the block takes longer than a second.

    Args:
        text: What is being done.
        after_s: Time before the bar is shown [s].

    Yields:
        What takes the parts that are done; planning and fitting inside the block report theirs.
    """
    from planner.plans.progress import reporting

    bar = Bar(text)
    if not sys.stderr.isatty():
        yield bar
        return
    timer = threading.Timer(after_s, bar.start)
    timer.daemon = True
    timer.start()
    try:
        with reporting(bar):
            yield bar
    finally:
        timer.cancel()
        bar.stop()
        timer.join()
