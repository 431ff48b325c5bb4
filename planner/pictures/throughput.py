"""Tokens per second and time per token against the batch, with intervals and limits."""

from __future__ import annotations

from planner.pictures.style import (
    BLUE,
    GREY,
    ONLY_PICKED,
    ORANGE,
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
from planner.pictures.view import Row, View

X = log_axis("batch", "batch [sequences]")
RATE = log_axis(
    "tokens_per_s_per_gpu",
    "tokens/s per GPU",
    axis={"titleColor": BLUE, "format": "~s", "labelOverlap": "greedy"},
)
TIME = log_axis(
    "tpot_ms",
    "TPOT [ms]",
    axis={"titleColor": ORANGE, "orient": "right", "grid": False, "labelOverlap": "greedy"},
)


def throughput_chart(view: View) -> Spec:
    """Return both over the batch: bands of 80%, what memory and engine hold, the limit on TPOT."""
    gpus = view.deployment.sharding.gpus * view.plan.scenario.replicas
    curve = [
        {
            "batch": row["batch"],
            "tokens_per_s_per_gpu": row["tokens_per_s_per_gpu"],
            "rate_p10": row["tokens_per_s_p10"] / gpus,
            "rate_p90": row["tokens_per_s_p90"] / gpus,
            "tpot_ms": row["tpot_p50_s"] * 1e3,
            "tpot_p10_ms": row["tpot_p10_s"] * 1e3,
            "tpot_p90_ms": row["tpot_p90_s"] * 1e3,
            "fits": "yes" if row["fits"] else "no",
        }
        for row in view.curve
    ]
    tooltip = [
        value("batch", "batch", ",d"),
        value("tokens_per_s_per_gpu", "tokens/s per GPU"),
        value("tpot_ms", "TPOT [ms]", ".3~g"),
        word("fits", "fits"),
    ]
    fit = {"condition": {"test": "datum.fits == 'yes'", "value": 1}, "value": 0.15}
    rate = {
        "layer": [
            layer(
                "curve",
                {"type": "area", "color": BLUE, "opacity": 0.18},
                {"x": X, "y": {**RATE, "field": "rate_p10"}, "y2": {"field": "rate_p90"}},
            ),
            layer("curve", {"type": "line", "color": BLUE, "strokeWidth": 2}, {"x": X, "y": RATE}),
            layer(
                "curve",
                {"type": "point", "filled": True, "color": BLUE, "size": 22},
                {"x": X, "y": RATE, "opacity": fit},
            ),
            pointer("curve", {"x": X, "y": RATE, "tooltip": tooltip}),
        ]
    }
    time_layers = [
        layer(
            "curve",
            {"type": "area", "color": ORANGE, "opacity": 0.18},
            {"x": X, "y": {**TIME, "field": "tpot_p10_ms"}, "y2": {"field": "tpot_p90_ms"}},
        ),
        layer(
            "curve",
            {"type": "line", "color": ORANGE, "strokeWidth": 2, "strokeDash": [7, 3]},
            {"x": X, "y": TIME},
        ),
        layer(
            "limit",
            {"type": "rule", "color": RED, "strokeDash": [2, 3]},
            {
                "y": TIME,
                "opacity": {"condition": {"test": "datum.set", "value": 1}, "value": 0},
                "tooltip": value("tpot_ms", "limit on TPOT [ms]", ".3~g"),
            },
        ),
    ]
    marks = [
        layer(
            "stops",
            {"type": "rule", "color": GREY, "strokeDash": [6, 4]},
            {"x": X, "tooltip": [word("label", "limit"), value("batch", "batch", ",d")]},
        ),
        layer(
            "stops",
            {"type": "text", "align": "left", "dx": 4, "baseline": "top"},
            {
                "x": X,
                "y": {"field": "line", "type": "quantitative", "scale": None, "axis": None},
                "text": {"field": "label"},
            },
        ),
        layer("picked_batch", {"type": "rule", "color": RED}, {"x": X, "opacity": ONLY_PICKED}),
    ]
    return picture(
        "throughput",
        "Tokens per second of one GPU (solid) and time per output token (dashed) against the "
        "batch, with bands of 80%, and the batches that memory and engine hold",
        [rate, {"layer": time_layers}, {"layer": marks}],
        {
            "curve": curve,
            "stops": stops(view),
            "limit": limit_rows(view, curve),
            "picked_batch": [{"batch": row["batch"]} for row in view.curve],
        },
        params=PICKED,
        resolve={"scale": {"y": "independent"}},
    )


def limit_rows(view: View, curve: list[Row]) -> list[Row]:
    """Return the limit on TPOT; where there is none, a row that is not seen keeps its layer."""
    limit = view.plan.scenario.tpot_ms
    if limit is None:
        return [{"tpot_ms": curve[0]["tpot_ms"], "set": False}]
    return [{"tpot_ms": limit, "set": True}]


def stops(view: View) -> list[Row]:
    """Return the batches at which something stops growth: memory, the engine's cap, crossover."""
    last = view.curve[-1]["batch"]
    most = view.plan.memory.max_batch
    named = (
        ("memory holds" if view.plan.memory.binds == "memory" else "engine runs", most),
        ("crossover", view.plan.limits.crossover_batch),
        ("knee", view.plan.limits.knee_batch),
    )
    rows = [
        {"label": f"{name} {batch:,}", "batch": batch}
        for name, batch in named
        if batch is not None and 1 <= batch <= last
    ]
    return [{**row, "line": 4 + 14 * index} for index, row in enumerate(rows)]
