"""One argument of an engine, one field of a scenario: read either from the other."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from planner.engines.cache_formats import cache_format
from planner.errors import InvalidInput
from planner.handover.arguments import ArgumentParser, Fault, Given
from planner.handover.facts import EngineStart
from planner.models.spec import ModelSpec
from planner.units import GIB

MOST_COUNT = 2**53
_GB = 1e9
_UNSET = object()


@dataclass(frozen=True, slots=True)
class Conversion:
    """How a value becomes a field's (`read`) and the reverse (`write`).

    Both take the value and the GPUs of a replica; `_UNSET` is a value that says nothing of the
    other side. `read` raises ValueError saying what is taken.
    """

    read: Callable[[Any, int], Any]
    write: Callable[[Any, int], Any]


def _count(value: Any, _: int) -> int:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or value != int(value):
        raise ValueError("takes a whole number")
    if not 0 < value <= MOST_COUNT:
        raise ValueError("takes a whole number above zero")
    return int(value)


def _number(value: Any, _: int) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise ValueError("takes a number")
    return float(value)


def _bool(value: Any, _: int) -> bool:
    if not isinstance(value, bool):
        raise ValueError("takes true or false")
    return value


def _same(value: Any, _: int) -> Any:
    return value


def _layers(value: Any, _: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise ValueError("takes a number of layers")
    return value


CONVERSIONS: Mapping[str, Conversion] = {
    "number": Conversion(_number, _same),
    "count": Conversion(_count, lambda value, _: int(value)),
    "on": Conversion(_bool, _same),
    "off": Conversion(lambda value, n: not _bool(value, n), lambda value, _: not value),
    "layers": Conversion(_layers, _same),
    "graph_batch": Conversion(_count, lambda value, _: value if isinstance(value, int) else _UNSET),
    "graphs_off": Conversion(
        lambda value, n: "off" if _bool(value, n) else "on",
        lambda value, _: True if value == "off" else _UNSET,
    ),
    "graphs_null": Conversion(
        lambda value, _: "off" if value is None else _UNSET,
        lambda value, _: None if value == "off" else _UNSET,
    ),
    "gib": Conversion(lambda value, n: _number(value, n) * GIB, lambda value, _: value / GIB),
    "gb_per_gpu": Conversion(
        lambda value, n: _number(value, n) * _GB * n,
        lambda value, n: int(value / _GB / n) if value % (_GB * n) == 0 else _UNSET,
    ),
    "bytes_per_gpu": Conversion(
        lambda value, n: _number(value, n) * n, lambda value, n: int(value / n)
    ),
}


def fields_given(
    facts: EngineStart, given: Mapping[str, Given], spec: ModelSpec | None, gpus: int
) -> Iterator[tuple[str, Any, Given] | Fault]:
    """Yield the fields that the arguments of a command line say, with where, and faults.

    `gpus` are those of a replica, over which some engines count a size.
    """
    for row in facts.fields:
        for argument in row["arguments"]:
            if argument not in given:
                continue
            one = given[argument]
            if one.value in row.get("default", ()) and not isinstance(one.value, bool):
                continue
            off = row.get("off")
            if off and one.value == off[1]:
                yield off[0], False, one
                continue
            try:
                value = _field_value(row, one, given, spec, gpus)
            except (ValueError, OverflowError) as error:
                yield Fault(one.line, one.text, str(error))
                continue
            if value is not _UNSET:
                yield row["field"], value, one


def _field_value(
    row: Mapping[str, Any],
    one: Given,
    given: Mapping[str, Given],
    spec: ModelSpec | None,
    gpus: int,
) -> Any:
    if row["as"] != "format":
        value = CONVERSIONS[row["as"]].read(one.value, gpus)
        whole = row["as"] == "layers" and spec is not None and value > spec.layers
        return _UNSET if whole else value  # more layers than there are: all of them
    text = str(one.value)
    value = row["formats"].get(text, text)
    twin = given.get(row.get("twin", ""))
    if twin is not None and twin.value != one.value:
        value = f"{value}/{row['formats'].get(str(twin.value), twin.value)}"
    if row["field"] == "kv" and spec is not None:
        try:
            cache_format(spec, value)
        except InvalidInput:
            raise ValueError("is a cache format that the planner does not know") from None
    elif row["field"] == "weights" and text not in row["formats"]:
        raise ValueError("is a weight format that the planner does not know")
    return value


def arguments_for(
    facts: EngineStart, parser: ArgumentParser, fields: Mapping[str, Any], gpus: int
) -> dict[str, Any]:
    """Return the arguments that say these fields of a scenario; what none says is left out.

    Dotted names are keys of the engine's configuration file.
    """
    values: dict[str, Any] = {}
    for row in facts.fields:
        value = fields.get(row["field"])
        off = row.get("off")
        if off and fields.get(off[0]) is False and value is None:
            values[row["arguments"][0]] = off[1]
        if value is None:
            continue
        argument = next(
            (a for a in row["arguments"] if a in parser.arguments or is_key(facts, a)), None
        )
        if argument is None:
            continue
        written = _written(row, value, gpus)
        if written is _UNSET:
            continue
        values[argument] = written
        if "with" in row:
            values[row["with"]] = True
        if "twin" in row:
            values[row["twin"]] = values[argument]
    return values


def is_key(facts: EngineStart, argument: str) -> bool:
    """Return whether a name is a key of the engine's configuration file."""
    return bool(facts.config) and argument.partition(".")[0] in facts.config["known"]


def _written(row: Mapping[str, Any], value: Any, gpus: int) -> Any:
    if row["as"] != "format":
        return CONVERSIONS[row["as"]].write(value, gpus)
    return next((flag for flag, form in row["formats"].items() if form == value), _UNSET)
