"""Access logs: the rate of requests, and lengths and times where lines state them.

Lines are JSON objects, or in the common log format with a time in brackets.
"""

from __future__ import annotations

import json
import math
import re
import statistics
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from planner.handover.refusal import Unreadable

MOST_LINES = 1_000_000
_COMMON = re.compile(r'\[([^\]]+)\]\s+"(?:POST|GET) (\S+)[^"]*"\s+(\d{3})')
_TIME = "%d/%b/%Y:%H:%M:%S %z"
PATHS = ("/v1/completions", "/v1/chat/completions", "/completion", "/generate", "/v1/responses")
NAMES: Mapping[str, tuple[str, ...]] = {
    "time": ("time", "ts", "timestamp", "@timestamp"),
    "isl": ("prompt_tokens", "input_tokens", "isl"),
    "osl": ("completion_tokens", "output_tokens", "generation_tokens", "osl"),
    "ttft_ms": ("ttft_ms",),
    "tpot_ms": ("tpot_ms",),
}
"""Keys of JSON lines by what they say."""


@dataclass(slots=True)
class AccessLog:
    """What a log says of the requests that succeeded."""

    requests: int = 0
    times_s: list[float] = field(default_factory=list)
    values: dict[str, list[float]] = field(default_factory=dict)

    @property
    def seconds(self) -> float | None:
        """Time from the first to the last request [s]."""
        if len(self.times_s) < 2:
            return None
        return max(self.times_s) - min(self.times_s) or None

    def mean(self, name: str) -> float | None:
        """Return the mean of a value, None where no line states it."""
        values = self.values.get(name)
        return statistics.fmean(values) if values else None

    def spread(self, name: str) -> float | None:
        """Return the coefficient of variation of a value [-]."""
        values, mean = self.values.get(name, []), self.mean(name)
        return statistics.pstdev(values) / mean if mean and len(values) > 1 else None


def access_log(lines: Iterable[str], origin: str) -> AccessLog:
    """Return what a log says. Raises Unreadable where no line is a request's."""
    log = AccessLog()
    for number, line in enumerate(lines, 1):
        if number > MOST_LINES:
            raise Unreadable(f"{origin}: more than {MOST_LINES} lines")
        if line.lstrip().startswith("{"):
            _json_line(log, line)
        elif (match := _COMMON.search(line)) and match[2].partition("?")[0] in PATHS:
            _request(log, match[3], match[1])
    if not log.requests:
        raise Unreadable(f"{origin}: no request in it; accepted: JSON lines, common log format")
    return log


def _json_line(log: AccessLog, line: str) -> None:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError):
        return
    if not isinstance(row, dict):
        return
    path = str(row.get("path") or row.get("uri") or PATHS[0]).partition("?")[0]
    if path not in PATHS:
        return
    values = {name: _first(row, keys) for name, keys in NAMES.items()}
    if _request(log, str(row.get("status", 200)), values.pop("time")):
        for name, value in values.items():
            figure = _figure(value)
            if figure is not None and figure > 0:
                log.values.setdefault(name, []).append(figure)


def _first(row: Mapping[str, Any], keys: tuple[str, ...]) -> Any:
    return next((row[key] for key in keys if key in row), None)


def _request(log: AccessLog, status: str, time: Any) -> bool:
    if not status.startswith("2"):
        return False
    log.requests += 1
    seconds = _seconds(time)
    if seconds is not None:
        log.times_s.append(seconds)
    return True


def _figure(value: Any) -> float | None:
    """Return a finite number, None where a value is none."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    try:
        return float(value) if math.isfinite(value) else None
    except OverflowError:
        return None


def _seconds(time: Any) -> float | None:
    if isinstance(time, (int, float)):
        return _figure(time)
    try:
        text = str(time)
        parsed = datetime.strptime(text, _TIME) if "/" in text else datetime.fromisoformat(text)
        return parsed.timestamp()
    except (ValueError, OverflowError):
        return None
