"""Keeping the user's rows and the factors fitted to them (`planner.calibration.own` reads them).

Nothing here writes into the package.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from planner.calibration import Calibration
from planner.calibration.own import FILE, data_directory, load_own
from planner.measurements.refit import Fit, refit
from planner.validation.rows import INPUTS, Kind, Row


def kept_rows() -> list[Row]:
    """Return the rows kept so far. Raises BrokenLocal."""
    own = load_own()
    return [_row(entry) for entry in own.rows] if own else []


def add(rows: Sequence[Row], shipped: Calibration) -> Fit:
    """Fit the rows kept so far and these, and keep both; a row that is there already counts once.

    Raises ValueError, one line, or OSError.
    """
    kept = kept_rows()
    kept += [row for row in rows if not any(_same(row, other) for other in kept)]
    found = refit(kept, shipped)
    _write(found, kept)
    return found


def forget() -> bool:
    """Remove the local calibration; return whether there was one."""
    path = data_directory() / FILE
    there = path.exists()
    path.unlink(missing_ok=True)
    return there


def _same(one: Row, other: Row) -> bool:
    inputs = [{k: v for k, v in row.inputs.items() if k != "row"} for row in (one, other)]
    return inputs[0] == inputs[1] and one.measured == other.measured


def _row(entry: Mapping[str, Any]) -> Row:
    kind: Kind = entry["kind"]
    return Row(
        kind,
        dict.fromkeys(INPUTS[kind], "") | {str(k): str(v) for k, v in entry["inputs"].items()},
        {str(k): float(v) for k, v in entry["measured"].items()},
        {str(k): str(v) for k, v in entry["remarks"].items()},
    )


def _write(found: Fit, rows: Sequence[Row]) -> None:
    directory = data_directory()
    directory.mkdir(parents=True, exist_ok=True)
    content = {
        "edition": found.edition,
        "factors": [dict(level) for level in found.factors],
        "rows": [
            {
                "kind": row.kind,
                "inputs": {k: v for k, v in row.inputs.items() if v},
                "measured": dict(row.measured),
                "remarks": dict(row.remarks),
            }
            for row in rows
        ],
    }
    path = directory / FILE
    partial = path.with_suffix(".partial")
    partial.write_text(json.dumps(content, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    partial.replace(path)
