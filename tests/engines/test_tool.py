"""tools/engines.py: an engine is taken in beside the others, or refused with every reason."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.scripts import script

TOOL = script("engines")
TABLE = TOOL.newest().read_text("utf-8")
ENGINE: dict[str, Any] = {
    "id": "zenith",
    "name": "Zenith Serve",
    "sources": {"zenith-docs": "Zenith Serve 1.0 documentation: --memory-share"},
    "figures": {
        "memory_fraction": {"value": 0.85, "source": "zenith-docs", "confidence": "documented"},
        "max_sequences": {
            "rows": [{"only": ["h100"], "value": 512}, {"value": 256}],
            "source": "zenith-docs",
            "confidence": "documented",
        },
    },
}


def test_an_engine_is_added_and_nothing_else_changes() -> None:
    assert TOOL.faults(ENGINE, json.loads(TABLE)) == []
    text = TOOL.added(TABLE, ENGINE)
    table, before = json.loads(text), json.loads(TABLE)
    assert table["engines"].pop("zenith") == {"name": "Zenith Serve", "figures": ENGINE["figures"]}
    assert table["sources"].pop("zenith-docs") == ENGINE["sources"]["zenith-docs"]
    assert table == before
    lines = iter(text.splitlines())  # every line of the table stands, in its order, up to a comma
    assert all(any(line == other.rstrip(",") for other in lines) for line in _lines(TABLE))


def _lines(text: str) -> list[str]:
    return [line.rstrip(",") for line in text.splitlines()]


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"id": "vllm"}, "id: 'vllm' is in the table"),
        ({"name": ""}, "name: missing"),
        ({"figures": {}}, "figures: missing"),
        ({"sources": {}}, "memory_fraction: source 'zenith-docs' has no text"),
        (
            {"figures": {"memory_fraction": {"source": "zenith-docs", "confidence": "documented"}}},
            "memory_fraction: neither value nor rows",
        ),
        (
            {"figures": {"memory_fraction": {"value": 1, "source": "zenith-docs"}}},
            "memory_fraction: confidence is not one of documented, source_code, fitted, assumed",
        ),
    ],
)
def test_what_is_missing_is_named(change: dict[str, Any], fault: str) -> None:
    assert TOOL.faults(ENGINE | change, json.loads(TABLE))[0] == fault
