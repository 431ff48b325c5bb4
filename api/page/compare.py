"""The view of a comparison: scenarios side by side, and where a difference comes from."""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qsl, urlencode

from pydantic import ValidationError

from api.comparisons.schemas import ComparisonQuery, StoredComparison
from api.page.form import read
from api.page.render import fragment
from api.page.service import Pages
from api.page.shown import Query, Shown
from api.web.problem import Problem
from planner.errors import faults
from planner.pictures.comparison import pareto_chart, waterfall_chart, waterfall_rows
from planner.plans.compare import Comparison
from planner.scenario import Scenario
from planner.units import number, scaled, seconds

MOST = 8
"""Scenarios the view compares [-]."""
LLAMA = "model=meta-llama/Llama-3.1-70B-Instruct&context=8k&batch=32&tp=4"
EXAMPLE = [("s", f"{LLAMA}&gpu=h100-sxm5"), ("s", f"{LLAMA}&gpu=b200-sxm&weights=fp8")]
FIELDS = ("s", "baseline")


def show(pages: Pages, query: Query) -> Shown:
    """Return the comparison that a query asks for: `s` is a scenario's query, or its id."""
    sent = [(name, text.strip()) for name, text in query if text.strip()] or EXAMPLE
    shown = Shown({}, title="Compare · Decode planner")
    texts = [text for name, text in sent if name == "s"]
    shown.more = {"scenarios": texts, "saved": pages.saved(), "share": urlencode(sent)}
    unknown = next((name for name, _ in sent if name not in FIELDS), None)
    if unknown:
        shown.errors[""] = f"{unknown[:40]}: unknown field; accepted: {', '.join(FIELDS)}"
        return shown
    try:
        comparison = ask(pages, sent).comparison
    except ValidationError as error:
        shown.errors[""] = "; ".join(text for _, text in faults(error))
        return shown
    except Problem as problem:
        shown.errors[""] = problem.detail
        return shown
    shown.html["answer"] = fragment(
        "compare_answer.html", share=shown.more["share"], **tables(comparison)
    )
    attribution = next(
        (one for one in comparison.attributions if waterfall_rows(one, "tpot_s")), None
    )
    if attribution:
        shown.charts["waterfall"] = waterfall_chart(attribution)
    shown.charts["pareto"] = pareto_chart(comparison)
    return shown


def ask(pages: Pages, sent: Query) -> StoredComparison:
    """Return the comparison of a query; raises Problem, ValidationError."""
    texts = [text for name, text in sent if name == "s"]
    if not 2 <= len(texts) <= MOST:
        raise Problem(422, f"s: {len(texts)} scenarios; accepted: 2 to {MOST}")
    scenarios = [_scenario(text) for text in texts]
    base = next((text for name, text in sent if name == "baseline"), "0")
    if not base.isdecimal() or int(base) >= len(texts):
        raise Problem(422, f"baseline: {base[:20]!r}; accepted: 0 to {len(texts) - 1}")
    labels = [_label(one, index) for index, one in enumerate(scenarios)]
    query = ComparisonQuery(
        scenarios=scenarios,
        baseline=int(base),
        labels=labels if all(isinstance(one, Scenario) for one in scenarios) else None,
        save=False,
    )
    return pages.compare(query)


def _scenario(text: str) -> str | Scenario:
    """Return the id of a stored scenario, or the scenario that a query describes."""
    if "=" not in text:
        return text
    filled = read(parse_qsl(text))
    if filled.scenario is None:
        raise Problem(422, "; ".join(filled.errors.values()))
    return filled.scenario


def _label(one: str | Scenario, index: int) -> str:
    letter = chr(ord("A") + index)
    if isinstance(one, str):
        return letter
    gpu = one.gpu if isinstance(one.gpu, str) else "own"
    parts = [gpu, f"tp {one.tp}", *(text for text in (one.weights, one.engine) if text)]
    return one.name or f"{letter}: {', '.join(parts)}"


def tables(comparison: Comparison) -> dict[str, Any]:
    """Return the tables of a comparison as cells."""
    labels = [column.label for column in comparison.columns]
    return {
        "labels": labels,
        "baseline": comparison.baseline,
        "figures": [
            {
                "name": row.figure,
                "meaning": row.meaning,
                "cells": [
                    {
                        "text": _shown(row.values[index], row.unit),
                        "value": row.values[index],
                        "ratio": _ratio(row.ratios[index]),
                        "best": label in row.best,
                    }
                    for index, label in enumerate(labels)
                ],
            }
            for row in comparison.figures
            if any(value is not None for value in row.values)
        ],
        "fits": [column.fits for column in comparison.columns],
        "pareto": comparison.pareto,
        "attributions": comparison.attributions,
        "kernels": [
            {
                "other": one.other,
                "rows": [
                    (
                        row.kernel,
                        seconds(row.baseline_s),
                        seconds(row.other_s),
                        f"{row.difference_s * 1e3:+.3f} ms",
                    )
                    for row in one.kernels
                ],
            }
            for one in comparison.attributions
        ],
        "notes": list(
            dict.fromkeys(
                [
                    f"{column.label}: {note.text}"
                    for column in comparison.columns
                    for note in column.notes
                ]
                + [note.text for note in comparison.notes]
            )
        ),
    }


def _ratio(ratio: float | None) -> str:
    return "" if ratio is None or ratio == 1.0 else f"{ratio:.3g}×"


def _shown(value: float | None, unit: str) -> str:
    if value is None:
        return "–"
    if unit == "s":
        return seconds(value)
    if unit in {"byte", "FLOP"}:
        return scaled(value, {"byte": "B"}.get(unit, unit))
    return f"{number(value)} {unit}".rstrip()
