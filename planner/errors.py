"""Bad input: one exception class, and its message on one line that names what is accepted."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pydantic_core import ValidationError


class InvalidInput(ValueError):
    """Input that the planner refuses; every refusal of the library is one, or pydantic's own.

    The message is one line: `field: what is wrong; accepted: what would be right`. A plain
    ValueError that comes out of the library is a defect.
    """


def one_line(error: Exception) -> str:
    """Return the message of an input error on one line.

    Errors of the library already are; of a pydantic error it is the first fault, by field.
    """
    from pydantic_core import ValidationError  # the command line's start does without pydantic

    if isinstance(error, ValidationError):
        return faults(error)[0][1]
    return " ".join(str(error).split())


def named(message: str) -> str:
    """Return the field a message begins with, the first of several; empty where it names none."""
    head, colon, _ = message.partition(":")
    name = re.split(", | or ", head)[0]
    return name if colon and re.fullmatch(r"\w[\w.]*", name) else ""


def faults(error: ValidationError) -> list[tuple[str, str]]:
    """Return (field, message) of every fault pydantic reports, duplicates of a union merged."""
    messages: dict[str, str] = {}
    for item in error.errors(include_url=False, include_context=False, include_input=True):
        path = [str(part) for part in item["loc"]]
        field = ".".join(
            p for p in path if not p.startswith(("constrained-", "dict[", "function-"))
        )
        message = item["msg"].removeprefix("Value error, ")
        if item["type"] == "model_type":
            message = "Input should be an object"  # pydantic's own names a class
        if item["type"] == "value_error":
            inner = named(message)
            if inner and inner != field.rpartition(".")[2]:
                field = f"{field}.{inner}".removeprefix(".")
        elif field:
            message = f"{message[0].lower()}{message[1:]}"
            given = "" if item["type"] == "missing" else f", got {_short(item['input'])}"
            message = f"{field}: {message}{given}"
        messages.setdefault(field, message)
    return list(messages.items())


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "…"
