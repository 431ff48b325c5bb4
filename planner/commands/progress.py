"""A bar on a terminal while an answer takes longer than a second."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import Progress

AFTER_S = 1.0
"""Time before a bar is shown [s]."""


class Bar:
    """A bar that moves, with the time passed; how much there is to do is not known ahead."""

    def __init__(self, text: str) -> None:
        """Take what is being done, in a few words."""
        self.text = text
        self._lock = threading.Lock()
        self._shown: Progress | None = None
        self._over = False

    def start(self) -> None:
        """Show the bar, unless what it waited for is over."""
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

        with self._lock:
            if self._over:
                return
            columns = (TextColumn("{task.description}"), BarColumn(30), TimeElapsedColumn())
            shown = Progress(*columns, console=Console(stderr=True), transient=True)
            shown.add_task(self.text, total=None)
            shown.start()
            self._shown = shown

    def stop(self) -> None:
        """Take the bar away, so that the answer stands alone."""
        with self._lock:
            self._over = True
            if self._shown is not None:
                self._shown.stop()


@contextmanager
def busy(text: str, after_s: float = AFTER_S) -> Iterator[None]:
    """Show a bar on stderr, where that is a terminal, while the block takes longer than a second.

    Args:
        text: What is being done.
        after_s: Time before the bar is shown [s].
    """
    if not sys.stderr.isatty():
        yield
        return
    bar = Bar(text)
    timer = threading.Timer(after_s, bar.start)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        bar.stop()
        timer.join()
