"""The facts of every catalogue model, worked out beforehand: a list need not build the models.

`listing.json` holds what `describe` returns of each model of the catalogue, in its order. It is
written by tools/index_models.py; a test says when it has to be written anew.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

FILE = Path(__file__).with_name("listing.json")


@cache
def all_facts() -> Sequence[dict[str, Any]]:
    """Return the facts of all models of the catalogue, as `describe` gives them."""
    facts: list[dict[str, Any]] = json.loads(FILE.read_text(encoding="utf-8"))
    return facts


def list_facts(
    family: str | None = None, kind: str | None = None, text: str | None = None
) -> list[dict[str, Any]]:
    """Return the facts of the models that `list_models` returns for the same filters."""
    words = (text or "").lower().split()
    return [
        facts
        for facts in all_facts()
        if family in (None, facts["model_type"])
        and kind in (None, facts["kind"])
        and all(word in " ".join((facts["id"], *facts["aliases"])).lower() for word in words)
    ]
