"""Bad input as one line that names the field and what is accepted."""

from __future__ import annotations

import re

from pydantic import ValidationError


def one_line(error: Exception) -> str:
    """Return the message of an input error on one line.

    Errors of the library already are; of a pydantic error the first fault is named by its field.
    """
    if isinstance(error, ValidationError):
        return faults(error)[0][1]
    return " ".join(str(error).split())


def named(message: str) -> str:
    """Return the field a message begins with, the first of several; empty where it names none."""
    head, colon, _ = message.partition(":")
    name = re.split(", | or ", head)[0]
    return name if colon and re.fullmatch(r"\w[\w.]*", name) else ""


def faults(error: ValidationError) -> list[tuple[str, str]]:
    """Return (field, message) of every fault of a pydantic error, duplicates of a union merged."""
    faults: dict[str, str] = {}
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
        faults.setdefault(field, message)
    return list(faults.items())


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "…"
