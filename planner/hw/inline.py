"""Accelerators that a user describes: an object, a JSON file or a TOML file."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from planner.errors import InvalidInput
from planner.hw.accelerator import Accelerator
from planner.hw.figure import Figure, Link
from planner.hw.formats import FORMATS


class InvalidAccelerator(InvalidInput):
    """A user's accelerator has a missing, unknown or impossible field."""


@dataclass(frozen=True, slots=True)
class Bound:
    """Accepted range of a number, both ends included."""

    unit: str
    low: float
    high: float
    whole: bool = False


BOUNDS: Mapping[str, Bound] = {
    "bandwidth_bytes_per_s": Bound("bytes/s", 1e8, 1e15),
    "memory_bytes": Bound("bytes", 1e6, 1e15),
    "l2_bytes": Bound("bytes", 1, 1e12),
    "sm_count": Bound("count", 1, 1e7, whole=True),
    "tdp_w": Bound("W", 0.1, 1e6),
    "domain_size": Bound("accelerators", 1, 1e6, whole=True),
    "year": Bound("year", 1990, 2100, whole=True),
}
PEAK = Bound("FLOP/s", 1e8, 1e20)
LINK = Bound("bytes/s", 1e6, 1e15)
LINK_KEYS = ("name", "bytes_per_s", "pair_bytes_per_s")
TEXTS = (
    "id",
    "name",
    "vendor",
    "architecture",
    "kind",
    "pcie",
    "form_factor",
    "status",
    "confidence",
    "memory_type",
)
REQUIRED = ("peaks_flops_per_s", "bandwidth_bytes_per_s", "memory_bytes", "source")
KEYS = (*REQUIRED, "link", "notes", *(k for k in BOUNDS if k not in REQUIRED), *TEXTS)


def accelerator_from(data: Mapping[str, object]) -> Accelerator:
    """Accelerator from a user's object; SI units, `source` says where the figures come from.

    Required: peaks_flops_per_s (by format), bandwidth_bytes_per_s, memory_bytes, source.

    Raises:
        InvalidAccelerator: a field is missing, unknown, not finite, negative or absurd.
    """
    for key in REQUIRED:
        if data.get(key) is None:
            raise InvalidAccelerator(f"gpu.{key}: required; accepted fields: {', '.join(KEYS)}")
    # A link without a domain size joins an unknown number; no link joins one.
    domain = 1 if data.get("link") is None else None
    blank = Accelerator(
        id="custom",
        name="custom",
        vendor="custom",
        architecture="custom",
        kind="gpu",
        year=None,
        peaks_flops_per_s={},
        bandwidth_bytes_per_s=math.nan,
        memory_bytes=None,
        l2_bytes=None,
        sm_count=None,
        tdp_w=None,
        link=Link("none", None),
        domain_size=domain,
        pcie=None,
        form_factor=None,
        status="user",
        figures={},
        confidence="user",
    )
    name = data.get("name", data.get("id", "custom"))
    return override(blank, {"id": name, "name": name, **data})


def override(base: Accelerator, data: Mapping[str, object]) -> Accelerator:
    """`base` with the fields of `data`, every changed figure under the given source.

    With another `id` it is another part than `base` is.

    Raises:
        InvalidAccelerator: as `accelerator_from`.
    """
    for key in data:
        if key not in KEYS:
            raise InvalidAccelerator(
                f"gpu: unknown field {str(key)[:60]!r}; accepted: {', '.join(KEYS)}"
            )
    source = _text("source", data.get("source"))
    confidence = _text("confidence", data.get("confidence", "user"))
    numbers = {k: _number(k, data[k], b) for k, b in BOUNDS.items() if data.get(k) is not None}
    units = {k: BOUNDS[k].unit for k in numbers}
    if data.get("peaks_flops_per_s") is not None:
        for fmt, value in _peaks(data["peaks_flops_per_s"]).items():
            numbers[f"peaks_flops_per_s.{fmt}"] = value
            units[f"peaks_flops_per_s.{fmt}"] = PEAK.unit
    link = base.link if data.get("link") is None else _link(data["link"])
    if link.bytes_per_s is not None and link != base.link:
        numbers["link_bytes_per_s"] = link.bytes_per_s
        units["link_bytes_per_s"] = LINK.unit
    year = numbers.pop("year", None)
    figures = {k: Figure(v, units[k], source, confidence) for k, v in numbers.items()}
    texts = {k: _text(k, data[k]) for k in TEXTS if data.get(k) is not None}
    part = base.part if texts.get("id", base.id) == base.id else None
    changed = replace(base, **{**texts, "link": link, "part": part})  # type: ignore[arg-type]
    if year is not None:
        changed = replace(changed, year=int(year))
    if data.get("notes") is not None:
        changed = replace(changed, notes=(*base.notes, *_notes(data["notes"])))
    return changed.replaced(figures)


def read_fields(path: str | Path) -> dict[str, object]:
    """Fields of an accelerator in a `.json` or `.toml` file, named like the file if not otherwise.

    Raises:
        InvalidAccelerator: the file cannot be read or parsed.
    """
    path = Path(path)
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeError) as error:
        reason = (isinstance(error, OSError) and error.strerror) or "not UTF-8 text"
        raise InvalidAccelerator(f"gpu: cannot read {path.name!r}: {reason}") from None
    try:
        data = _parse(path.suffix.lower(), text)
    except (ValueError, RecursionError) as error:
        raise InvalidAccelerator(f"gpu: {path.name!r} does not parse: {error}") from None
    if not isinstance(data, dict):
        raise InvalidAccelerator(f"gpu: {path.name!r} must hold one object")
    return {"name": path.stem, **data}


def _parse(suffix: str, text: str) -> object:
    if suffix == ".toml":
        import tomllib

        return tomllib.loads(text)
    return json.loads(text)


def _number(key: str, value: object, bound: Bound) -> float:
    kind = "whole number" if bound.whole else "number"
    accepted = f"accepted: a {kind} from {bound.low:g} to {bound.high:g} [{bound.unit}]"
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise InvalidAccelerator(f"gpu.{key}: got {_shown(value)!r}; {accepted}")
    if not bound.low <= value <= bound.high or (bound.whole and value != int(value)):
        raise InvalidAccelerator(f"gpu.{key}: got {_shown(value)}; {accepted}")
    return value


def _peaks(value: object) -> dict[str, float]:
    accepted = f"accepted: FLOP/s by format, of {', '.join(FORMATS)}"
    if not isinstance(value, Mapping) or not value:
        raise InvalidAccelerator(f"gpu.peaks_flops_per_s: got {_shown(value)!r}; {accepted}")
    for key in value:
        if key not in FORMATS:
            raise InvalidAccelerator(
                f"gpu.peaks_flops_per_s: unknown format {str(key)[:60]!r}; {accepted}"
            )
    return {k: _number(f"peaks_flops_per_s.{k}", v, PEAK) for k, v in value.items()}


def _link(value: object) -> Link:
    if isinstance(value, Link):
        return value
    if not isinstance(value, Mapping) or not set(value) <= set(LINK_KEYS):
        raise InvalidAccelerator(
            f"gpu.link: got {_shown(value)!r}; accepted: an object of {', '.join(LINK_KEYS)}"
        )
    rates = [
        None if value.get(key) is None else _number(f"link.{key}", value[key], LINK)
        for key in LINK_KEYS[1:]
    ]
    return Link(_text("link.name", value.get("name", "custom")), *rates)


def _text(key: str, value: object) -> str:
    if not isinstance(value, str) or not value.strip() or len(value) > 500:
        raise InvalidAccelerator(f"gpu.{key}: got {_shown(value)!r}; accepted: a non-empty text")
    return value


def _shown(value: object) -> str:
    try:
        return str(value)[:60]
    except ValueError:  # an integer of thousands of digits
        return "a number too long to print"


def _notes(value: object) -> tuple[str, ...]:
    if isinstance(value, str) or not isinstance(value, (list, tuple)):
        raise InvalidAccelerator(f"gpu.notes: got {_shown(value)!r}; accepted: a list of texts")
    return tuple(_text("notes", item) for item in value)
