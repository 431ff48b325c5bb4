"""Pictures of a comparison: where a difference comes from, and what beats what."""

from __future__ import annotations

from typing import Any

from planner.pictures.style import BLUE, GREEN, GREY, RED, Spec, layer, picture, value, word
from planner.plans.compare import Comparison
from planner.plans.compare.answers import Attribution

FIGURES = ("tpot_s", "tokens_per_s_per_gpu")
"""Figures a waterfall is drawn of, the first that the comparison attributes."""
PARETO_X, PARETO_Y = "tpot_s", "tokens_per_s_per_gpu"


def waterfall_chart(attribution: Attribution, figure: str = FIGURES[0]) -> Spec:
    """Return one figure from the baseline to another scenario, one changed field at a time."""
    rows = waterfall_rows(attribution, figure)
    order = [row["step"] for row in rows]
    x = {
        "field": "step",
        "type": "nominal",
        "sort": order,
        "title": None,
        "axis": {"labelAngle": -25, "labelLimit": 160},
    }
    unit = "ms" if figure.endswith("_s") and "per" not in figure else "tokens/s"
    y = {"field": "low", "type": "quantitative", "title": f"{figure.removesuffix('_s')} [{unit}]"}
    colour = {
        "field": "kind",
        "type": "nominal",
        "title": None,
        "scale": {"domain": ["total", "more", "less"], "range": [GREY, RED, GREEN]},
    }
    return picture(
        "waterfall",
        f"{figure} from {attribution.baseline} to {attribution.other}, one change at a time",
        [
            layer(
                "steps",
                "bar",
                {
                    "x": x,
                    "y": y,
                    "y2": {"field": "high"},
                    "color": colour,
                    "tooltip": [word("step", "change"), value("amount", unit, "+.3~g")],
                },
            ),
            layer(
                "steps",
                {"type": "text", "dy": -8},
                {
                    "x": x,
                    "y": {"field": "top", "type": "quantitative"},
                    "text": {"field": "amount", "type": "quantitative", "format": ".3~g"},
                },
            ),
        ],
        {"steps": rows},
    )


def waterfall_rows(attribution: Attribution, figure: str) -> list[dict[str, Any]]:
    """Return the bars of a waterfall; times in ms."""
    of_figure = next((one for one in attribution.contributions if one.figure == figure), None)
    if of_figure is None:
        return []
    factor = 1e3 if of_figure.unit == "s" else 1.0
    level = of_figure.baseline * factor
    rows = [_bar(attribution.baseline, 0.0, level, "total", level)]
    for step, change in zip(attribution.steps, of_figure.steps, strict=True):
        amount = change * factor
        label = ", ".join(f"{name} {_short(step.after[name])}" for name in step.fields)
        kind = "more" if amount > 0 else "less"
        rows.append(_bar(label, level, level + amount, kind, amount))
        level += amount
    other = of_figure.other * factor
    return [*rows, _bar(f"{attribution.other} ", 0.0, other, "total", other)]


def _bar(step: str, start: float, end: float, kind: str, amount: float) -> dict[str, Any]:
    low, high = min(start, end), max(start, end)
    return {"step": step, "low": low, "high": high, "top": high, "kind": kind, "amount": amount}


def _short(setting: object) -> str:
    if isinstance(setting, dict):
        setting = setting.get("id") or setting.get("_name_or_path") or "inline"
    if isinstance(setting, list):
        setting = ",".join(map(str, setting[:3])) + ("…" if len(setting) > 3 else "")
    return "default" if setting is None else str(setting)


def pareto_chart(comparison: Comparison) -> Spec:
    """Return time per token against tokens/s per GPU; scenarios nothing beats are filled."""
    figures = {row.figure: row for row in comparison.figures}
    rows = []
    for index, column in enumerate(comparison.columns):
        time_s, rate = figures[PARETO_X].values[index], figures[PARETO_Y].values[index]
        if time_s is None or rate is None:
            continue
        beaten = column.label not in comparison.pareto.members
        rows.append(
            {
                "label": column.label,
                "tpot_ms": time_s * 1e3,
                "tokens_per_s_per_gpu": rate,
                "status": "beaten" if beaten else "nothing beats it",
            }
        )
    x = {
        "field": "tpot_ms",
        "type": "quantitative",
        "title": "TPOT [ms]",
        "scale": {"zero": False, "padding": 90},
    }
    y = {
        "field": "tokens_per_s_per_gpu",
        "type": "quantitative",
        "title": "tokens/s per GPU",
        "scale": {"zero": False, "padding": 30},
    }
    status = {
        "field": "status",
        "type": "nominal",
        "title": None,
        "scale": {"domain": ["nothing beats it", "beaten"], "range": [BLUE, GREY]},
    }
    shape = {
        **status,
        "scale": {"domain": ["nothing beats it", "beaten"], "range": ["circle", "cross"]},
    }
    tooltip = [
        word("label", "scenario"),
        value("tpot_ms", "TPOT [ms]", ".3~g"),
        value("tokens_per_s_per_gpu", "tokens/s per GPU"),
    ]
    return picture(
        "pareto",
        "Time per token against tokens/s per GPU; filled where no other scenario is better",
        [
            layer(
                "scenarios",
                {"type": "point", "filled": True, "size": 110},
                {"x": x, "y": y, "color": status, "shape": shape, "tooltip": tooltip},
            ),
            layer(
                "scenarios",
                {"type": "text", "dy": -12, "limit": 160},
                {"x": x, "y": y, "text": {"field": "label"}},
            ),
        ],
        {"scenarios": rows},
    )
