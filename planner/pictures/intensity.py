"""Arithmetic intensity against the batch, at several contexts, with the limits of each curve."""

from __future__ import annotations

from planner.pictures.style import (
    GREY,
    ONLY_PICKED,
    PALETTE,
    PICKED,
    Spec,
    layer,
    log_axis,
    picture,
    pointer,
    value,
    word,
)
from planner.pictures.view import Row, View

X = log_axis("batch", "batch [sequences]")
Y = log_axis("intensity", "arithmetic intensity [FLOP/byte]")


KINDS = ("limit", "crossover")
"""What is marked beside the curves: what each approaches as the batch grows, where it crosses."""
CONTEXT: Spec = {
    "field": "context",
    "type": "ordinal",
    "title": "context [tokens]",
    "scale": {"range": list(PALETTE[:5])},
    "legend": {"labelExpr": "format(datum.value, ',')"},
}
"""A colour for each context; which contexts there are is left to the rows, so that another one
changes rows alone."""


def intensity_chart(view: View) -> Spec:
    """Return the intensity of a step over the batch: curves, their limits, ridge, crossovers."""
    curves = [
        {
            "batch": row["batch"],
            "intensity": row["arithmetic_intensity"],
            "context": row["context"],
            "fits": "fits" if row["fits"] else "does not fit",
        }
        for row in view.contexts
    ]
    tooltip = [
        value("batch", "batch", ",d"),
        value("intensity", "FLOP/byte", ".3~g"),
        value("context", "context [tokens]", ",d"),
    ]
    ridge = view.plan.limits.ridge_point
    layers = [
        layer(
            "ridge",
            {"type": "rule", "strokeDash": [6, 4], "color": GREY},
            {"y": Y, "tooltip": value("intensity", "ridge [FLOP/byte]", ".3~g")},
        ),
        layer(
            "ridge",
            {"type": "text", "align": "left", "dy": -7, "dx": 4},
            {"y": Y, "x": {"value": 0}, "text": {"field": "label"}},
        ),
        layer(
            "curves",
            {"type": "line", "strokeWidth": 2},
            {
                "x": X,
                "y": Y,
                "color": CONTEXT,
                "strokeDash": {
                    "field": "fits",
                    "type": "nominal",
                    "legend": None,
                    "scale": {"domain": ["fits", "does not fit"], "range": [[1, 0], [3, 4]]},
                },
            },
        ),
        pointer("curves", {"x": X, "y": Y, "tooltip": tooltip}),
        layer(
            "marks",
            {"type": "point", "size": 110, "strokeWidth": 3},
            {
                "x": X,
                "y": Y,
                "color": CONTEXT,
                "shape": {
                    "field": "kind",
                    "type": "nominal",
                    "title": "mark",
                    "scale": {"domain": list(KINDS), "range": ["stroke", "cross"]},
                },
                "tooltip": [word("kind", "mark"), *tooltip],
            },
        ),
        layer(
            "curves",
            {"type": "point", "size": 110, "strokeWidth": 2.5},
            {"x": X, "y": Y, "color": CONTEXT, "opacity": ONLY_PICKED},
        ),
    ]
    return picture(
        "intensity",
        "Arithmetic intensity of a decode step against the batch at several contexts, with the "
        "ridge point and the limit each curve approaches",
        layers,
        {
            "curves": curves,
            "marks": marks(view),
            "ridge": [{"intensity": ridge, "label": f"ridge {ridge:.0f}"}],
        },
        params=PICKED,
    )


def marks(view: View) -> list[Row]:
    """Return the limit of each curve at the end of the axis, and the crossovers on it."""
    last = view.contexts[-1]["batch"]
    rows = []
    for limit in view.limits:
        ends = (
            (KINDS[0], last, limit["saturation_intensity"]),
            (KINDS[1], limit["crossover_batch"], limit["ridge_point"]),
        )
        rows += [
            {"kind": kind, "batch": batch, "intensity": intensity, "context": limit["context"]}
            for kind, batch, intensity in ends
            if batch is not None and intensity is not None and batch <= last
        ]
    return rows
