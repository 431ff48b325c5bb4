"""Where the time of a step and the memory of a GPU go, as one bar each."""

from __future__ import annotations

from typing import Any

from planner.pictures.style import BOUND_COLOUR, PALETTE, Spec, layer, picture, value, word
from planner.pictures.view import View

BAR_HEIGHT = 180
"""Of the picture of one bar [pixel]."""
MEMORY_PARTS = (
    "weights",
    "KV cache in use",
    "KV cache free",
    "activations",
    "buffers, graphs, adapters",
    "left free",
)


def time_chart(view: View) -> Spec:
    """Return the time of each kernel of the last point, longest first, by what holds it back."""
    rows: list[dict[str, Any]] = [
        {
            "kernel": kernel.name,
            "time_ms": kernel.time_s * 1e3,
            "share": kernel.share,
            "bound": kernel.bound,
            "text": f"{kernel.share:.0%}",
        }
        for kernel in view.plan.kernels
    ]
    longest_first = {"field": "time_ms", "op": "max", "order": "descending"}
    y = {"field": "kernel", "type": "nominal", "title": None, "sort": longest_first}
    x = {"field": "time_ms", "type": "quantitative", "title": "time in one step [ms]"}
    tooltip = [
        word("kernel", "kernel"),
        value("time_ms", "time [ms]", ".3~g"),
        value("share", "share", ".1%"),
        word("bound", "held back by"),
    ]
    return picture(
        "time",
        f"Time of each kernel in one step at batch {view.batch}, and what holds it back",
        [
            layer("kernels", "bar", {"y": y, "x": x, "color": BOUND_COLOUR, "tooltip": tooltip}),
            layer(
                "kernels",
                {"type": "text", "align": "left", "dx": 4},
                {"y": y, "x": x, "text": {"field": "text"}},
            ),
        ],
        {"kernels": rows},
    )


def memory_rows(view: View) -> list[dict[str, Any]]:
    """Return what the memory of one GPU holds at the last batch, as the plan has it [byte].

    The share of the pool in use is batch/largest batch.
    """
    memory = view.plan.memory
    total = float(view.deployment.accelerator.memory_bytes or 0)
    pool, weights = memory.kv_pool_bytes_per_gpu, memory.weights_bytes_per_gpu
    share = min(1.0, view.batch / memory.max_batch) if memory.max_batch else 0.0
    others = (
        memory.activation_bytes_per_gpu,
        memory.buffer_bytes_per_gpu + memory.graph_bytes_per_gpu + memory.adapter_bytes_per_gpu,
    )
    free = max(0.0, total - weights - pool - sum(others))
    parts = (weights, pool * share, pool * (1.0 - share), *others, free)
    return [
        {
            "part": name,
            "gigabytes": amount / 1e9,
            "share": amount / total if total else 0.0,
            "bar": "memory of a GPU",
            "place": place,
        }
        for place, (name, amount) in enumerate(zip(MEMORY_PARTS, parts, strict=True))
    ]


def memory_chart(view: View) -> Spec:
    """Return one stacked bar of the memory of a GPU, and a line at what there is."""
    colour = {
        "field": "part",
        "type": "nominal",
        "title": None,
        "scale": {"domain": list(MEMORY_PARTS), "range": list(PALETTE[: len(MEMORY_PARTS)])},
    }
    bar = layer(
        "memory",
        {"type": "bar", "height": 56},
        {
            "x": {"field": "gigabytes", "type": "quantitative", "title": "GB on one GPU"},
            "color": colour,
            "order": {"field": "place", "type": "quantitative"},
            "tooltip": [
                word("part", "part"),
                value("gigabytes", "GB", ".3~g"),
                value("share", "share", ".1%"),
            ],
        },
    )
    total = layer(
        "total",
        {"type": "rule", "strokeDash": [6, 4], "strokeWidth": 2},
        {
            "x": {"field": "gigabytes", "type": "quantitative"},
            "tooltip": value("gigabytes", "memory of the GPU [GB]", ".4~g"),
        },
    )
    memory = view.deployment.accelerator.memory_bytes
    drawn = picture(
        "memory",
        f"What the memory of one GPU holds at batch {view.batch}",
        [bar, total],
        {"memory": memory_rows(view), "total": [{"gigabytes": memory / 1e9}] if memory else []},
    )
    return drawn | {"height": BAR_HEIGHT}
