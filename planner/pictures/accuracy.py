"""Predicted against measured values of runs on record."""

from __future__ import annotations

from typing import Any

from planner.pictures.style import GREY, PALETTE, RED, Spec, layer, picture, value, word

BAND = 1.2
"""The shaded band holds predictions within this factor [-]."""


def accuracy_chart(rows: list[dict[str, Any]], unit: str, engines: list[str]) -> Spec:
    """Return one point a run: measured across, predicted up, on logarithmic axes."""
    values = [row[name] for row in rows for name in ("measured", "predicted")]
    low, high = min(values) / BAND, max(values) * BAND
    scale = {"type": "log", "domain": [low, high], "nice": False}
    axis = {"format": "~g", "labelOverlap": "greedy", "tickCount": 6}
    x = {
        "field": "measured",
        "type": "quantitative",
        "title": f"measured [{unit}]",
        "scale": scale,
        "axis": axis,
    }
    y = {
        "field": "predicted",
        "type": "quantitative",
        "title": f"predicted [{unit}]",
        "scale": scale,
        "axis": axis,
    }
    line = [
        {"measured": end, "predicted": end, "low": end / BAND, "high": end * BAND}
        for end in (low, high)
    ]
    colour = {
        "field": "engine",
        "type": "nominal",
        "title": "engine",
        "scale": {"domain": engines, "range": [PALETTE[i % 8] for i in range(len(engines))]},
    }
    tooltip = [
        word("model", "model"),
        word("gpu", "accelerator"),
        word("engine", "engine"),
        value("measured", f"measured [{unit}]", ".3~g"),
        value("predicted", f"predicted [{unit}]", ".3~g"),
    ]
    mine = [row for row in rows if row["mine"]]
    return picture(
        "accuracy",
        "Predicted against measured values; the line is a perfect prediction, the band 20%",
        [
            layer(
                "line",
                {"type": "area", "opacity": 0.2, "color": GREY, "clip": True},
                {"x": x, "y": {**y, "field": "low"}, "y2": {"field": "high"}},
            ),
            layer("line", {"type": "line", "color": GREY, "clip": True}, {"x": x, "y": y}),
            layer(
                "runs",
                {"type": "point", "filled": True, "size": 22, "opacity": 0.75},
                {"x": x, "y": y, "color": colour, "tooltip": tooltip},
            ),
            layer(
                "mine",
                {"type": "point", "size": 90, "strokeWidth": 2, "color": RED},
                {"x": x, "y": y, "tooltip": tooltip},
            ),
        ],
        {"line": line, "runs": rows, "mine": mine},
    ) | {"height": 520}
