"""How pictures look: one palette that reads on light and on dark, and the two themes around it."""

from __future__ import annotations

from typing import Any

Spec = dict[str, Any]

SCHEMA = "https://vega.github.io/schema/vega-lite/v6.json"
"""Names the language of a specification; nothing is fetched from it."""

BLUE, ORANGE, GREEN, PURPLE = "#2f7fc1", "#c8650b", "#2e8f5e", "#8a63c9"
RED, TEAL, GREY, BROWN = "#d0454c", "#1f8a94", "#78818c", "#a0722a"
PALETTE = (BLUE, ORANGE, GREEN, PURPLE, RED, TEAL, BROWN, GREY)
"""At least 3:1 against both backgrounds (WCAG 2.2, 1.4.11)."""

BOUNDS = {"memory": BLUE, "compute": ORANGE, "launch": GREEN, "communication": PURPLE}
"""The colour of what holds a step or a kernel back."""
SHAPES = ("circle", "square", "triangle-up", "diamond")
"""One to each bound: colour alone tells nothing to some readers."""

HEIGHT = 400
"""Of a picture, so that a page keeps the room before it is drawn [pixel]."""
FILE_WIDTH = 680
"""Of a picture in a file [pixel]."""


def theme(*, dark: bool) -> Spec:
    """Return the Vega-Lite configuration of the light or the dark page."""
    ink, faint, ground = (
        ("#e8ebef", "#3a424d", "#14181e") if dark else ("#1b2129", "#d5dae0", "#ffffff")
    )
    font = "system-ui, sans-serif"
    axis = {"labelColor": ink, "titleColor": ink, "gridColor": faint, "domainColor": faint}
    return {
        "background": ground,
        "font": font,
        "view": {"stroke": "transparent"},
        "axis": {
            **axis,
            "tickColor": faint,
            "gridOpacity": 0.6,
            "labelFontSize": 12,
            "titleFontSize": 12,
        },
        "legend": {
            "labelColor": ink,
            "titleColor": ink,
            "labelFontSize": 12,
            "orient": "bottom",
            "columns": 2,
            "labelLimit": 180,
        },
        "title": {"color": ink, "anchor": "start", "fontSize": 14},
        "text": {"color": ink, "fontSize": 11},
        "range": {"category": list(PALETTE)},
        "rule": {"color": GREY},
    }


THEMES = {"light": theme(dark=False), "dark": theme(dark=True)}


def picture(name: str, description: str, layers: list[Spec], datasets: Spec, **more: Any) -> Spec:
    """Return a specification of layers over named rows, as wide as what holds it.

    A layer without rows is left out: it would have no extent.
    """
    return {
        "$schema": SCHEMA,
        "name": name,
        "description": description,
        "width": "container",
        "height": HEIGHT,
        "autosize": {"type": "fit", "contains": "padding"},
        "datasets": datasets,
        "layer": [each for each in layers if _has_rows(each, datasets)],
        **more,
    }


def _has_rows(part: Spec, datasets: Spec) -> bool:
    return "data" not in part or bool(datasets[part["data"]["name"]])


def layer(data: str, mark: str | Spec, encoding: Spec, **more: Any) -> Spec:
    """Return one layer over the rows called `data`."""
    return {"data": {"name": data}, "mark": mark, "encoding": encoding, **more}


def log_axis(field: str, title: str, **more: Any) -> Spec:
    """Return a position on a logarithmic scale, its labels with SI prefixes."""
    return {
        "field": field,
        "type": "quantitative",
        "title": title,
        "scale": {"type": "log", "nice": False},
        "axis": {"format": "~s", "labelOverlap": "greedy", "tickCount": 8},
        **more,
    }


def value(field: str, title: str, number: str = ".3~s") -> Spec:
    """Return one line of a tooltip about a quantity."""
    return {"field": field, "type": "quantitative", "title": title, "format": number}


def word(field: str, title: str) -> Spec:
    """Return one line of a tooltip about a word."""
    return {"field": field, "type": "nominal", "title": title}


BOUND_COLOUR: Spec = {
    "field": "bound",
    "type": "nominal",
    "title": "held back by",
    "scale": {"domain": list(BOUNDS), "range": list(BOUNDS.values())},
}
BOUND_SHAPE: Spec = {
    "field": "bound",
    "type": "nominal",
    "title": "held back by",
    "scale": {"domain": list(BOUNDS), "range": list(SHAPES)},
}
PICKED: list[Spec] = [{"name": "picked", "value": 0}]
"""The batch a reader points at; a page sets it in all charts at once."""
ONLY_PICKED: Spec = {"condition": {"test": "datum.batch == picked", "value": 1}, "value": 0}
"""The opacity of a mark that shows at the batch pointed at."""


def pointer(data: str, encoding: Spec) -> Spec:
    """Return an invisible layer that says which batch the pointer is nearest to."""
    nearest = {
        "name": "near",
        "select": {
            "type": "point",
            "fields": ["batch"],
            "nearest": True,
            "on": "pointermove",
            "clear": "pointerout",
        },
    }
    return layer(data, {"type": "point", "opacity": 0, "size": 1}, encoding, params=[nearest])
