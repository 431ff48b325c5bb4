"""Dated data files of this package."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from planner.errors import InvalidInput

EDITION = "2026-12-01"
FOLDER = Path(__file__).with_name("data")


@cache
def load(name: str, edition: str) -> dict[str, Any]:
    """Content of `<name>-<edition>.json`.

    Raises:
        InvalidInput: there is no such edition.
    """
    path = FOLDER / f"{name}-{edition}.json"
    if not path.is_file():
        editions = sorted(p.stem[len(name) + 1 :] for p in FOLDER.glob(f"{name}-*.json"))
        raise InvalidInput(f"edition: no {name} of {edition!r}; accepted: {', '.join(editions)}")
    data: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return data


def source_texts(data: Mapping[str, Any]) -> Mapping[str | int, str]:
    """Text of each source of a data file by its key; by its place in the first edition."""
    sources = data["sources"]
    return dict(enumerate(sources)) if isinstance(sources, list) else sources
