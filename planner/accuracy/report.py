"""Errors of predictions, by quantity and by group."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from planner.runs.predict import Prediction
from planner.runs.rows import Kind, Row

GROUPS: dict[Kind, tuple[str, ...]] = {
    "serving": ("engine", "gpu", "model", "weight_format"),
    "decode": ("metric", "engine", "gpu"),
    "memory": ("engine", "gpu"),
}


@dataclass(frozen=True, slots=True)
class Errors:
    """Errors of one quantity over some rows; shares of the measured value [-]."""

    rows: int
    median: float
    mean: float
    p90: float
    bias: float
    """Median of log(predicted/measured) [-]."""
    covered: float | None
    """Share of rows inside their 80% interval [-]."""


@dataclass(frozen=True, slots=True)
class Line:
    """Errors of a quantity in one group."""

    quantity: str
    by: str
    group: str
    errors: Errors


def errors(
    predicted: Sequence[float], measured: Sequence[float], inside: Sequence[bool] | None = None
) -> Errors:
    """Return the errors of predictions; the bias is over quantities measured above zero."""
    p, m = np.asarray(predicted, float), np.asarray(measured, float)
    share = np.abs(p / m - 1)
    return Errors(
        rows=len(p),
        median=float(np.median(share)),
        mean=float(share.mean()),
        p90=float(np.quantile(share, 0.9)),
        bias=float(np.median(np.log(np.maximum(p[m > 0], 1e-12) / m[m > 0]))),
        covered=float(np.mean(inside)) if inside else None,
    )


def report(rows: Sequence[Row], predictions: Sequence[Prediction]) -> list[Line]:
    """Return errors over all rows and by group, for every quantity that was measured."""
    pairs = list(zip(rows, predictions, strict=True))
    lines: list[Line] = []
    names = dict.fromkeys(name for row in rows for name in row.measured)
    for name in names:
        lines += _grouped(name, "", pairs)
        for by in (*GROUPS[rows[0].kind], "queued"):
            lines += _grouped(name, by, pairs)
    return lines


def _grouped(name: str, by: str, pairs: Iterable[tuple[Row, Prediction]]) -> list[Line]:
    by_group: dict[str, list[tuple[Row, Prediction]]] = defaultdict(list)
    for row, prediction in pairs:
        group = (row.inputs.get(by) or row.remarks.get(by, "")) if by else "all"
        if group and row.measured.get(name) and prediction.values.get(name):
            by_group[group].append((row, prediction))
    lines = []
    for group, members in sorted(by_group.items()):
        predicted = [prediction.values[name] for _, prediction in members]
        measured = [row.measured[name] for row, _ in members]
        inside = [_inside(name, row.measured[name], p.values) for row, p in members]
        known = [i for i in inside if i is not None]
        lines.append(Line(name, by, group, errors(predicted, measured, known or None)))
    return lines


def _inside(name: str, measured: float, values: Mapping[str, float]) -> bool | None:
    stem, _, unit = name.rpartition("_")
    if name == "value":
        stem, unit = name, ""
    low, high = (f"{stem}_{p}_{unit}".rstrip("_") for p in ("p10", "p90"))
    if low not in values:
        return None
    return values[low] <= measured <= values[high]


def as_json(
    rows: Sequence[Row], predictions: Sequence[Prediction], lines: Sequence[Line]
) -> dict[str, Any]:
    """Return the report as plain values."""
    refused = [p for p in predictions if not p.values]
    return {
        "kind": rows[0].kind if rows else None,
        "rows": len(rows),
        "answered": len(rows) - len(refused),
        "refused": [{"row": p.row, "note": "; ".join(p.notes)} for p in refused],
        "errors": [
            {"quantity": line.quantity, "by": line.by, "group": line.group, **asdict(line.errors)}
            for line in lines
        ],
    }
