"""Loads as a shell user writes them: `lognormal:1024:0.6`, `@file`, `1:1.8`.

A text becomes what the scenario takes in JSON; the scenario checks the figures.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from planner.commands.numbers import whole
from planner.errors import InvalidInput

LENGTHS = "accepted: TOKENS, lognormal:MEAN:CV, uniform:LOW:HIGH, or @FILE of one length a line"
SPLIT = ("tp", "pp", "ep", "attention_dp")
SHARES = ("busy", "transfer_bytes_per_s")
FIGURES = {"lognormal": ("mean", "cv"), "uniform": ("low", "high")}
LINE_CHARACTERS = 20
"""Of a line in a file of lengths, on average and at most."""
MOST_DIGITS = 10
"""Of a length in it."""


class InvalidLoad(InvalidInput):
    """A text that describes no load; the message says what is accepted."""


def lengths(text: str) -> Any:
    """Return the lengths a text describes: tokens, or an object; raises InvalidLoad."""
    if text.startswith("@"):
        return {"trace": _trace(text[1:])}
    name, *figures = text.split(":")
    try:
        if not figures:
            return whole(text)
        return {name: dict(zip(FIGURES[name], map(_finite, figures), strict=True))}
    except (KeyError, ValueError):
        raise InvalidLoad(f"{text[:60]!r} is not a length; {LENGTHS}") from None


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(text)
    return value


def _trace(path: str) -> list[int]:
    """Return the lengths in a file, one a line; empty lines are passed over."""
    from planner.workload.distributions import MOST_REQUESTS

    most = LINE_CHARACTERS * MOST_REQUESTS
    try:
        with Path(path).open(encoding="utf-8") as file:
            text = file.read(most + 1)
    except (OSError, ValueError) as error:
        reason = (isinstance(error, OSError) and error.strerror) or "it is not text"
        raise InvalidLoad(f"cannot read {path!r}: {reason}; {LENGTHS}") from None
    if len(text) > most:
        raise InvalidLoad(f"{path!r} is too long; accepted: {MOST_REQUESTS} lengths, one a line")
    tokens = []
    for number, line in enumerate(text.splitlines(), 1):
        length = line.strip()
        if length and not (length.isdecimal() and len(length) <= MOST_DIGITS):
            raise InvalidLoad(
                f"line {number} of {path!r} is {length[:40]!r}; accepted: whole tokens"
            )
        tokens += [int(length)] if length else []
    return tokens


def speculation(text: str) -> Any:
    """Return the drafts a step, and the tokens it yields where given; raises InvalidLoad."""
    drafts, colon, accepted = text.partition(":")
    try:
        fields: dict[str, Any] = {"drafts": int(drafts)}
        return fields | {"accepted": _finite(accepted)} if colon else fields
    except ValueError:
        raise InvalidLoad(f"{text[:60]!r}; accepted: DRAFTS, or DRAFTS:ACCEPTED as 1:1.8") from None


def disaggregated(text: str) -> Any:
    """Return what prefill workers are: `same`, or figures as in tp=4:busy=0.7.

    Raises InvalidLoad.
    """
    fields: dict[str, Any] = {}
    for part in text.split(":") if text != "same" else ():
        name, _, value = part.partition("=")
        name = name.strip().replace("-", "_")
        try:
            fields[name] = int(value) if name in SPLIT else _finite(value)
        except ValueError:
            name = ""
        if name not in (*SPLIT, *SHARES):
            raise InvalidLoad(
                f"{part[:40]!r}; accepted: same, or figures as in tp=4:busy=0.7 of "
                f"{', '.join((*SPLIT, *SHARES))}"
            )
    return fields


def pool(text: str) -> Any:
    """Return the replicas a text describes, as h100-sxm5:tp=4:engine=vllm; raises InvalidLoad."""
    gpu, *parts = text.split(":")
    fields: dict[str, Any] = {"gpu": gpu}
    for part in parts:
        name, equals, value = part.partition("=")
        if not (gpu and equals and value):
            raise InvalidLoad(f"{part[:40]!r}; accepted: GPU, and fields as in h100-sxm5:tp=4")
        fields[name.strip().replace("-", "_")] = value
    return fields


def lora(text: str) -> Any:
    """Return the adapters a text describes, as 4:16; raises InvalidLoad."""
    adapters, _, rank = text.partition(":")
    try:
        return {"adapters": int(adapters), "rank": int(rank)}
    except ValueError:
        raise InvalidLoad(f"{text[:60]!r}; accepted: ADAPTERS:RANK as 4:16") from None


def graphs(text: str) -> Any:
    """Return on, off or the largest captured batch; raises InvalidLoad."""
    if text in ("on", "off"):
        return text
    try:
        return int(text)
    except ValueError:
        raise InvalidLoad(
            f"{text[:60]!r}; accepted: on, off or the largest batch captured"
        ) from None


class LoadType(click.ParamType[Any]):
    """A load that one of the parsers above reads."""

    def __init__(self, name: str, parse: Callable[[str], Any]) -> None:
        """Take the name shown in help, and the parser."""
        self.name = name
        self.parse = parse

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return what the scenario takes in JSON."""
        if not isinstance(value, str):
            return value
        try:
            return self.parse(value)
        except InvalidLoad as error:
            field = param.name if param else "value"
            self.fail(f"{field}: {error}", param, ctx)
