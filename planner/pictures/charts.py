"""The pictures of a scenario by name."""

from __future__ import annotations

from collections.abc import Callable

from planner.errors import InvalidInput
from planner.pictures.intensity import intensity_chart
from planner.pictures.roofline import roofline_chart
from planner.pictures.shares import memory_chart, time_chart
from planner.pictures.style import Spec
from planner.pictures.throughput import throughput_chart
from planner.pictures.view import View

CHARTS: dict[str, Callable[[View], Spec]] = {
    "roofline": roofline_chart,
    "intensity": intensity_chart,
    "throughput": throughput_chart,
    "time": time_chart,
    "memory": memory_chart,
}


class UnknownChart(InvalidInput):
    """No picture has that name."""


def chart(name: str, view: View) -> Spec:
    """Return the Vega-Lite specification of a picture; raises UnknownChart."""
    if name not in CHARTS:
        raise UnknownChart(f"chart: {name!r} is not a picture; accepted: {', '.join(CHARTS)}")
    return CHARTS[name](view)
