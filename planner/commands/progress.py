"""A bar that shows how far long work is."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

PATIENCE_S = 0.5
"""Time that work takes before a bar is shown [s]."""


@contextmanager
def progress_bar(text: str) -> Iterator[Bar]:
    """Show a bar for work inside the block that takes long.

    It goes to standard error, and only where that is a terminal: what is printed stays as it is.
    """
    from planner.plans.progress import reporting

    with ExitStack() as stack:
        bar = Bar(text, stack)
        if sys.stderr.isatty():
            stack.enter_context(reporting(bar))
        yield bar


class Bar:
    """A bar, drawn once the work has taken a while."""

    def __init__(self, text: str, stack: ExitStack) -> None:
        self.text = text
        self._stack = stack
        self._began_s = time.monotonic()
        self._drawn: tuple[Progress, TaskID] | None = None

    def __call__(self, done: int, total: int) -> None:
        """Take the parts that are done, and how many there are; 0 where that is not known."""
        if self._drawn is None:
            waited_s = time.monotonic() - self._began_s
            if waited_s < PATIENCE_S or not sys.stderr.isatty() or done >= total > 0:
                return
            self._drawn = self._draw()
        progress, task = self._drawn
        progress.update(task, completed=done, total=total or None)

    def _draw(self) -> tuple[Progress, TaskID]:
        from rich.console import Console
        from rich.progress import Progress

        progress = Progress(console=Console(stderr=True), transient=True)
        self._stack.enter_context(progress)
        return progress, progress.add_task(self.text, total=None)
