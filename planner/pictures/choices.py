"""Pictures of a recommendation: what each accelerator gives, and how its curve runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from planner.pictures.style import BLUE, GREY, Spec, layer, log_axis, picture, value, word
from planner.plans.batches import Option

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
