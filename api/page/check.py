"""The view that checks a manifest or a command line: does it start, meet limits, waste anything?"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

from pydantic import ValidationError

from api.checks.schemas import CheckQuery
from api.page.reading import texts_of_scenario, tokens, values_of
from api.page.render import fragment
from api.page.service import Pages
from api.page.shown import Query, Shown
from api.web.problem import Problem
from planner.errors import InvalidInput, faults, named
from planner.handover.checking import Check, CheckFigures, CheckQuestion
from planner.handover.verdicts import CheckedLimit
from planner.units import number, percent, seconds

TEXT = "file"
"""Name of the field that holds what is checked."""
EXAMPLE = {
    TEXT: "vllm serve meta-llama/Llama-3.1-70B-Instruct \\\n"
    "  --tensor-parallel-size 4 --max-model-len 32768 --max-num-seqs 64",
    "gpu": "h100-sxm5",
    "concurrency": "32",
    "isl": "1024",
    "osl": "256",
    "tpot_ms": "40",
}
FIELDS = CheckQuestion.model_fields
LIMIT_HEAD = ("limit", "at most", "predicted", "p10 – p90", "probability", "verdict")
FINDING_HEAD = ("severity", "line", "what is wrong", "what to do")
ORIGIN_HEAD = ("field", "value", "from", "line", "text")


def show(pages: Pages, query: Query) -> Shown:
    """Return the check of a text; the example where nothing was sent."""
    sent = {name: text.strip() for name, text in query if text.strip()}
    shown = Shown(sent if TEXT in sent else EXAMPLE | sent, title="Check · Decode planner")
    text = shown.texts[TEXT]
    question = {name: value for name, value in shown.texts.items() if name != TEXT}
    values, shown.errors = values_of(question, FIELDS, {"isl": tokens, "osl": tokens})
    if shown.errors:
        return shown
    try:
        report = pages.check(CheckQuery(files={TEXT: text}, question=CheckQuestion(**values)))
    except ValidationError as error:
        shown.errors = {_field(name): message for name, message in faults(error)}
    except Problem as problem:
        shown.errors = {_field(named(problem.detail)): problem.detail}
    except InvalidInput as error:
        shown.refuse(error, TEXT)
    else:
        shown.html["answer"] = fragment(
            "check_answer.html",
            verdict=report.verdict,
            limit_head=LIMIT_HEAD,
            finding_head=FINDING_HEAD,
            origin_head=ORIGIN_HEAD,
            checks=[_check(one) for one in report.checks],
        )
    return shown


def _field(name: str) -> str:
    """Return the field a fault is beside: that of the text where it names no other."""
    field = name.partition(".")[0]
    return field if field in FIELDS else TEXT


def _check(one: Check) -> dict[str, Any]:
    scenario = one.reading.scenario
    link = "/?" + urlencode(texts_of_scenario(scenario)) if isinstance(scenario.model, str) else ""
    return {
        "verdict": one.verdict,
        "kind": one.reading.kind,
        "line": one.reading.line,
        "binds": one.binds.replace("_", " "),
        "probability": "" if one.probability is None else percent(one.probability),
        "limits": [_limit(limit) for limit in one.limits],
        "findings": [
            (f"{each.severity}: {each.code}", str(each.line), each.message, each.fix)
            for each in one.findings
        ],
        "figures": [] if one.figures is None else _figures(one.figures),
        "origins": [
            (each.field, _value(each.value), each.source, str(each.line or "–"), each.text)
            for each in one.reading.origins
        ],
        "not_understood": one.reading.not_understood,
        "unused": one.reading.unused,
        "notes": one.notes,
        "link": link,
    }


def _limit(limit: CheckedLimit) -> tuple[str, ...]:
    shown = number if limit.quantity == "requests_per_s" else seconds
    spread = limit.predicted
    return (
        limit.quantity.removesuffix("_s") if limit.quantity != "requests_per_s" else "requests/s",
        shown(limit.limit),
        shown(spread.p50),
        f"{shown(spread.p10)} – {shown(spread.p90)}",
        percent(limit.probability),
        limit.verdict,
    )


def _figures(figures: CheckFigures) -> list[tuple[str, str]]:
    rows: Mapping[str, str] = {
        "GPUs": f"{figures.gpus:,}",
        "largest batch": f"{figures.max_batch:,}",
        "running": number(figures.running_batch),
        "queued": number(figures.queued),
        "TTFT": "–" if figures.ttft_s is None else seconds(figures.ttft_s.p50),
        "TPOT": "–" if figures.tpot_s is None else seconds(figures.tpot_s.p50),
        "requests/s": number(figures.requests_per_s),
        "output tokens/s": number(figures.output_tokens_per_s),
    }
    return list(rows.items())


def _value(value: Any) -> str:
    text = (
        {True: "on", False: "off"}.get(value, str(value)) if isinstance(value, bool) else str(value)
    )
    return text if len(text) <= 60 else text[:59] + "…"
