"""Rows of measured runs: which of the three kinds a CSV file holds, what was run, what came out."""

from __future__ import annotations

import csv
import gzip
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TextIO

Kind = Literal["serving", "decode", "memory"]

MEASURED: dict[Kind, tuple[str, ...]] = {
    "serving": ("ttft_ms", "tpot_ms"),
    "decode": ("value",),
    "memory": ("weights_gib", "kv_gib", "kv_tokens"),
}
"""Columns with results; a prediction never sees them."""

INPUTS: dict[Kind, tuple[str, ...]] = {
    "serving": (
        "row", "model", "gpu", "engine", "engine_version", "weight_format", "isl", "osl",
        "concurrency", "gpus", "tp", "pp", "attention_dp", "moe_tp", "moe_ep", "speculative",
        "measured_on", "source",
    ),
    "decode": (
        "row", "model", "config_file", "gpu", "n_gpus", "tp", "pp", "attention_dp", "ep", "engine",
        "engine_version", "backend", "weight_format", "weight_gb", "kv_dtype", "batch", "context",
        "isl", "osl", "metric", "flash_attention", "date",
    ),
    "memory": (
        "row", "model", "config_file", "gpu", "n_gpus", "tp", "pp", "engine", "engine_version",
        "gpu_memory_utilization", "max_model_len", "weight_format", "kv_dtype", "kv_layout",
        "scope",
    ),
}  # fmt: skip
"""Columns that say what was run; everything else in a file is not read for a prediction."""

_TELLING: dict[Kind, frozenset[str]] = {
    "serving": frozenset({"concurrency", "isl", "osl"}),
    "decode": frozenset({"metric", "batch"}),
    "memory": frozenset({"max_model_len", "engine"}),
}


class UnknownRows(ValueError):
    """A file that is none of the three kinds of rows."""


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
        found = self.number(name)
        return default if found is None else max(1, round(found))


def read_rows(path: Path) -> list[Row]:
    """Return the rows of a CSV file.

    Raises UnknownRows where its columns are those of none of the three kinds, OSError.
    """
    with _opened(path) as file:
        return rows_of(file)


def rows_of(file: Iterable[str]) -> list[Row]:
    """Return the rows of the lines of a CSV file.

    Raises UnknownRows where its columns are those of none of the three kinds.
    """
    reader = csv.DictReader(file)
    kind = recognise(reader.fieldnames or ())
    return [_row(kind, line) for line in reader]


def _opened(path: Path) -> TextIO:
    if path.suffix == ".gz":
        return gzip.open(path, "rt", encoding="utf-8", newline="")
    return path.open(encoding="utf-8", newline="")


def recognise(columns: Sequence[str]) -> Kind:
    """Return which kind of rows has these columns; raises UnknownRows."""
    for kind, telling in _TELLING.items():
        if telling <= set(columns):
            return kind
    wanted = "; ".join(f"{kind}: {', '.join(sorted(t))}" for kind, t in _TELLING.items())
    raise UnknownRows(f"rows: columns of none of the three kinds of rows; accepted: {wanted}")


def _row(kind: Kind, line: Mapping[str, str | None]) -> Row:
    text = {name: (value or "").strip() for name, value in line.items() if isinstance(name, str)}
    measured = MEASURED[kind]
    return Row(
        kind,
        {name: text.get(name, "") for name in INPUTS[kind]},
        {name: float(text[name]) for name in measured if text.get(name)},
        {n: v for n, v in text.items() if n not in measured and n not in INPUTS[kind]},
    )
