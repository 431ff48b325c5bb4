"""The view of a recommendation: accelerators ranked, their curves, what beats what."""

from __future__ import annotations

import shlex
from typing import Any
from urllib.parse import urlencode

from pydantic import ValidationError

from api.page.reading import names, tokens, values_of
from api.page.render import fragment
from api.page.service import Pages
from api.page.shown import Query, Shown, texts_of
from api.page.sized import answer as sized_answer
from api.web.problem import Problem
from planner.answer import NoteAnswer
from planner.commands.numbers import whole
from planner.errors import InvalidInput, faults
from planner.pictures.choices import band_chart, choices_chart, front_of, sparkline
from planner.plans.batches import Option
from planner.plans.recommend import Recommendation, RecommendationRequest
from planner.plans.sized import Sized
from planner.plans.sweep import rows_of
from planner.scenario import Scenario
from planner.units import number, percent, seconds

DEFAULTS = {
    "model": "meta-llama/Llama-3.1-70B-Instruct",
    "context": "8k",
    "tpot_ms": "50",
    "gpu": "h100-sxm5, h200-sxm, b200-sxm, mi300x, mi355x, l40s, a100-sxm4-80gb",
}
USERS = {
    "model": "meta-llama/Llama-3.1-70B-Instruct",
    "gpu": "h100-sxm5, h200-sxm",
    "users": "2000",
    "think_time_s": "60",
    "isl": "1024",
    "osl": "256",
    "tpot_ms": "50",
    "ttft_ms": "2000",
}
"""An example of a workload."""
LOAD = (
    *("users", "think_time_s", "requests_per_s", "concurrency_in_all", "isl", "osl"),
    *("ttft_ms", "tpot_ms", "e2e_ms", "tokens_per_s_per_user", "percentile"),
    *("gpus", "usd_per_month", "usd_per_gpu_hour"),
)
"""Fields of a workload, of its limits and of what there is."""
MACHINE = ("tp", "weights", "kv", "engine", "engine_version")
FIELDS = ("model", "gpu", "context", *LOAD, *MACHINE)
READERS = {
    "gpu": lambda text: None if text == "all" else several(text),
    "context": whole,
    "isl": tokens,
    "osl": tokens,
    "weights": names,
    "kv": names,
    "engine": names,
}
"""Fields whose text is not a word or a number."""
HEAD = (
    "accelerator",
    "tp",
    "batch",
    "tokens/s per GPU",
    "tokens/s",
    "TPOT",
    "free",
    "$/Mtok",
    "bound by",
    "step is",
    "tokens/s per GPU over the batch",
)
CURVE = tuple(2**step for step in range(11))
"""Batches of the small curves [-]."""


def show(pages: Pages, query: Query) -> Shown:
    """Return the ranking that a query asks for."""
    shown = Shown(texts_of(query, DEFAULTS), title="What to run · Decode planner")
    shown.more = {"users": USERS}
    fields = {name: RecommendationRequest.model_fields[name] for name in FIELDS}
    values, shown.errors = values_of(shown.texts, fields, READERS)
    if shown.errors:
        return shown
    try:
        result = pages.recommend(RecommendationRequest(**values))
    except ValidationError as error:
        shown.errors = {name.partition(".")[0]: text for name, text in faults(error)}
    except (Problem, InvalidInput) as error:
        shown.refuse(error)
    else:
        if result.sized is not None:
            _show_sized(shown, result.sized, result.notes)
        else:
            _show_batches(pages, shown, result)
    return shown


def several(text: str) -> list[str]:
    """Return names that are separated by commas."""
    return [part.strip() for part in text.split(",") if part.strip()]


def _show_sized(shown: Shown, sized: Sized, notes: list[NoteAnswer]) -> None:
    values = sized_answer(sized, shown.texts)
    shown.html["answer"] = fragment(
        "recommend_sized.html",
        **{**values, "notes": [*notes, *values["notes"]]},
        command=_command(shown.texts),
    )
    if sized.options:
        shown.charts["band"] = band_chart(sized.options)


def _show_batches(pages: Pages, shown: Shown, result: Recommendation) -> None:
    front = {id(one) for one in front_of(result.choices)}
    rows = [_row(pages, shown.texts, one, id(one) in front) for one in result.choices]
    shown.html["answer"] = fragment(
        "recommend_answer.html",
        head=HEAD,
        rows=rows,
        refused=[(one.gpu, one.reason) for one in result.refused],
        notes=result.notes,
        command=_command(shown.texts),
    )
    if result.choices:
        shown.charts["choices"] = choices_chart(result.choices)


def _row(pages: Pages, texts: dict[str, str], one: Option, best: bool) -> dict[str, Any]:
    typed = {
        name: texts[name] for name in ("model", "context", "tpot_ms", *MACHINE) if name in texts
    }
    scenario = {**typed, "gpu": one.gpu, "tp": str(one.tp), "batch": str(one.batch)}
    context = whole(texts.get("context", "8k"))
    curve = pages.calibrated(
        rows_of,
        Scenario(
            model=pages.names.model(texts["model"]),
            gpu=pages.names.accelerator(one.gpu),
            tp=one.tp,
            batch=[batch for batch in CURVE if batch <= max(one.max_batch, 1)],
            context=[context],
            **{
                name: texts[name]
                for name in ("weights", "kv", "engine", "engine_version")
                if name in texts
            },
        ),
    )
    return {
        "gpu": one.gpu + ("" if one.status == "available" else f" ({one.status})"),
        "link": "/?" + urlencode(scenario),
        "front": best,
        "cells": (
            str(one.tp),
            f"{one.batch:,}",
            number(one.tokens_per_s_per_gpu),
            number(one.tokens_per_s),
            f"{seconds(one.tpot_s.p50)} ({seconds(one.tpot_s.p10)} – {seconds(one.tpot_s.p90)})",
            percent(one.headroom),
            number(one.usd_per_million_tokens),
            one.binds,
            one.bound,
        ),
        "spark": sparkline([rate or 0.0 for rate in curve.get("tokens_per_s_per_gpu", [])]),
    }


def _command(texts: dict[str, str]) -> str:
    words = ["planner", "recommend", texts.get("model", "MODEL")]
    for name, text in texts.items():
        if name == "gpu":
            words += (
                ["--all"] if text == "all" else [w for g in several(text) for w in ("--gpu", g)]
            )
        elif name != "model":
            words += [f"--{OPTIONS.get(name, name).replace('_', '-')}", text]
    return shlex.join(words)


OPTIONS = {"concurrency_in_all": "concurrency"}
"""Options of the command line that are named otherwise than the field."""
