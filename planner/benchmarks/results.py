"""One run read from a tool's results, and the context that completes it to a row."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from planner.errors import InvalidInput
from planner.hw import get_accelerator
from planner.models import get_model
from planner.precision import get_format
from planner.runs.rows import INPUTS, NUMBERS, Kind, Row
from planner.runs.setup import in_words

QUEUED_SHARE = 0.2
"""A run is queued when TTFT is this share of the request or more, as in the measured rows [-]."""


class UnknownResults(InvalidInput):
    """Results in none of the formats that are read, or without a figure they should have."""


class MissingContext(InvalidInput):
    """Something the results do not say and no option gives; one line names the option."""


@dataclass(frozen=True, slots=True)
class Context:
    """What was run, as far as the user says it; a field that is given wins over the results."""

    model: str | None = None
    gpu: str | None = None
    engine: str | None = None
    engine_version: str | None = None
    weights: str | None = None
    kv: str | None = None
    tp: int | None = None
    pp: int | None = None
    attention_dp: int | None = None
    ep: int | None = None


@dataclass(frozen=True, slots=True)
class Run:
    """One measured point: the columns of its row that the results give (and `requests`, their
    number), and what came out."""

    kind: Kind
    inputs: Mapping[str, str]
    measured: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Measurements:
    """What was read from one file of results."""

    format: str
    """Name of the format, for people."""
    rows: tuple[Row, ...]
    notes: tuple[str, ...] = field(default=())
    """Runs left out and assumptions made, one line each."""


COLUMNS = {"weights": "weight_format", "kv": "kv_dtype"}
"""Columns of fields of the context that are called otherwise."""

NEEDED = ("model", "gpu", "engine", "tp")


def complete(run: Run, context: Context, number: int, origin: str, *, local: bool = True) -> Row:
    """Return the row of a run, its model and GPU called as the catalogues do.

    `local=False` opens no file that a row names, for callers that are not on this machine. Raises
    MissingContext, UnknownResults, UnknownModel, UnknownAccelerator or UnknownFormat, each one
    line.
    """
    inputs = dict.fromkeys(INPUTS[run.kind], "") | dict(run.inputs) | {"row": str(number)}
    for name in (f.name for f in fields(context)):
        given = getattr(context, name)
        if given is not None:
            for column in _columns(run.kind, name):
                inputs[column] = str(given)
    total = "gpus" if run.kind == "serving" else "n_gpus"
    for name in NEEDED:
        if not inputs[name] and not (name == "tp" and inputs[total]):
            raise MissingContext(f"{name}: {origin} does not say it; give --{name}")
    if not inputs[total] or context.tp or context.pp or context.attention_dp:
        split = [inputs[name] or "1" for name in ("tp", "pp", "attention_dp")]
        inputs |= dict(zip(("tp", "pp", "attention_dp"), split, strict=True))
        inputs[total] = str(math.prod(round(positive(n, "tp, pp or attention_dp")) for n in split))
    inputs["gpu"] = get_accelerator(inputs["gpu"], allow_files=local).id
    inputs["model"] = get_model(inputs["model"], local=local).id
    if not local:
        inputs["config_file"] = ""
    run_inputs = {name: inputs[name] for name in INPUTS[run.kind]}
    _check(run_inputs)
    # a size tells the bits of any format
    if run_inputs["weight_format"] and not run_inputs.get("weight_gb"):
        check_weights(run_inputs["weight_format"], "weight_format")
    measured = {name: positive(value, name) for name, value in run.measured.items() if value}
    return Row(run.kind, run_inputs, measured, _remarks(run, origin))


LOADS = frozenset({"concurrency", "batch"})
"""Numbers of which a zero is not none."""


def _check(inputs: Mapping[str, str]) -> None:
    """Raise UnknownResults where an input is not the number or the text it should be."""
    for name, text in inputs.items():
        if not text.isprintable():
            raise UnknownResults(f"results: {name} has characters that cannot be printed")
        if name in NUMBERS and text and (text != "0" or name in LOADS):
            positive(text, name)


def check_weights(stated: str, field: str) -> None:
    """Raise UnknownFormat where a weight format is not known; `field` is named in it."""
    get_format(in_words(stated), field)


def _columns(kind: Kind, name: str) -> list[str]:
    column = COLUMNS.get(name, name)
    if name == "ep":
        column = "moe_ep" if kind == "serving" else "ep"
    return [column] if column in INPUTS[kind] else []


def _remarks(run: Run, origin: str) -> dict[str, str]:
    remarks = {"source": origin}
    if run.kind == "serving":
        ttft, tpot = (run.measured.get(name, 0.0) for name in ("ttft_ms", "tpot_ms"))
        request = ttft + tpot * max(float(run.inputs.get("osl") or 1) - 1.0, 1.0)
        remarks["requests"] = run.inputs.get("requests", "")
        remarks["queued"] = "1" if ttft >= QUEUED_SHARE * request else "0"
    return remarks


MOST = 1e15
"""Figures of this size or more are no measurement, nor those as far below one."""


def positive(value: Any, name: str) -> float:
    """Return a figure of the results that must be a finite number above zero.

    Raises UnknownResults naming it.
    """
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        raise UnknownResults(f"results: {name} is missing; a number above zero is needed")
    try:
        number = float(value)
    except (ValueError, OverflowError):
        number = math.nan
    if not 1 / MOST < number < MOST:
        shown = str(value)[:40]
        raise UnknownResults(f"results: {name} is {shown!r}; a number above zero is needed")
    return number


def whole(value: float) -> str:
    """Return a count as the text of a row's cell."""
    return str(max(1, round(value)))
