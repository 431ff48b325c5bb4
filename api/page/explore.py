"""The view of one scenario: its verdict, what it was resolved to, its pictures and tables."""

from __future__ import annotations

import json
import shlex
from typing import Any
from urllib.parse import urlencode

from api.page.figures import POINT_HEAD, figures, point_rows
from api.page.form import Filled
from api.page.render import fragment
from api.page.service import Pages
from api.page.shown import errors_of
from api.web.problem import Problem
from planner.pictures import CHARTS, View, chart
from planner.plans.resolved import resolved
from planner.plans.verdict import verdict
from planner.scenario import Scenario
from planner.units import number, percent, scaled, seconds

KERNEL_HEAD = ("kernel", "launches", "FLOP", "bytes", "FLOP/byte", "time", "share", "bound")
NEARNESS = "nearness"
"""Code of the note that says how near measured runs are."""


def answer(pages: Pages, filled: Filled) -> View | None:
    """Return the view of a form; what is wrong with it is added to its errors."""
    if filled.scenario is None:
        return None
    try:
        return pages.look(filled.scenario)
    except Problem as problem:
        filled.errors.update(errors_of(problem))
        return None


def parts(view: View, filled: Filled) -> dict[str, str]:
    """Return the texts of the answer by the id of the element that holds them."""
    plan = view.plan
    notes = {note.code: note.text for note in plan.notes}
    return {
        "answer": fragment(
            "explore_answer.html",
            plan=plan,
            verdict=verdict(plan),
            resolved=resolved(plan, view.deployment),
        ),
        "details": fragment(
            "explore_details.html",
            plan=plan,
            points=point_rows(plan, view.deployment.memory),
            point_head=POINT_HEAD,
            figures=figures(plan),
            kernels=_kernels(view),
            kernel_head=KERNEL_HEAD,
            settings=[
                (each.name, setting(each.value), each.source) for each in plan.memory.settings
            ],
            levers=[(lever.text, f"{lever.gain:.2f}× faster") for lever in plan.advice or ()],
            nearness=notes.get(NEARNESS, ""),
            mark=urlencode(
                {"model": view.deployment.spec.id, "gpu": view.deployment.accelerator.id}
            ),
            command=command_of(filled.texts),
            request=request_of(filled.scenario),
        ),
    }


def _kernels(view: View) -> list[tuple[str, ...]]:
    return [
        (
            kernel.name,
            f"{kernel.count:,}",
            scaled(kernel.flops, ""),
            scaled(kernel.bytes, "B"),
            number(kernel.arithmetic_intensity),
            seconds(kernel.time_s),
            percent(kernel.share),
            kernel.bound,
        )
        for kernel in view.plan.kernels
    ]


def setting(value: float | str | None) -> str:
    """Return a setting of an engine as it is shown."""
    if isinstance(value, bool):
        return "on" if value else "off"
    return f"{value:,}" if isinstance(value, int) else str(value)


def command_of(texts: dict[str, str]) -> str:
    """Return the command that answers the same."""
    words = ["planner", "plan", texts.get("model", "MODEL")]
    for name, text in texts.items():
        if name != "model":
            words += [f"--{name.replace('_', '-')}", text]
    return shlex.join(words)


def request_of(scenario: Scenario | None) -> str:
    """Return the request that answers the same."""
    if scenario is None:
        return ""
    body = json.dumps(scenario.model_dump(mode="json", exclude_defaults=True))
    quoted = shlex.quote(body)
    return f"curl -s localhost:8000/v1/plans -H 'Content-Type: application/json' \\\n  -d {quoted}"


def specifications(view: View) -> dict[str, Any]:
    """Return the specification of every picture, by name."""
    return {name: chart(name, view) for name in CHARTS}
