"""Answers in a notebook: a plan as HTML, and its pictures as objects that show themselves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from planner.answer import Plan, Point
from planner.deployment import deployment_of
from planner.pictures.charts import chart
from planner.pictures.files import render, write
from planner.pictures.style import THEMES, Spec
from planner.pictures.view import look
from planner.plans.verdict import verdict
from planner.units import number, percent, scaled, seconds

MEDIA_TYPE = "application/vnd.vegalite.v6+json"
POINT_HEAD = ("batch", "context", "TPOT", "p10 – p90", "tokens/s", "per GPU", "MBU", "MFU", "bound")


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture that a notebook shows: Vega-Lite, and SVG where the extra `page` is installed."""

    spec: Spec
    theme: str = "light"

    def to_dict(self) -> Spec:
        """Return the Vega-Lite specification, for Altair's `Chart.from_dict` and the like."""
        return {**self.spec, "config": THEMES[self.theme]}

    def save(self, path: str | Path) -> None:
        """Write a .svg, .png or .html file; raises NoRenderer."""
        write(self.spec, Path(path), self.theme)

    def _repr_mimebundle_(self, **_: Any) -> dict[str, Any]:
        bundle: dict[str, Any] = {MEDIA_TYPE: self.to_dict(), "text/plain": repr(self)}
        if find_spec("vl_convert") is not None:
            bundle["image/svg+xml"] = render(self.spec, "svg", self.theme).decode()
        return bundle

    def __repr__(self) -> str:
        return f"Picture({self.spec['name']}: {self.spec['description']})"


def drawn(plan: Plan, picture: str, theme: str) -> Picture:
    """Return a picture of a plan by name; raises UnknownChart, and ValueError for a theme."""
    if theme not in THEMES:
        raise ValueError(f"theme: {theme!r}; accepted: {', '.join(THEMES)}")
    return Picture(chart(picture, look(plan.scenario, plan)), theme)


def as_html(plan: Plan) -> str:
    """Return a plan as HTML: its verdict, its points and its limits, every text escaped."""
    held = deployment_of(plan.scenario).memory.max_batch
    points = [_point(one, one.batch <= held(one.context)) for one in plan.points]
    limits, memory = plan.limits, plan.memory
    crossover = "never" if limits.crossover_batch is None else f"{limits.crossover_batch:,}"
    facts = [
        ("ridge point", f"{number(limits.ridge_point)} FLOP/byte"),
        ("saturation intensity", f"{number(limits.saturation_intensity)} FLOP/byte"),
        ("crossover batch", crossover),
        ("weights", f"{scaled(memory.weights_bytes_per_gpu, 'B')} per GPU"),
        ("KV pool", f"{scaled(memory.kv_pool_bytes_per_gpu, 'B')} per GPU"),
        ("largest batch", f"{memory.max_batch:,}"),
    ]
    notes = "".join(f"<li>{escape(note.text)}</li>" for note in plan.notes)
    return (
        f"<p><strong>{escape(verdict(plan))}</strong></p>"
        + _table(POINT_HEAD, points)
        + _table(("limit", "value"), facts)
        + (f"<ul>{notes}</ul>" if notes else "")
    )


def _point(one: Point, fits: bool) -> tuple[str, ...]:
    """Return a point as cells; one that does not fit has no rate."""
    head = (f"{one.batch:,}", f"{one.context:,}")
    if not fits:
        return (*head, "does not fit", *["–"] * 5, one.bound)
    return (
        *head,
        seconds(one.tpot_s.p50),
        f"{seconds(one.tpot_s.p10)} – {seconds(one.tpot_s.p90)}",
        number(one.tokens_per_s),
        number(one.tokens_per_s_per_gpu),
        percent(one.mbu),
        percent(one.mfu),
        one.bound,
    )


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    if not rows:
        return ""
    titles = "".join(f"<th>{escape(cell)}</th>" for cell in head)
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows
    )
    return f"<table><thead><tr>{titles}</tr></thead><tbody>{body}</tbody></table>"
