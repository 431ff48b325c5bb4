"""Plots made of characters, for a terminal."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from planner.pictures.roofline import kernel_points, roofs_of, step_path
from planner.pictures.view import View
from planner.plans.fleet import Fleet

COLUMNS, ROWS = 64, 16
"""Characters of a plot, axes left out."""
Point = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Axis:
    """Where values stand between the ends of an axis, which are 0 and 1."""

    low: float
    high: float
    linear: bool

    @classmethod
    def over(cls, values: Sequence[float], linear: bool) -> Axis:
        """Return the axis that holds the values; a linear one begins at zero."""
        low, high = (min(0.0, *values) if linear else min(values)), max(values)
        if high > low:
            return cls(low, high, linear)
        return cls(low, low + 1.0, linear) if linear else cls(low / 2, high * 2, linear)

    def place(self, value: float) -> float:
        """Return the place of a value [-]."""
        if self.linear:
            return (value - self.low) / (self.high - self.low)
        return math.log(value / self.low) / math.log(self.high / self.low)

    def value(self, place: float) -> float:
        """Return the value at a place."""
        if self.linear:
            return self.low + place * (self.high - self.low)
        return self.low * math.exp(place * math.log(self.high / self.low))


def plot(
    series: Sequence[tuple[str, Sequence[Point]]],
    x_title: str,
    y_title: str,
    *,
    linear: bool = False,
) -> str:
    """Return curves on logarithmic axes, or linear ones; each is drawn with its own character.

    Points at or below zero have no place on logarithmic axes and are left out there.
    """
    drawn = [
        (mark, [(x, y) for x, y in points if linear or (x > 0 and y > 0)])
        for mark, points in series
    ]
    every = [point for _, points in drawn for point in points]
    if not every:
        return f"{y_title}: nothing to plot"
    across, up = (Axis.over(values, linear) for values in zip(*every, strict=True))
    canvas = [[" "] * COLUMNS for _ in range(ROWS)]
    for mark, points in drawn:
        for x, y in points:
            column = round((COLUMNS - 1) * across.place(x))
            canvas[ROWS - 1 - round((ROWS - 1) * up.place(y))][column] = mark[0]
    lines = [y_title]
    for number, cells in enumerate(canvas):
        value = up.value(1.0 - number / (ROWS - 1))
        label = f"{_short(value):>7}" if number % 5 == 0 else " " * 7
        lines.append(f"{label} │{''.join(cells).rstrip()}")
    lines.append(f"{'':7} └{'─' * COLUMNS}")
    left, middle, right = (_short(across.value(place)) for place in (0.0, 0.5, 1.0))
    half = COLUMNS // 2
    lines.append(f"{'':9}{left:<{half}}{middle}{right:>{half - len(middle)}}")
    names = "   ".join(f"{mark[0]} {mark[1:].strip()}" for mark, _ in series)
    return "\n".join([*lines, f"{'':9}{x_title}", f"{'':9}{names}"])


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


def fleet(result: Fleet) -> str:
    """Return GPUs over the hours by each way of scaling; the least needed is drawn on top."""
    lines = {line.name: line.gpus for line in result.lines}
    end = result.windows * result.request.window_s / 3600.0
    columns = [i / (COLUMNS - 1) for i in range(COLUMNS)]
    series = [
        (
            mark,
            [
                (x * end, lines[name][min(int(x * result.windows), result.windows - 1)])
                for x in columns
            ],
        )
        for name, mark in FLEET_MARKS.items()
    ]
    return plot(series, "hour", "GPUs", linear=True)


FLEET_MARKS = {"static": "- static", "autoscaled": "o autoscaled", "perfect": "· perfect"}
PLOTS = {"roofline": roofline, "intensity": intensity, "throughput": curves}
"""What a terminal can plot, by the name of the picture."""
