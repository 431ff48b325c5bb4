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
from collections.abc import Iterator
from dataclasses import dataclass
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
    except (OSError, UnicodeDecodeError, EOFError) as error:
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
            except (ValueError, KeyError, TypeError) as error:
                raise _fault(path, number, line) from error
        number, line = number + 1, file.readline(MOST_LINE)


def _json_event(row: dict[str, Any]) -> Event:
    if "input_length" in row:  # Mooncake counts milliseconds
        return Event(float(row["timestamp"]) / 1e3, row["input_length"], row["output_length"])
    return Event(_seconds(row["timestamp"]), row["input_tokens"], row["output_tokens"])


def _csv(path: Path, first: str, file: IO[str]) -> Iterator[Event]:
    columns = [name.strip() for name in next(csv.reader([first]), [])]
    at = {name: i for i, name in enumerate(columns)}
    if {"TIMESTAMP", "ContextTokens", "GeneratedTokens"} <= set(at):
        names = ("TIMESTAMP", "ContextTokens", "GeneratedTokens")
        when, inputs, outputs = (at[name] for name in names)
        for number, cells in enumerate(csv.reader(file), 2):
            try:
                if cells:
                    yield Event(_seconds(cells[when]), float(cells[inputs]), float(cells[outputs]))
            except (ValueError, IndexError) as error:
                raise _fault(path, number, ",".join(cells)) from error
    elif {"start_s", "requests_per_s"} <= set(at):
        yield from _windows(path, at, file)
    else:
        raise InvalidTrace(f"trace: {str(path)!r} has the columns {first.strip()[:80]}; {ACCEPTED}")


def _windows(path: Path, at: dict[str, int], file: IO[str]) -> Iterator[Event]:
    """Yield windows; a length that is left out is the last one given."""
    lengths = {"isl_mean": 0.0, "osl_mean": 0.0}
    before: tuple[float, float] | None = None
    width = 0.0
    for number, cells in enumerate(csv.reader(file), 2):
        try:
            for name in lengths:
                if name in at and at[name] < len(cells) and cells[at[name]]:
                    lengths[name] = float(cells[at[name]])
            start, rate = float(cells[at["start_s"]]), float(cells[at["requests_per_s"]])
        except (ValueError, IndexError) as error:
            raise _fault(path, number, ",".join(cells)) from error
        if before is not None:
            width = start - before[0]
            yield _window(before, lengths, width)
        before = (start, rate)
    if before is not None and width:
        yield _window(before, lengths, width)


def _window(start: tuple[float, float], lengths: dict[str, float], width: float) -> Event:
    at_s, rate = start
    return Event(at_s, lengths["isl_mean"], lengths["osl_mean"], rate * width, width)


def _seconds(value: object) -> float:
    if isinstance(value, int | float):
        return float(value)
    text = str(value).strip()
    try:
        return float(text)
    except ValueError:
        whole, dot, fraction = text.partition(".")
        digits = fraction.rstrip("Z")
        read = datetime.fromisoformat(whole.rstrip("Z")).replace(tzinfo=UTC)
        return read.timestamp() + (float(f"0.{digits}") if dot and digits.isdigit() else 0.0)


def _fault(path: Path, number: int, line: str) -> InvalidTrace:
    return InvalidTrace(
        f"trace: line {number} of {str(path)!r} is {line.strip()[:60]!r}; {ACCEPTED}"
    )
