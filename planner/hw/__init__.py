"""What a machine is: accelerators, links and prices, each figure with its source."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from planner.hw.accelerator import Accelerator, MissingFigure
from planner.hw.catalogue import (
    Catalogue,
    UnknownAccelerator,
    edition,
    get_accelerator,
    list_accelerators,
    load_catalogue,
)
from planner.hw.figure import Figure, Link, Measured
from planner.hw.formats import CHAINS, FORMATS, UnsupportedFormat

if TYPE_CHECKING:
    from planner.hw.describe import describe
    from planner.hw.inline import InvalidAccelerator
    from planner.hw.links import AllReduce, LinkSpec, all_reduces, link_specs
    from planner.hw.prices import Price, PriceRow, list_prices, load_prices, price_per_hour

__all__ = [
    "CHAINS",
    "FORMATS",
    "Accelerator",
    "AllReduce",
    "Catalogue",
    "Figure",
    "InvalidAccelerator",
    "Link",
    "LinkSpec",
    "Measured",
    "MissingFigure",
    "Price",
    "PriceRow",
    "UnknownAccelerator",
    "UnsupportedFormat",
    "all_reduces",
    "describe",
    "edition",
    "get_accelerator",
    "link_specs",
    "list_accelerators",
    "list_prices",
    "load_catalogue",
    "load_prices",
    "price_per_hour",
]

_LATER = {
    "describe": ("describe",),
    "inline": ("InvalidAccelerator",),
    "links": ("AllReduce", "LinkSpec", "all_reduces", "link_specs"),
    "prices": ("Price", "PriceRow", "list_prices", "load_prices", "price_per_hour"),
}


def __getattr__(name: str) -> object:
    """Load what a plan does not need when it is first used."""
    for module, names in _LATER.items():
        if name in names:
            value: object = getattr(import_module(f"planner.hw.{module}"), name)
            globals()[name] = value
            return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
