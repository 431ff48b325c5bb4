"""The engines' data as files: their names and edition, for whoever needs no profile."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

EDITION = "2026-12-01"
"""Edition of the files that are written by hand."""

FOLDER = Path(__file__).with_name("data")
NEUTRAL = "neutral"
"""The engine that is none: physics alone."""


@cache
def edition() -> str:
    """Return the edition of all engine data: the day a file was last changed.

    Files of defaults are written by `tools/engine_defaults.py`, which notes the day it did.
    """
    written: str = read_json("defaults/written.json")["day"]
    return max(EDITION, written)


@cache
def engine_data() -> dict[str, Any]:
    """Return the parsed table of engines."""
    return read_json(f"engines-{EDITION}.json")


@cache
def device_data() -> dict[str, Any]:
    """Return the parsed table of the memory that drivers report."""
    return read_json(f"device-memory-{EDITION}.json")


def engine_names() -> tuple[str, ...]:
    """Return the ids of all engines, the neutral one left out."""
    return tuple(name for name in engine_data()["engines"] if name != NEUTRAL)


def spellings() -> dict[str, str]:
    """Return the engine by each word that stands for it: its id, and what else the data names."""
    engines = {name: engine_data()["engines"][name] for name in engine_names()}
    return {word: name for name, row in engines.items() for word in (name, *row.get("also", ()))}


def names_text() -> str:
    """Return the engines as a help text lists them: `a, b or c`."""
    *others, last = engine_names()
    return f"{', '.join(others)} or {last}" if others else last


def read_json(name: str) -> dict[str, Any]:
    """Return a parsed file of the data folder."""
    content: dict[str, Any] = json.loads((FOLDER / name).read_text("utf-8"))
    return content
