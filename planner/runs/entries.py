"""Rows as plain values, to be kept and read again."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from planner.runs.rows import INPUTS, Kind, Row


def entry_of(row: Row) -> dict[str, Any]:
    """Return a row as plain values, without its blank inputs."""
    return {
        "kind": row.kind,
        "inputs": {k: v for k, v in row.inputs.items() if v},
        "measured": dict(row.measured),
        "remarks": dict(row.remarks),
    }


def row_of(entry: Mapping[str, Any]) -> Row:
    """Return the row that `entry_of` made plain."""
    kind: Kind = entry["kind"]
    return Row(
        kind,
        dict.fromkeys(INPUTS[kind], "") | {str(k): str(v) for k, v in entry["inputs"].items()},
        {str(k): float(v) for k, v in entry["measured"].items()},
        {str(k): str(v) for k, v in entry["remarks"].items()},
    )


def joined(rows: Iterable[Row]) -> list[Row]:
    """Return rows with each run once: the same inputs and figures, whatever its number."""
    by_name: dict[str, Row] = {}
    for row in rows:
        inputs = {k: v for k, v in row.inputs.items() if v and k != "row"}
        by_name.setdefault(json.dumps([row.kind, inputs, dict(row.measured)], sort_keys=True), row)
    return list(by_name.values())
