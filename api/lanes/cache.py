"""Answers that were given before: equal questions under equal data have equal answers."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Hashable


class AnswerCache:
    """Answers by what they depend on, within a number of bytes; the longest unused goes first."""

    def __init__(self, most_bytes: int) -> None:
        self.most_bytes = most_bytes
        self.bytes = 0
        self.hits = 0
        self.misses = 0
        self._answers: OrderedDict[Hashable, bytes] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: Hashable) -> bytes | None:
        """Return the answer of a key."""
        with self._lock:
            answer = self._answers.get(key)
            if answer is None:
                self.misses += 1
                return None
            self.hits += 1
            self._answers.move_to_end(key)
            return answer

    def put(self, key: Hashable, answer: bytes) -> None:
        """Keep an answer, unless it alone would take a tenth of the space."""
        if len(answer) > self.most_bytes // 10:
            return
        with self._lock:
            self.bytes += len(answer) - len(self._answers.pop(key, b""))
            self._answers[key] = answer
            while self.bytes > self.most_bytes:
                self.bytes -= len(self._answers.popitem(last=False)[1])

    def __len__(self) -> int:
        """Answers held."""
        return len(self._answers)
