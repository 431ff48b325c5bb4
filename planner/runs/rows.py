"""Rows of measured runs: which of the three kinds a CSV file holds, what was run, what came out."""

from __future__ import annotations

import csv
import gzip
import math
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Literal, TextIO

import numpy as np

from planner.engines.settings import MemorySettings
from planner.errors import InvalidInput
from planner.roofline import Array

Kind = Literal["serving", "decode", "memory"]

MEASURED: dict[Kind, tuple[str, ...]] = {
    "serving": ("ttft_ms", "tpot_ms"),
    "decode": ("value",),
    "memory": ("weights_gib", "kv_gib", "kv_tokens"),
}
"""Columns with results; a prediction never sees them."""

INPUTS: dict[Kind, tuple[str, ...]] = {
    "serving": (
        "row",
        "model",
        "gpu",
        "engine",
        "engine_version",
        "weight_format",
        "isl",
        "osl",
        "concurrency",
        "gpus",
        "tp",
        "pp",
        "attention_dp",
        "moe_tp",
        "moe_ep",
        "speculative",
        "measured_on",
        "source",
    ),
    "decode": (
        "row",
        "model",
        "config_file",
        "gpu",
        "n_gpus",
        "tp",
        "pp",
        "attention_dp",
        "ep",
        "engine",
        "engine_version",
        "backend",
        "weight_format",
        "weight_gb",
        "kv_dtype",
        "batch",
        "context",
        "isl",
        "osl",
        "metric",
        "flash_attention",
        "date",
    ),
    "memory": (
        "row",
        "model",
        "config_file",
        "gpu",
        "n_gpus",
        "tp",
        "pp",
        "engine",
        "engine_version",
        "gpu_memory_utilization",
        "max_model_len",
        "weight_format",
        "kv_dtype",
        "kv_layout",
        "scope",
        *(each.name for each in fields(MemorySettings) if each.name != "max_model_len"),
    ),
}
"""Columns that say what was run; everything else in a file is not read for a prediction."""

NUMBERS = frozenset(
    {
        "isl",
        "osl",
        "concurrency",
        "gpus",
        "n_gpus",
        "tp",
        "pp",
        "attention_dp",
        "moe_tp",
        "moe_ep",
        "ep",
        "weight_gb",
        "batch",
        "context",
        "gpu_memory_utilization",
        "max_model_len",
    }
)
"""Inputs that are numbers where they are not blank."""

ONE_OR_MORE: dict[Kind, frozenset[str]] = {
    "serving": frozenset({"concurrency", "isl", "osl"}),
    "decode": frozenset({"batch", "osl"}),
    "memory": frozenset(),
}
"""Inputs that are 1 at least; the others are 0 at least, which stands for none."""

MOST_INPUT, MOST_MEASURED = 2.0**24, 1e15

_TELLING: dict[Kind, frozenset[str]] = {
    "serving": frozenset({"concurrency", "isl", "osl"}),
    "decode": frozenset({"metric", "batch"}),
    "memory": frozenset({"max_model_len", "engine"}),
}


class UnknownRows(InvalidInput):
    """A file that is none of the three kinds of rows."""


class BadCell(InvalidInput):
    """A cell without the number it should have; one line names the column and the row."""


@dataclass(frozen=True, slots=True)
class Row:
    """One measured run: the question, and apart from it the answer."""

    kind: Kind
    inputs: Mapping[str, str]
    measured: Mapping[str, float]
    remarks: Mapping[str, str]
    """What the data says about the measurement: queued, suspect, source…"""

    def number(self, name: str, default: float | None = None) -> float | None:
        """Return an input as a number, `default` where it is blank."""
        text = self.inputs.get(name, "")
        return float(text) if text else default

    def count(self, name: str, default: int = 1) -> int:
        """Return an input as a whole number, `default` where it is blank."""
        value = self.number(name)
        return default if value is None else max(1, round(value))


def numbers(rows: Sequence[Row], name: str, default: float) -> Array:
    """Return an input of rows as numbers, shape (row,); `default` where it is blank."""
    return np.array([row.number(name, default) for row in rows], dtype=float)


def read_rows(path: Path) -> list[Row]:
    """Return the rows of a CSV file.

    Raises UnknownRows where it is no CSV file or its columns are those of none of the three kinds,
    BadCell, OSError.
    """
    try:
        with _opened(path) as file:
            return rows_of(file)
    except (UnicodeDecodeError, csv.Error, gzip.BadGzipFile, EOFError, zlib.error):
        refusal = f"rows: {path.name} is not text of rows; accepted: a CSV file, gzipped or not"
        raise UnknownRows(refusal) from None


def rows_of(file: Iterable[str]) -> list[Row]:
    """Return the rows of the lines of a CSV file.

    Raises UnknownRows where its columns are those of none of the three kinds, BadCell.
    """
    reader = csv.DictReader(file)
    kind = recognise(reader.fieldnames or ())
    return [_row(kind, line, number) for number, line in enumerate(reader, 1)]


def _opened(path: Path) -> TextIO:
    if path.suffix == ".gz":
        return gzip.open(path, "rt", encoding="utf-8-sig", newline="")
    return path.open(encoding="utf-8-sig", newline="")


def recognise(columns: Sequence[str]) -> Kind:
    """Return which kind of rows has these columns; raises UnknownRows."""
    for kind, telling in _TELLING.items():
        if telling <= set(columns):
            return kind
    wanted = "; ".join(f"{kind}: {', '.join(sorted(t))}" for kind, t in _TELLING.items())
    raise UnknownRows(f"rows: columns of none of the three kinds of rows; accepted: {wanted}")


def _row(kind: Kind, line: Mapping[str, str | None], number: int) -> Row:
    text = {name: (value or "").strip() for name, value in line.items() if isinstance(name, str)}
    measured = MEASURED[kind]
    for name in NUMBERS.intersection(INPUTS[kind]):
        if text.get(name):
            _number(name, text[name], number, float(name in ONE_OR_MORE[kind]), MOST_INPUT)
    least = -MOST_MEASURED if kind == "memory" else 0.0  # a pool that is overdrawn is printed so
    return Row(
        kind,
        {name: text.get(name, "") for name in INPUTS[kind]},
        {
            name: _number(name, text[name], number, least, MOST_MEASURED)
            for name in measured
            if text.get(name)
        },
        {n: v for n, v in text.items() if n not in measured and n not in INPUTS[kind]},
    )


def _number(name: str, text: str, row: int, least: float, most: float) -> float:
    """Return a cell as a number; raises BadCell where it is none, or not within bounds."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if least <= value <= most:
        return value
    refusal = f"{name}: {text[:40]!r} in row {row} of this column"
    raise BadCell(f"{refusal}; accepted: a number of {least:.15g} to {most:.15g}")
