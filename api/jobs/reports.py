"""What work in a process sends to its service: progress, and pieces of a result."""

from __future__ import annotations

import time
from dataclasses import dataclass

from api.lanes.processes import Send

PIECE_BYTES = 1 << 20
"""Size of a piece of a result [byte]."""
SELDOM_S = 0.2
"""Least time between two reports of progress [s]."""


@dataclass(frozen=True, slots=True)
class Progress:
    """Parts of the present stage that are done, and how many there are."""

    done: int
    total: int


class Reporter:
    """Sends progress, and no more of it than anybody reads; the last part of a stage always."""

    def __init__(self, send: Send) -> None:
        self.send = send
        self.next_s = 0.0

    def __call__(self, done: int, total: int) -> None:
        """Take the parts that are done, and how many there are."""
        time_s = time.monotonic()
        if time_s >= self.next_s or done == total:
            self.next_s = time_s + SELDOM_S
            self.send(Progress(done, total))


def send_result(send: Send, body: bytes) -> None:
    """Send a whole result, piece by piece."""
    for start in range(0, len(body), PIECE_BYTES):
        send(body[start : start + PIECE_BYTES])
