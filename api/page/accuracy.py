"""The view of accuracy: predictions against runs on record, the reader's case and own runs."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from api.page.render import fragment
from api.page.service import Pages
from api.page.shown import Query, Shown
from planner.accuracy.report import errors
from planner.fitting.committed import committed_rows
from planner.pictures.accuracy import accuracy_chart
from planner.runs.predict import Prediction, predict
from planner.runs.rows import Kind, Row

QUANTITIES: dict[str, tuple[Kind, str, str, str]] = {
    "tpot_ms": ("serving", "tpot_ms", "ms", "TPOT of servers"),
    "ttft_ms": ("serving", "ttft_ms", "ms", "TTFT of servers"),
    "decode": ("decode", "value", "tokens/s or ms", "decode at a known batch"),
}
"""Kind of row, column, unit and title by the name of a quantity."""
FIELDS = ("quantity", "model", "gpu", "engine")
FEW = 3
"""Runs of a group that a table shows at least [-]."""


@lru_cache(maxsize=8)
def _predicted(kind: str, _edition: str) -> tuple[tuple[Row, ...], tuple[Prediction, ...]]:
    """Rows on record with their predictions; they take seconds, and hold per calibration."""
    rows = tuple(committed_rows(kind))
    return rows, tuple(predict(rows))


def show(pages: Pages, query: Query) -> Shown:
    """Return predicted against measured values, marked where a run is like the reader's case."""
    texts = {name: text.strip() for name, text in query if text.strip()}
    shown = Shown(texts, title="Accuracy · Decode planner")
    shown.more = {"quantities": QUANTITIES}
    unknown = next((name for name in texts if name not in FIELDS), None)
    quantity = texts.get("quantity", "tpot_ms")
    if unknown:
        shown.errors[""] = f"{unknown[:40]}: unknown field; accepted: {', '.join(FIELDS)}"
        return shown
    if quantity not in QUANTITIES:
        accepted = ", ".join(QUANTITIES)
        shown.errors["quantity"] = f"quantity: {quantity[:40]!r}; accepted: {accepted}"
        return shown
    kind, column, unit, title = QUANTITIES[quantity]
    rows, predictions = pages.calibrated(_predicted, kind, pages.edition())
    own = pages.own_runs(kind)
    own_predictions = pages.calibrated(predict, own) if own else []
    points = [
        *_points(rows, predictions, column, texts, own=False),
        *_points(own, own_predictions, column, texts, own=True),
    ]
    engines = sorted({point["engine"] for point in points})
    shown.html["answer"] = fragment(
        "accuracy_answer.html",
        title=title,
        count=len(points),
        marked=sum(point["mine"] for point in points),
        own=len(own),
        head=("group", "runs", "median error", "mean", "P90", "bias"),
        rows=_groups(points),
    )
    if points:
        shown.charts["accuracy"] = accuracy_chart(points, unit, engines)
    return shown


def _points(
    rows: Sequence[Row],
    predictions: Sequence[Prediction],
    column: str,
    texts: dict[str, str],
    *,
    own: bool,
) -> list[dict[str, Any]]:
    """Runs that were measured and predicted; an engine is a filter, model and gpu are marks."""
    points = []
    for row, prediction in zip(rows, predictions, strict=True):
        measured, predicted = row.measured.get(column), prediction.values.get(column)
        engine = row.inputs.get("engine", "")
        if not measured or not predicted or texts.get("engine", engine) != engine:
            continue
        case = [
            texts[name].lower() in row.inputs.get(name, "").lower()
            for name in ("model", "gpu")
            if name in texts
        ]
        points.append(
            {
                "model": row.inputs.get("model", ""),
                "gpu": row.inputs.get("gpu", ""),
                "engine": engine or "–",
                "measured": measured,
                "predicted": predicted,
                "mine": own or (bool(case) and all(case)),
                "own": own,
            }
        )
    return points


def _groups(points: Sequence[dict[str, Any]]) -> list[tuple[str, ...]]:
    groups: dict[str, list[dict[str, Any]]] = {"all runs shown": list(points)}
    mine = [point for point in points if point["mine"]]
    if mine:
        groups["runs like yours"] = mine
    for name in ("engine", "gpu"):
        for point in points:
            groups.setdefault(f"{name} {point[name]}", []).append(point)
    rows: list[tuple[str, ...]] = []
    for group, members in groups.items():
        if len(members) < FEW and group != "runs like yours":
            continue
        spread = errors([one["predicted"] for one in members], [one["measured"] for one in members])
        rows.append(
            (
                group,
                f"{spread.rows:,}",
                f"{spread.median:.1%}",
                f"{spread.mean:.1%}",
                f"{spread.p90:.1%}",
                f"{spread.bias:+.1%}",
            )
        )
    return rows
