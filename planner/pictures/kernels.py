"""Pictures of kernels placed on a machine's roofline, a model's or typed ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from planner.pictures.roofline import ROOF_LOOK, roof_line, roofs_of
from planner.pictures.style import (
    BOUND_COLOUR,
    BOUND_SHAPE,
    Spec,
    layer,
    log_axis,
    picture,
    value,
    word,
)
from planner.step.placement import Roofline
from planner.step.typed import TypedKernel

X = log_axis(
    "intensity",
    "arithmetic intensity [FLOP/byte]",
    axis={"format": ",~g", "labelOverlap": "greedy", "tickCount": 8},
)
Y = log_axis("rate", "attainable FLOP/s")
MARGIN = 3.0


def placed_rows(placed: Roofline) -> list[dict[str, Any]]:
    """Return the kernels of a model's layers at their intensity and attainable rate [FLOP/s]."""
    return [
        {
            "name": f"{one.layer} {one.name}",
            "intensity": one.arithmetic_intensity,
            "rate": one.attainable_flops_per_s,
            "bound": one.bound,
            "time_us": one.time_s * 1e6,
            "format": one.format,
        }
        for one in placed.kernels
    ]


def typed_rows(typed: TypedKernel) -> list[dict[str, Any]]:
    """Return each way to run a typed kernel at its intensity and attainable rate [FLOP/s]."""
    return [
        {
            "name": way.way,
            "intensity": way.arithmetic_intensity,
            "rate": way.attainable_flops_per_s,
            "bound": way.bound,
            "time_us": way.time_s * 1e6,
            "format": typed.compute_format,
        }
        for way in typed.ways
    ]


def kernels_chart(rows: list[dict[str, Any]], ridges: Sequence[dict[str, Any]]) -> Spec:
    """Return kernels on the roofs of the formats they run in, as specified and as measured."""
    used = roofs_of(list(ridges), {row["format"] for row in rows})
    drawn = [row["intensity"] for row in rows]
    low = min(drawn) / MARGIN
    high = MARGIN * max([*drawn, *(roof["ridge"] for roof in used)])
    roofs = [point for roof in used for point in roof_line(roof, low, high)]
    tooltip = [
        word("name", "kernel"),
        value("intensity", "FLOP/byte", ".4~g"),
        value("rate", "attainable FLOP/s"),
        value("time_us", "time [µs]", ".3~g"),
        word("bound", "held back by"),
    ]
    return picture(
        "kernels",
        "Kernels on the roofline: attainable FLOP/s against arithmetic intensity",
        [
            layer(
                "roofs", {"type": "line", "interpolate": "linear"}, {"x": X, "y": Y, **ROOF_LOOK}
            ),
            layer(
                "roofs",
                {"type": "text", "align": "right", "dy": -7},
                {"x": X, "y": Y, "text": {"field": "label"}},
                transform=[{"filter": "datum.label != ''"}],
            ),
            layer(
                "kernels",
                {"type": "point", "filled": True, "size": 90},
                {"x": X, "y": Y, "color": BOUND_COLOUR, "shape": BOUND_SHAPE, "tooltip": tooltip},
            ),
            layer(
                "kernels",
                {"type": "text", "align": "left", "dx": 8, "dy": 10, "limit": 130},
                {"x": X, "y": Y, "text": {"field": "name"}},
            ),
        ],
        {"roofs": roofs, "kernels": rows},
    )
