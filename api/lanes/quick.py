"""Work that is quick: the event loop does it itself, sooner than a thread would be woken for it."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import TypeVar

T = TypeVar("T")

QUICK_S = 5e-3
"""Processor time up to which work is quick: Python lets a thread run so long before it gives way to
another (`sys.getswitchinterval`), so that shorter work holds the event loop up no less from a
thread [s]."""
MOST = 1024
"""Kinds of work whose time is remembered [-]."""


class QuickWork:
    """Remembers how long the last piece of work of each kind took."""

    def __init__(self) -> None:
        self._seconds: OrderedDict[Hashable, float] = OrderedDict()
        self._lock = threading.Lock()

    def is_quick(self, kind: Hashable) -> bool:
        """Return whether the last piece of this kind took less than `QUICK_S`."""
        return self._seconds.get(kind, QUICK_S) < QUICK_S

    def timed(self, kind: Hashable, work: Callable[[], T]) -> T:
        """Return what `work` returns, and remember its time, or twice the last where that is less.

        It is processor time: waiting for others, which a loaded machine has much of, is no reason
        for a thread.
        """
        began = time.thread_time()
        result = work()
        seconds = time.thread_time() - began
        with self._lock:
            # One slow piece among quick ones is the machine's doing.
            self._seconds[kind] = min(seconds, 2 * self._seconds.get(kind, seconds))
            if len(self._seconds) > MOST:
                self._seconds.popitem(last=False)
        return result
