"""Pictures of a recommendation: what each accelerator gives, and how its curve runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from planner.pictures.style import BLUE, GREY, RED, Spec, layer, log_axis, picture, value, word
from planner.plans.batches import Option
from planner.plans.sized import SizedOption

X = log_axis("tpot_ms", "TPOT [ms]", axis={"format": "~g", "labelOverlap": "greedy"})
Y = log_axis("tokens_per_s_per_gpu", "tokens/s per GPU")
FRONT = ("nothing beats it", "beaten")


def choices_chart(choices: Sequence[Option]) -> Spec:
    """Return time per token against tokens/s per GPU of each choice, the front joined."""
    front = front_of(choices)
    rows = [
        {
            "gpu": one.gpu,
            "tp": one.tp,
            "batch": one.batch,
            "tpot_ms": one.tpot_s.p50 * 1e3,
            "tokens_per_s_per_gpu": one.tokens_per_s_per_gpu,
            "status": FRONT[0] if one in front else FRONT[1],
        }
        for one in choices
    ]
    status = {"field": "status", "type": "nominal", "title": None}
    tooltip = [
        word("gpu", "accelerator"),
        value("tp", "tp", "d"),
        value("batch", "batch", ",d"),
        value("tpot_ms", "TPOT [ms]", ".3~g"),
        value("tokens_per_s_per_gpu", "tokens/s per GPU"),
    ]
    best = [row for row in rows if row["status"] == FRONT[0]]
    return picture(
        "choices",
        "Time per token against tokens/s per GPU of each accelerator at the batch to run",
        [
            layer("front", {"type": "line", "color": BLUE}, {"x": X, "y": Y}),
            layer(
                "choices",
                {"type": "point", "filled": True, "size": 70},
                {
                    "x": X,
                    "y": Y,
                    "color": {**status, "scale": {"domain": list(FRONT), "range": [BLUE, GREY]}},
                    "shape": {
                        **status,
                        "scale": {"domain": list(FRONT), "range": ["circle", "cross"]},
                    },
                    "tooltip": tooltip,
                },
            ),
            layer(
                "front",
                {"type": "text", "dy": -10, "limit": 120},
                {"x": X, "y": Y, "text": {"field": "gpu"}},
            ),
        ],
        {"choices": rows, "front": sorted(best, key=lambda row: row["tpot_ms"])},
    )


def band_chart(options: Sequence[SizedOption]) -> Spec:
    """Return the GPUs of each option, and the interval of 80% in which their need lies."""
    rows = band_rows(options)
    y: Spec = {"field": "option", "type": "nominal", "title": None, "sort": "ascending"}
    y |= {"axis": {"labelLimit": 260}}
    x = {"field": "gpus", "type": "quantitative", "title": "GPUs", "scale": {"zero": False}}
    tooltip = [
        word("option", "option"),
        value("gpus", "GPUs", ",d"),
        value("least", "needed at p10", ",d"),
        value("median", "needed at p50", ",d"),
        value("most", "needed at p90", ",d"),
    ]
    return picture(
        "band",
        "GPUs of each option (bar across), and where the number needed lies with 80% (line, median "
        "as a circle; dashed where no number is enough at p90)",
        [
            layer(
                "unbounded",
                {"type": "rule", "strokeWidth": 4, "strokeDash": [6, 4], "color": BLUE}
                | {"opacity": 0.5},
                {"y": y, "x": {**x, "field": "least"}, "x2": {"value": "width"}}
                | {"tooltip": tooltip},
            ),
            layer(
                "needed",
                {"type": "rule", "strokeWidth": 4, "color": BLUE, "opacity": 0.5},
                {"y": y, "x": {**x, "field": "least"}, "x2": {"field": "most"}, "tooltip": tooltip},
            ),
            layer(
                "needed",
                {"type": "point", "filled": True, "size": 70, "color": BLUE, "opacity": 1},
                {"y": y, "x": {**x, "field": "median"}, "tooltip": tooltip},
            ),
            layer(
                "options",
                {"type": "tick", "thickness": 3, "color": RED, "size": 18},
                {"y": y, "x": x, "tooltip": tooltip},
            ),
        ],
        {
            "options": rows,
            "needed": [row for row in rows if row["most"] is not None],
            "unbounded": [row for row in rows if row["most"] is None and row["least"] is not None],
        },
    ) | {"height": 60 + 40 * len(rows)}


def band_rows(options: Sequence[SizedOption]) -> list[dict[str, Any]]:
    """Return the GPUs that each option has and needs; an end that no number meets is null."""
    return [
        {
            "option": f"{number:>2}. {one.gpus}× {one.gpu}, {one.engine or 'no engine'}",
            "gpus": one.gpus,
            "least": one.gpus_needed.p10,
            "median": one.gpus_needed.p50,
            "most": one.gpus_needed.p90,
        }
        for number, one in enumerate(options, 1)
    ]


def front_of(choices: Sequence[Option]) -> list[Option]:
    """Return the choices for which no other is faster per token and gives more per GPU."""
    front: list[Option] = []
    for one in sorted(choices, key=lambda c: (c.tpot_s.p50, -c.tokens_per_s_per_gpu)):
        if not front or one.tokens_per_s_per_gpu > front[-1].tokens_per_s_per_gpu:
            front.append(one)
    return front


def sparkline(values: Sequence[float], mark: int | None = None) -> dict[str, Any]:
    """Return the path of a small curve in a box of 100×24, and the place of one value on it."""
    if not values:
        return {"path": "", "x": 0.0, "y": 0.0}
    top, last = max(values) or 1.0, max(len(values) - 1, 1)
    points = [(100 * i / last, 22 - 20 * v / top) for i, v in enumerate(values)]
    path = "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in points)
    x, y = points[mark if mark is not None else -1]
    return {"path": path, "x": round(x, 1), "y": round(y, 1)}
