"""What the fields of a form offer: models, accelerators by vendor, formats and engines."""

from __future__ import annotations

from functools import cache
from typing import Any

from planner.engines.names import engine_names
from planner.hw import list_accelerators
from planner.models.listing import all_facts
from planner.precision import FORMATS
from planner.units import count, scaled

Option = tuple[str, str]
"""A value, and the words beside it."""


@cache
def model_options() -> list[Option]:
    """Return the models of the catalogue."""
    return [
        (name, f"{facts['kind']}, {count(facts['total_params'])} parameters")
        for facts in all_facts()
        for name in (facts["id"], *facts["aliases"])
    ]


@cache
def accelerator_options() -> list[tuple[str, str, str]]:
    """Return id, words and vendor of every accelerator."""
    return [
        (
            one.id,
            f"{one.name}, {scaled(one.bandwidth_bytes_per_s, 'B/s')}"
            + ("" if one.status == "available" else f", {one.status}"),
            one.vendor,
        )
        for one in list_accelerators()
    ]


@cache
def vendors() -> list[str]:
    """Return the vendors of accelerators, in alphabetical order."""
    return sorted({vendor for _, _, vendor in accelerator_options()})


def choices() -> dict[str, Any]:
    """Return what the fields offer, by the name of the list."""
    formats = sorted(FORMATS)
    return {
        "models": model_options(),
        "accelerators": accelerator_options(),
        "vendors": vendors(),
        "lists": {"weights": formats, "kv": formats, "engine": list(engine_names())},
    }
