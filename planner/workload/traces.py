"""Traces of requests in the forms they are published in, read line by line.

Azure LLM inference (CSV: TIMESTAMP, ContextTokens, GeneratedTokens), Mooncake (JSON lines:
timestamp [ms], input_length, output_length), ServeGen's windows as rates (CSV: start_s,
requests_per_s, isl_mean, osl_mean), and an access log (JSON lines: timestamp, input_tokens,
output_tokens). Timestamps are seconds, or dates as ISO 8601 has them.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import math
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any

from planner.errors import InvalidInput

ACCEPTED = (
    "accepted: CSV with TIMESTAMP,ContextTokens,GeneratedTokens (Azure) or start_s,requests_per_s "
    "(ServeGen), or JSON lines with timestamp and input_length, output_length (Mooncake) or "
    "input_tokens, output_tokens (an access log)"
)
MOST_LINE = 100_000
"""Characters of a line at most."""


class InvalidTrace(InvalidInput):
    """A trace that cannot be read; names the line."""


@dataclass(frozen=True, slots=True)
class Event:
    """One request, or `count` of them over a window that starts then."""

    at_s: float
    isl: float
    osl: float
    count: float = 1.0
    over_s: float = 0.0
    """Length of the window; nought for a request [s]."""


def read_trace(path: str | Path) -> Iterator[Event]:
    """Yield the requests of a file in its order; a name that ends in .gz is unpacked.

    Raises InvalidTrace.
    """
    path = Path(path)
    try:
        with _opened(path) as file:
            first = file.readline(MOST_LINE)
            if first.lstrip().startswith("{"):
                yield from _json_lines(path, first, file)
            else:
                yield from _csv(path, first, file)
    except (OSError, UnicodeDecodeError, EOFError, zlib.error, csv.Error) as error:
        reason = (isinstance(error, OSError) and error.strerror) or "it is not text"
        raise InvalidTrace(f"trace: cannot read {str(path)!r}: {reason}; {ACCEPTED}") from None


def _opened(path: Path) -> IO[str]:
    if path.suffix == ".gz":
        return io.TextIOWrapper(gzip.open(path), encoding="utf-8")
    return path.open(encoding="utf-8")


def _json_lines(path: Path, first: str, file: IO[str]) -> Iterator[Event]:
    number, line = 1, first
    while line:
        if line.strip():
            try:
                row = json.loads(line)
                yield _json_event(row)
            except (ValueError, KeyError, TypeError, OverflowError) as error:
                raise _fault(path, number, line) from error
        number, line = number + 1, file.readline(MOST_LINE)


def _json_event(row: dict[str, Any]) -> Event:
    if "input_length" in row:  # Mooncake counts milliseconds
        at_s = _figure(row["timestamp"]) / 1e3
        return Event(at_s, _figure(row["input_length"]), _figure(row["output_length"]))
    tokens = _figure(row["input_tokens"]), _figure(row["output_tokens"])
    return Event(_seconds(row["timestamp"]), *tokens)


def _csv(path: Path, first: str, file: IO[str]) -> Iterator[Event]:
    columns = [name.strip() for name in next(csv.reader([first]), [])]
    at = {name: i for i, name in enumerate(columns)}
    if {"TIMESTAMP", "ContextTokens", "GeneratedTokens"} <= set(at):
        names = ("TIMESTAMP", "ContextTokens", "GeneratedTokens")
        when, inputs, outputs = (at[name] for name in names)
        for number, cells in enumerate(csv.reader(file), 2):
            try:
                if cells:
                    tokens = _figure(cells[inputs]), _figure(cells[outputs])
                    yield Event(_seconds(cells[when]), *tokens)
            except (ValueError, IndexError) as error:
                raise _fault(path, number, ",".join(cells)) from error
    elif {"start_s", "requests_per_s"} <= set(at):
        yield from _windows(path, at, file)
    else:
        raise InvalidTrace(f"trace: {str(path)!r} has the columns {first.strip()[:80]}; {ACCEPTED}")


def _windows(path: Path, at: dict[str, int], file: IO[str]) -> Iterator[Event]:
    """Yield windows; a length that is left out is the last one given."""
    lengths = {"isl_mean": 0.0, "osl_mean": 0.0}
    before: Event | None = None
    width = 0.0
    for number, cells in enumerate(csv.reader(file), 2):
        try:
            for name in lengths:
                if name in at and at[name] < len(cells) and cells[at[name]]:
                    lengths[name] = _figure(cells[at[name]])
            start, rate = _figure(cells[at["start_s"]]), _figure(cells[at["requests_per_s"]])
            if rate < 0 or (before is not None and start <= before.at_s):
                raise ValueError("a rate below nought, or a window that begins before the last")
        except (ValueError, IndexError) as error:
            raise _fault(path, number, ",".join(cells)) from error
        if before is not None:
            width = start - before.at_s
            yield _over(before, width)
        before = Event(start, lengths["isl_mean"], lengths["osl_mean"], rate)
    if before is not None and width:
        yield _over(before, width)


def _over(rate: Event, width: float) -> Event:
    """Return the requests of a window from those of a second."""
    return replace(rate, count=rate.count * width, over_s=width)


def _figure(value: Any) -> float:
    """Return a finite figure; raises ValueError or TypeError for what is none."""
    read = float(value)
    if not math.isfinite(read):
        raise ValueError(value)
    return read


def _seconds(value: object) -> float:
    """Return a time in seconds; a date without an offset is taken in UTC."""
    try:
        return _figure(value)
    except ValueError:
        read = datetime.fromisoformat(str(value).strip())
        return (read if read.tzinfo else read.replace(tzinfo=UTC)).timestamp()


def _fault(path: Path, number: int, line: str) -> InvalidTrace:
    return InvalidTrace(
        f"trace: line {number} of {str(path)!r} is {line.strip()[:60]!r}; {ACCEPTED}"
    )
