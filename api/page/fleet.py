"""The view of a fleet: a day's requests, and the GPUs that three ways of scaling take for them."""

from __future__ import annotations

import shlex
from typing import Any
from urllib.parse import urlencode

from pydantic import ValidationError

from api.page.reading import rates, values_of
from api.page.render import fragment
from api.page.service import Pages
from api.page.shown import Query, Shown, texts_of
from api.web.problem import Problem
from planner.errors import InvalidInput, faults
from planner.pictures.fleet import fleet_chart
from planner.plans.fleet import Fleet, FleetLine, PoolDay
from planner.plans.fleet_request import FleetPool, FleetRequest
from planner.units import number, percent, usd

SHAPE = "requests_per_s_by_window"
DEFAULTS = {
    "model": "meta-llama/Llama-3.1-70B-Instruct",
    "gpu": "h100-sxm5",
    "tp": "4",
    "engine": "vllm",
    SHAPE: "3,2,1,1,1,2,4,8,14,20,24,25,24,26,28,27,24,20,16,13,10,8,6,4",
    "window_s": "3600",
    "isl": "1024",
    "osl": "256",
    "tpot_ms": "50",
    "ttft_ms": "2000",
}
POOL = (
    *("model", "gpu", "tp", "pp", "ep", "attention_dp", "engine", "engine_version"),
    *("weights", "kv", "replicas", "most_replicas", "usd_per_gpu_hour"),
)
"""Fields of the replicas."""
DAY = (
    *(SHAPE, "window_s", "isl", "osl", "tpot_ms", "ttft_ms", "e2e_ms", "percentile"),
    *("start_delay_s", "hold_s", "headroom", "spare_replicas", "growth_per_month", "months"),
)
"""Fields of the day, its limits and the rules of scaling."""
FIELDS = {
    **{name: FleetPool.model_fields[name] for name in POOL},
    **{name: FleetRequest.model_fields[name] for name in DAY},
}
LINE_HEAD = (
    "scaling",
    "mean GPUs",
    "peak GPUs",
    "GPU-hours",
    "$/month",
    "within limits",
    "windows short",
)
MONTH_HEAD = ("month", "peak requests/s", "mean GPUs", "peak GPUs", "$/month")
MEANINGS = {
    "perfect": "exactly the replicas needed at any moment: a lower bound",
    "autoscaled": "seen when a window is over, there after the delay, kept for the hold",
    "static": "the peak, all the time",
}


def show(pages: Pages, query: Query) -> Shown:
    """Return the day of a fleet that a query asks for."""
    shown = Shown(texts_of(query, DEFAULTS), title="A day of a fleet · Decode planner")
    values, shown.errors = values_of(shown.texts, FIELDS, {SHAPE: rates})
    if shown.errors:
        return shown
    pool = {name: values.pop(name) for name in POOL if name in values}
    try:
        result = pages.fleet(FleetRequest(pools=[pool], **values))
    except ValidationError as error:
        shown.errors = {field_of(name): text for name, text in faults(error)}
    except Problem as problem:
        shown.errors.update(
            {field_of(one.field): one.message for one in problem.errors} or {"": problem.detail}
        )
    except InvalidInput as error:
        shown.refuse(error)
    else:
        shown.html["answer"] = fragment("fleet_answer.html", **answer(result, shown.texts))
        shown.charts["fleet"] = fleet_chart(result)
    return shown


def field_of(name: str) -> str:
    """Return the field of the form that a fault is about.

    >>> field_of("pools.0.tp"), field_of("isl"), field_of("pools[0]")
    ('tp', 'isl', '')
    """
    parts = name.split(".")
    field = parts[2] if parts[0] == "pools" and len(parts) > 2 else parts[0]
    return field if field in FIELDS else ""


def answer(result: Fleet, texts: dict[str, str]) -> dict[str, Any]:
    """Return the values of the template."""
    (pool,) = result.pools
    auto = next(line for line in result.lines if line.name == "autoscaled")
    return {
        "result": result,
        "pool": pool,
        "auto": auto,
        "line_head": LINE_HEAD,
        "lines": [_line(line) for line in result.lines],
        "meanings": MEANINGS,
        "month_head": MONTH_HEAD,
        "months": [
            (
                str(one.month),
                number(one.requests_per_s_peak),
                f"{one.gpus_mean:.1f}",
                f"{one.gpus_peak:,}",
                usd(one.usd_per_month),
            )
            for one in result.months
        ],
        "rate": number(pool.requests_per_s_per_replica),
        "scenario": urlencode(scenario_of(texts, result, pool)),
        "command": command_of(texts),
    }


def _line(line: FleetLine) -> tuple[str, ...]:
    return (
        line.name,
        f"{line.gpus_mean:.2f}",
        f"{line.gpus_peak:.1f}",
        f"{line.gpu_hours:,.1f}",
        usd(line.usd_per_month),
        percent(line.share_within_limits),
        str(line.windows_short),
    )


def scenario_of(texts: dict[str, str], result: Fleet, pool: PoolDay) -> dict[str, str]:
    """Return the texts of the scenario at the busiest window, all replicas of the peak there."""
    shared = (*POOL[:10], "isl", "osl", "tpot_ms", "ttft_ms", "e2e_ms", "percentile")
    return {
        **{name: texts[name] for name in shared if name in texts},
        "requests_per_s": f"{result.requests_per_s_peak:g}",
        "replicas": str(max(pool.replicas_peak, 1)),
    }


def command_of(texts: dict[str, str]) -> str:
    """Return the command that answers the same."""
    parts = [texts.get("gpu", "GPU")]
    parts += [f"{name}={texts[name]}" for name in POOL[2:] if name in texts]
    words = ["planner", "fleet", texts.get("model", "MODEL"), "--pool", ":".join(parts)]
    for name in DAY:
        if name in texts:
            option = "rates" if name == SHAPE else name
            words += [f"--{option.replace('_', '-')}", texts[name]]
    return shlex.join(words)
