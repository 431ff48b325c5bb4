"""From the texts of a form to the values that a request takes, and from a scenario back."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any, get_args

from pydantic.fields import FieldInfo

from planner.commands.loads import disaggregated, graphs, lengths, lora, speculation
from planner.commands.numbers import whole, wholes
from planner.errors import InvalidInput, one_line
from planner.scenario import Scenario

MOST_CHARACTERS = 2_000
"""Of a field's text."""


def tokens(text: str) -> Any:
    """Return a length or how it is spread; files are not opened. Raises InvalidInput."""
    if text.startswith("@"):
        raise InvalidInput(
            "files are not read here; accepted: TOKENS, lognormal:MEAN:CV, uniform:LOW:HIGH"
        )
    return lengths(text)


def names(text: str) -> Any:
    """Return one name, or a list where several are separated by commas."""
    parts = [part.strip() for part in text.split(",") if part.strip()]
    return parts if len(parts) > 1 else text


def rates(text: str) -> list[str]:
    """Return the requests per second of each window, as typed."""
    return [part.strip() for part in text.replace("\n", ",").split(",") if part.strip()]


READERS: Mapping[str, Callable[[str], Any]] = {
    "batch": wholes,
    "context": wholes,
    "isl": tokens,
    "osl": tokens,
    "speculation": speculation,
    "disaggregated": disaggregated,
    "lora": lora,
    "graphs": graphs,
}
"""Fields of a scenario whose text is not a word or a number."""


def values_of(
    texts: Mapping[str, str],
    fields: Mapping[str, FieldInfo],
    readers: Mapping[str, Callable[[str], Any]] = READERS,
    known: Iterable[str] = (),
) -> tuple[dict[str, Any], dict[str, str]]:
    """Return the values of a form, and what is wrong with its texts by field.

    `known` are the names a message offers; all fields where it is empty.
    """
    values: dict[str, Any] = {}
    errors: dict[str, str] = {}
    for name, text in texts.items():
        if name not in fields:
            offered = ", ".join(known or fields)
            errors[""] = f"{name[:40]}: unknown field; accepted: {offered}"
        elif len(text) > MOST_CHARACTERS:
            errors[name] = f"{name}: too long; accepted: {MOST_CHARACTERS} characters"
        else:
            try:
                values[name] = _value(text, fields[name], readers.get(name))
            except InvalidInput as error:
                errors[name] = f"{name}: {one_line(error)}"
    return values, errors


def _value(text: str, field: FieldInfo, reader: Callable[[str], Any] | None) -> Any:
    if reader is not None:
        return reader(text)
    if _takes_text(field.annotation):
        return text
    try:
        return json.loads(text)
    except ValueError:
        return _whole_or_text(text)


def _whole_or_text(text: str) -> Any:
    """A number as people write it; anything else the request refuses in its own words."""
    try:
        return whole(text)
    except InvalidInput:
        return text


def _takes_text(annotation: Any) -> bool:
    return annotation is str or any(map(_takes_text, get_args(annotation)))


def texts_of_scenario(scenario: Scenario) -> dict[str, str]:
    """Return the texts that fill the form with a scenario; own objects need a name in its place.

    >>> texts_of_scenario(Scenario(model="m", gpu="g", tp=4, batch=[1, 8]))
    {'model': 'm', 'gpu': 'g', 'tp': '4', 'batch': '1,8'}
    """
    stated = scenario.model_dump(mode="json", exclude_defaults=True, exclude={"tags", "notes"})
    return {name: _text(name, value) for name, value in stated.items()}


def _text(name: str, value: Any) -> str:
    if isinstance(value, list):
        return ",".join(map(str, value))
    if not isinstance(value, dict):
        return json.dumps(value) if isinstance(value, bool) else str(value)
    figures = {key: each for key, each in value.items() if each is not None}
    if name in ("isl", "osl"):
        ((kind, parameters),) = figures.items()
        return ":".join(map(str, (kind, *parameters.values())))
    if name in ("speculation", "lora"):
        return ":".join(map(str, figures.values()))
    return ":".join(f"{key}={each}" for key, each in figures.items()) or "same"
