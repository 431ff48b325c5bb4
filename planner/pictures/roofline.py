"""The roofline of a scenario: its roofs, the kernels of a step, and the step as the batch grows."""

from __future__ import annotations

from typing import Any

from planner.pictures.style import (
    BOUND_COLOUR,
    BOUND_SHAPE,
    GREY,
    ONLY_PICKED,
    PICKED,
    RED,
    Spec,
    layer,
    log_axis,
    picture,
    pointer,
    value,
    word,
)
from planner.pictures.view import View

MARGIN = 3.0
"""How far the axis reaches past what is drawn on it, as a factor [-]."""
X = log_axis(
    "intensity",
    "arithmetic intensity [FLOP/byte]",
    axis={"format": ",~g", "labelOverlap": "greedy", "tickCount": 8},
)
Y = log_axis("rate", "FLOP/s on one GPU")

Row = dict[str, Any]

ROOF_LOOK: dict[str, Any] = {
    "color": {"value": GREY},
    "strokeDash": {
        "field": "kind",
        "type": "nominal",
        "title": "roof",
        "legend": {"columns": 1},
        "scale": {"domain": ["specified", "measured"], "range": [[1, 0], [5, 4]]},
    },
    "detail": {"field": "roof", "type": "nominal"},
}
"""How roofs are drawn: one line each, dashed where it was measured."""


def roofline_chart(view: View) -> Spec:
    """Return the roofs, every kernel of the last point, and the whole step over the batch."""
    kernels, path = kernel_points(view), step_path(view)
    used = roofs_of(view.roofs, view.deployment.step.formats)
    drawn = [row["intensity"] for row in (*kernels, *path)]
    low, high = min(drawn) / MARGIN, MARGIN * max([*drawn, *(roof["ridge"] for roof in used)])
    roofs = [point for roof in used for point in roof_line(roof, low, high)]
    lines = layer(
        "roofs",
        {"type": "line", "interpolate": "linear"},
        {
            "x": X,
            "y": Y,
            **ROOF_LOOK,
            "tooltip": [word("roof", "roof"), value("ridge", "ridge [FLOP/byte]", ".4~g")],
        },
    )
    names = layer(
        "roofs",
        {"type": "text", "align": "right", "dy": -7},
        {"x": X, "y": Y, "text": {"field": "label"}},
        transform=[{"filter": "datum.label != ''"}],
    )
    step = layer(
        "path",
        {"type": "line", "color": RED, "strokeWidth": 2},
        {"x": X, "y": Y, "order": {"field": "batch", "type": "quantitative"}},
    )
    step_tooltip = [
        value("batch", "batch", ",d"),
        value("intensity", "step, FLOP/byte", ".3~g"),
        value("rate", "FLOP/s"),
        word("bound", "held back by"),
    ]
    chosen = layer(
        "path",
        {"type": "point", "filled": True, "color": RED, "size": 60},
        {"x": X, "y": Y, "tooltip": step_tooltip},
        transform=[{"filter": "datum.of_plan"}],
    )
    picked = layer(
        "path",
        {"type": "point", "color": RED, "size": 220, "strokeWidth": 2.5},
        {"x": X, "y": Y, "opacity": ONLY_PICKED},
    )
    placed = layer(
        "kernels",
        {"type": "point", "filled": True, "size": 70, "opacity": 0.95},
        {
            "x": X,
            "y": Y,
            "color": BOUND_COLOUR,
            "shape": BOUND_SHAPE,
            "tooltip": [
                word("name", "kernel"),
                value("intensity", "FLOP/byte", ".3~g"),
                value("rate", "FLOP/s"),
                value("share", "share of the step", ".1%"),
                word("bound", "held back by"),
            ],
        },
    )
    return picture(
        "roofline",
        "Roofline: FLOP/s on one GPU against arithmetic intensity, for each kernel of the step and "
        "for the whole step as the batch grows",
        [lines, names, step, pointer("path", {"x": X, "y": Y}), chosen, placed, picked],
        {"roofs": roofs, "path": path, "kernels": kernels},
        params=PICKED,
    )


def roofs_of(rows: list[Row], formats: Any) -> list[Row]:
    """Return the specified and, where published, the measured roof of each format in use."""
    roofs = []
    for row in rows:
        if row["format"] not in formats:
            continue
        roofs.append(_roof(row, "specified", "peak_flops_per_s", "bandwidth_bytes_per_s"))
        if row["measured_flops_per_s"] and row["measured_bandwidth_bytes_per_s"]:
            roofs.append(
                _roof(row, "measured", "measured_flops_per_s", "measured_bandwidth_bytes_per_s")
            )
    return roofs


def _roof(row: Row, kind: str, peak: str, bandwidth: str) -> Row:
    ridge = row["ridge_point"] if kind == "specified" else row["measured_ridge_point"]
    return {
        "roof": f"{row['format']}, {kind}",
        "kind": kind,
        "format": row["format"],
        "peak": row[peak],
        "bandwidth": row[bandwidth],
        "ridge": ridge,
    }


def roof_line(roof: Row, low: float, high: float) -> list[Row]:
    """Return the corners of a roof between two intensities [FLOP/byte], its name at the end."""
    corners = (
        (low, roof["bandwidth"] * low),
        (roof["peak"] / roof["bandwidth"], roof["peak"]),
        (high, roof["peak"]),
    )
    same = {name: roof[name] for name in ("roof", "kind", "ridge")}
    label = f"{roof['format']}: ridge {roof['ridge']:.0f}" if roof["kind"] == "specified" else ""
    return [
        {**same, "intensity": x, "rate": y, "label": label if x == high else ""} for x, y in corners
    ]


def kernel_points(view: View) -> list[Row]:
    """Return each kernel of the plan at its intensity and the rate it reaches [FLOP/s]."""
    return [
        {
            "name": kernel.name,
            "intensity": kernel.arithmetic_intensity,
            "rate": kernel.flops / kernel.time_s,
            "share": kernel.share,
            "bound": kernel.bound,
        }
        for kernel in view.plan.kernels
        if kernel.arithmetic_intensity and kernel.time_s > 0
    ]


def step_path(view: View) -> list[Row]:
    """Return the whole step at each batch: its intensity and the rate one GPU reaches [FLOP/s]."""
    gpus, tokens = view.deployment.sharding.gpus, view.deployment.tokens_per_step
    of_plan = {point.batch for point in view.plan.points}
    return [
        {
            "batch": row["batch"],
            "intensity": row["arithmetic_intensity"],
            "rate": row["flops"] / (row["tpot_p50_s"] * tokens * gpus),
            "bound": row["bound"],
            "fits": row["fits"],
            "of_plan": row["batch"] in of_plan,
        }
        for row in view.curve
    ]
