"""The view of a recommendation: accelerators ranked, their curves, what beats what."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from pydantic import ValidationError

from api.page.render import fragment
from api.page.service import Pages
from api.page.shown import Query, Shown, texts_of
from api.web.problem import Problem
from planner.commands.numbers import whole
from planner.errors import InvalidInput, faults
from planner.pictures.choices import choices_chart, front_of, sparkline
from planner.plans.batches import Option
from planner.plans.recommend import RecommendationRequest
from planner.plans.sweep import rows_of
from planner.scenario import Scenario
from planner.units import number, percent, seconds

DEFAULTS = {
    "model": "meta-llama/Llama-3.1-70B-Instruct",
    "context": "8k",
    "tpot_ms": "50",
    "gpu": "h100-sxm5, h200-sxm, b200-sxm, mi300x, mi355x, l40s, a100-sxm4-80gb",
}
FIELDS = ("model", "context", "tpot_ms", "gpu", "tp", "weights", "kv", "engine", "engine_version")
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
    try:
        request = _request(shown.texts)
        result = pages.recommend(request)
    except ValidationError as error:
        shown.errors = {name.partition(".")[0]: text for name, text in faults(error)}
        return shown
    except (Problem, InvalidInput) as error:
        shown.refuse(error)
        return shown
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
    return shown


def _request(texts: dict[str, str]) -> RecommendationRequest:
    unknown = next((name for name in texts if name not in FIELDS), None)
    if unknown:
        raise InvalidInput(f"{unknown[:40]}: unknown field; accepted: {', '.join(FIELDS)}")
    values: dict[str, Any] = dict(texts)
    for name in ("context", "tp"):
        if name in values:
            try:
                values[name] = whole(values[name])
            except InvalidInput as error:
                raise InvalidInput(f"{name}: {error}") from None
    gpus = values.get("gpu", "all")
    values["gpu"] = (
        None if gpus == "all" else [part.strip() for part in gpus.split(",") if part.strip()]
    )
    return RecommendationRequest(**values)


def _row(pages: Pages, texts: dict[str, str], one: Option, best: bool) -> dict[str, Any]:
    settings = {name: texts[name] for name in FIELDS if name in texts and name != "gpu"}
    scenario = {**settings, "gpu": one.gpu, "tp": str(one.tp), "batch": str(one.batch)}
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
    words = ["planner recommend", texts["model"]]
    for name, text in texts.items():
        if name == "gpu":
            words += (
                ["--all"]
                if text == "all"
                else [f"--gpu {part.strip()}" for part in text.split(",") if part.strip()]
            )
        elif name != "model":
            words.append(f"--{name.replace('_', '-')} {text}")
    return " ".join(words)
