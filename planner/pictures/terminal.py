"""Plots made of characters, for a terminal."""

from __future__ import annotations

import math
from collections.abc import Sequence

from planner.pictures.roofline import kernel_points, roofs_of, step_path
from planner.pictures.view import View

COLUMNS, ROWS = 64, 16
"""Characters of a plot, axes left out."""
Point = tuple[float, float]


def plot(series: Sequence[tuple[str, Sequence[Point]]], x_title: str, y_title: str) -> str:
    """Return curves on logarithmic axes; each is drawn with its own character.

    Points at or below zero have no place on them and are left out.
    """
    drawn = [(mark, [(x, y) for x, y in points if x > 0 and y > 0]) for mark, points in series]
    every = [point for _, points in drawn for point in points]
    if not every:
        return f"{y_title}: nothing to plot"
    (left, right), (low, high) = _span([x for x, _ in every]), _span([y for _, y in every])
    canvas = [[" "] * COLUMNS for _ in range(ROWS)]
    for mark, points in drawn:
        for x, y in points:
            column = round((COLUMNS - 1) * math.log(x / left) / math.log(right / left))
            row = round((ROWS - 1) * math.log(y / low) / math.log(high / low))
            canvas[ROWS - 1 - row][column] = mark[0]
    lines = [y_title]
    for number, cells in enumerate(canvas):
        value = high * (low / high) ** (number / (ROWS - 1))
        label = f"{_short(value):>7}" if number % 5 == 0 else " " * 7
        lines.append(f"{label} │{''.join(cells).rstrip()}")
    lines.append(f"{'':7} └{'─' * COLUMNS}")
    middle = _short(math.sqrt(left * right))
    half = COLUMNS // 2
    lines.append(f"{'':9}{_short(left):<{half}}{middle}{_short(right):>{half - len(middle)}}")
    names = "   ".join(f"{mark[0]} {mark[1:].strip()}" for mark, _ in series)
    return "\n".join([*lines, f"{'':9}{x_title}", f"{'':9}{names}"])


def _span(values: Sequence[float]) -> tuple[float, float]:
    low, high = min(values), max(values)
    return (low, high) if high > low else (low / 2, high * 2)


def _short(value: float) -> str:
    for factor, prefix in ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= factor:
            return f"{value / factor:.3g}{prefix}"
    return f"{value:.3g}"


def curves(view: View) -> str:
    """Return tokens/s per GPU and TPOT over the batch, as far as memory holds it."""
    held = [row for row in view.curve if row["fits"]] or view.curve[:1]
    rate = [(row["batch"], row["tokens_per_s_per_gpu"]) for row in held]
    time = [(row["batch"], row["tpot_p50_s"] * 1e3) for row in held]
    return "\n\n".join(
        (
            plot([("o tokens/s per GPU", rate)], "batch", "tokens/s per GPU"),
            plot([("x TPOT [ms]", time)], "batch", "TPOT [ms]"),
        )
    )


def intensity(view: View) -> str:
    """Return the intensity of a step over the batch, and the ridge."""
    rows = [(row["batch"], row["arithmetic_intensity"]) for row in view.curve]
    ridge = view.plan.limits.ridge_point
    return plot(
        [("- ridge", [(x, ridge) for x, _ in rows]), ("o step", rows)], "batch", "FLOP/byte"
    )


def roofline(view: View) -> str:
    """Return the specified roof, the kernels of the last point and the step over the batch."""
    kernels = [(row["intensity"], row["rate"]) for row in kernel_points(view)]
    path = [(row["intensity"], row["rate"]) for row in step_path(view)]
    roofs = roofs_of(view.roofs, view.deployment.step.formats)
    low = min(x for x, _ in (*kernels, *path)) / 2
    high = 4 * max(roof["ridge"] for roof in roofs)
    steps = [low * (high / low) ** (i / (4 * COLUMNS)) for i in range(4 * COLUMNS + 1)]
    lines = [
        (x, min(roof["peak"], roof["bandwidth"] * x))
        for roof in roofs
        if roof["kind"] == "specified"
        for x in steps
    ]
    return plot(
        [("· roof", lines), ("o step over the batch", path), ("# kernels", kernels)],
        "FLOP/byte",
        "FLOP/s on one GPU",
    )


PLOTS = {"roofline": roofline, "intensity": intensity, "throughput": curves}
"""What a terminal can plot, by the name of the picture."""
