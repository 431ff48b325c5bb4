"""What a machine is: accelerators, links and prices, each figure with its source."""

from __future__ import annotations

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
from planner.hw.inline import InvalidAccelerator

__all__ = [
    "CHAINS",
    "FORMATS",
    "Accelerator",
    "Catalogue",
    "Figure",
    "InvalidAccelerator",
    "Link",
    "Measured",
    "MissingFigure",
    "UnknownAccelerator",
    "UnsupportedFormat",
    "edition",
    "get_accelerator",
    "list_accelerators",
    "load_catalogue",
]
