"""A day of a fleet: GPUs over time by each way of scaling, and the requests they are for."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from planner.pictures.style import BLUE, GREEN, GREY, ORANGE, Spec, layer, picture, value, word
from planner.pictures.view import Row
from planner.plans.fleet import Fleet

MOST_WINDOWS = 600
"""Windows drawn at most; of more, each drawn one is the largest of several [-]."""
LOOKS = {"static": (GREY, [6, 4]), "autoscaled": (BLUE, [1, 0]), "perfect": (GREEN, [2, 3])}
"""Colour and dash of each way of scaling."""


def drawn_windows(values: Sequence[float]) -> list[float]:
    """Return values as drawn: themselves, or the largest of each of MOST_WINDOWS groups.

    >>> drawn_windows([1.0, 2.0])
    [1.0, 2.0]
    """
    step = -(-len(values) // MOST_WINDOWS)
    largest: list[float] = np.maximum.reduceat(
        np.asarray(values), range(0, len(values), step)
    ).tolist()
    return largest


def line_rows(result: Fleet) -> list[Row]:
    """Return GPUs of each way of scaling by hour; the last window ends with a row of its own."""
    hours = _hours(result)
    rows = []
    for line in result.lines:
        gpus = drawn_windows(line.gpus)
        rows += [
            {"hour": hour, "gpus": count, "scaling": line.name}
            for hour, count in zip(hours, [*gpus, gpus[-1]], strict=True)
        ]
    return rows


def load_rows(result: Fleet) -> list[Row]:
    """Return requests per second by hour."""
    rates = drawn_windows(result.requests_per_s)
    pairs = zip(_hours(result), [*rates, rates[-1]], strict=True)
    return [{"hour": hour, "requests_per_s": rate} for hour, rate in pairs]


def _hours(result: Fleet) -> list[float]:
    window_h = result.request.window_s / 3600.0
    step = -(-result.windows // MOST_WINDOWS)
    return [i * window_h for i in range(0, result.windows, step)] + [result.windows * window_h]


def fleet_chart(result: Fleet) -> Spec:
    """Return GPUs over time by the three ways of scaling, requests per second behind them."""
    x = {"field": "hour", "type": "quantitative", "title": "hour", "scale": {"nice": False}}
    gpus = {"field": "gpus", "type": "quantitative", "title": "GPUs"}
    rate = {
        "field": "requests_per_s",
        "type": "quantitative",
        "title": "requests per second",
        "axis": {"orient": "right", "grid": False, "titleColor": ORANGE, "format": "~s"},
    }
    colours, dashes = zip(*LOOKS.values(), strict=True)
    scaling = {"field": "scaling", "type": "nominal", "title": "scaling"}
    return picture(
        "fleet",
        "GPUs over time by three ways of scaling, with the requests per second they are for",
        [
            layer(
                "load",
                {"type": "area", "interpolate": "step-after", "color": ORANGE, "opacity": 0.18},
                {"x": x, "y": rate},
            ),
            layer(
                "lines",
                {"type": "line", "interpolate": "step-after", "strokeWidth": 2},
                {
                    "x": x,
                    "y": gpus,
                    "color": {**scaling, "scale": {"domain": list(LOOKS), "range": list(colours)}},
                    "strokeDash": {
                        **scaling,
                        "scale": {"domain": list(LOOKS), "range": list(dashes)},
                    },
                    "tooltip": [
                        word("scaling", "scaling"),
                        value("hour", "hour", ".4~g"),
                        value("gpus", "GPUs", ".4~g"),
                    ],
                },
            ),
        ],
        {"load": load_rows(result), "lines": line_rows(result)},
        resolve={"scale": {"y": "independent"}},
    )
