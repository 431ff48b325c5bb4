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
from planner.pictures.view import View

X = log_axis("batch", "batch [sequences]")
Y = log_axis("intensity", "arithmetic intensity [FLOP/byte]")


def intensity_chart(view: View) -> Spec:
    """Return the intensity of a step over the batch: curves, their limits, ridge, crossovers."""
    last = view.contexts[-1]["batch"]
    names = [f"{limit['context']:,} tokens" for limit in view.limits]
    curves = [
        {
            "batch": row["batch"],
            "intensity": row["arithmetic_intensity"],
            "context": f"{row['context']:,} tokens",
            "fits": "fits" if row["fits"] else "does not fit",
        }
        for row in view.contexts
    ]
    limits, crossovers = [], []
    for limit, name in zip(view.limits, names, strict=True):
        if limit["saturation_intensity"] is not None:
            limits.append(
                {"batch": last, "intensity": limit["saturation_intensity"], "context": name}
            )
        if limit["crossover_batch"] is not None and limit["crossover_batch"] <= last:
            crossovers.append(
                {
                    "batch": limit["crossover_batch"],
                    "intensity": limit["ridge_point"],
                    "context": name,
                }
            )
    colour = {
        "field": "context",
        "type": "nominal",
        "title": "context",
        "scale": {"domain": names, "range": list(PALETTE[: len(names)])},
    }
    tooltip = [
        value("batch", "batch", ",d"),
        value("intensity", "FLOP/byte", ".3~g"),
        word("context", "context"),
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
                "color": colour,
                "strokeDash": {
                    "field": "fits",
                    "type": "nominal",
                    "title": "memory",
                    "scale": {"domain": ["fits", "does not fit"], "range": [[1, 0], [3, 4]]},
                },
            },
        ),
        pointer("curves", {"x": X, "y": Y, "tooltip": tooltip}),
        layer(
            "limits",
            {"type": "tick", "thickness": 3, "size": 16},
            {"x": X, "y": Y, "color": colour, "tooltip": [*tooltip[1:]]},
        ),
        layer(
            "crossovers",
            {"type": "point", "shape": "cross", "filled": True, "size": 120},
            {"x": X, "y": Y, "color": colour, "tooltip": tooltip},
        ),
        layer(
            "curves",
            {"type": "point", "size": 110, "strokeWidth": 2.5},
            {"x": X, "y": Y, "color": colour, "opacity": ONLY_PICKED},
        ),
    ]
    return picture(
        "intensity",
        "Arithmetic intensity of a decode step against the batch at several contexts, with the "
        "ridge point and the limit each curve approaches",
        layers,
        {
            "curves": curves,
            "limits": limits,
            "crossovers": crossovers,
            "ridge": [{"intensity": ridge, "label": f"ridge {ridge:.0f}"}],
        },
        params=PICKED,
    )
