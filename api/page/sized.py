"""What serves a workload on the page: how many GPUs, their band, cost, and what starts them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

from api.page.explore import command_of
from api.page.reading import texts_of_scenario
from planner.commands.sized import band, sized_verdict
from planner.errors import InvalidInput, one_line
from planner.handover.writing import write
from planner.plans.sized import Sized, SizedOption
from planner.scenario import Scenario
from planner.units import number, percent, seconds

HEAD = (
    "option",
    "GPUs",
    "needed, 80%",
    "limits hold",
    "TTFT",
    "TPOT",
    "whole request",
    "tokens/s per GPU",
    "$/month",
    "$/M output",
    "bound by",
)
BEST = ("cheapest", "fastest", "smallest")
WRITTEN = {"command": "Command that starts a replica", "deployment": "Kubernetes Deployment"}
"""What is written of an option, and its heading."""


def answer(sized: Sized, texts: Mapping[str, str]) -> dict[str, Any]:
    """Return the values of the template that shows an answer to a workload."""
    titles: dict[int, list[str]] = {}
    for title in BEST:
        at = getattr(sized, title)
        if at is not None:
            titles.setdefault(at, []).append(title)
    options = list(sized.options) or ([sized.nearest.option] if sized.nearest else [])
    return {
        "verdict": sized_verdict(sized),
        "met": bool(sized.options),
        "head": HEAD,
        "rows": [_row(one, texts, titles.get(at, [])) for at, one in enumerate(options)],
        "relax": sized.nearest.relax if sized.nearest else [],
        "refused": [(one.gpu, f"{one.count} options: {one.reason}") for one in sized.refused],
        "notes": list({note.text: note for one in options for note in one.notes}.values()),
        "handovers": [
            {"title": f"{', '.join(titles.get(at, []))}: {one.summary} on {one.gpu}", **files}
            for at, one in enumerate(options)
            if (at in titles or not sized.options) and (files := handover(one.scenario, texts, one))
        ],
    }


def _row(one: SizedOption, texts: Mapping[str, str], titles: list[str]) -> dict[str, Any]:
    money = one.money
    return {
        "link": "/?" + urlencode(named(one.scenario, texts, one.gpu)),
        "summary": f"{one.summary} on {one.gpu}",
        "engine": one.engine or "no engine",
        "titles": titles,
        "cells": (
            f"{one.gpus:,}",
            band(one.gpus_needed),
            percent(one.probability),
            _spread(one.ttft_s),
            _spread(one.tpot_s),
            _spread(one.e2e_s),
            number(one.output_tokens_per_s_per_gpu),
            "–" if money is None else f"{money.usd_per_month:,.0f}",
            "–" if money is None else number(money.usd_per_million_output_tokens),
            one.binds,
        ),
    }


def _spread(interval: Any) -> str:
    return f"{seconds(interval.p50)} ({seconds(interval.p10)} – {seconds(interval.p90)})"


def named(scenario: Scenario, texts: Mapping[str, str], gpu: str) -> dict[str, str]:
    """Return the texts of a scenario, objects of the reader's own under the names typed."""
    strings = {
        "model": scenario.model if isinstance(scenario.model, str) else texts["model"],
        "gpu": scenario.gpu if isinstance(scenario.gpu, str) else gpu,
    }
    return texts_of_scenario(scenario.model_copy(update=strings))


def handover(scenario: Scenario, texts: Mapping[str, str], one: SizedOption) -> dict[str, Any]:
    """Return the commands and manifests of an option; what cannot be written says why."""
    files = []
    for kind, heading in WRITTEN.items():
        try:
            text = write(scenario, kind).text
        except InvalidInput as error:
            text = f"# {one_line(error)}"
        files.append((heading, text))
    return {"command": command_of(named(scenario, texts, one.gpu)), "files": files}
