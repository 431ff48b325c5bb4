"""The user's own rows and the factors fitted to them, kept in the user's data directory.

Nothing here writes into the package. `PLANNER_DATA_DIR` overrides where.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from planner.calibration import Calibration
from planner.measurements.refit import Fit, applied, refit
from planner.validation.rows import INPUTS, Kind, Row

FILE = "calibration-local.json"


class BrokenLocal(ValueError):
    """A local calibration that cannot be read; one line says what to do."""


@dataclass(frozen=True, slots=True)
class Local:
    """What is kept: the rows, and the factors fitted to them."""

    edition: str
    factors: tuple[Mapping[str, float], ...]
    rows: tuple[Row, ...]


def data_directory() -> Path:
    """Return the directory of the user's data, which may not exist yet."""
    if given := os.environ.get("PLANNER_DATA_DIR"):
        return Path(given)
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA", str(Path.home()))) / "decode-planner"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Application Support" / "decode-planner"
    base = os.environ.get("XDG_DATA_HOME") or str(Path.home() / ".local" / "share")
    return Path(base) / "decode-planner"


def load() -> Local | None:
    """Return the local calibration, or None where there is none.

    Raises BrokenLocal.
    """
    path = data_directory() / FILE
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    try:
        content = json.loads(text)
        return Local(
            edition=str(content["edition"]),
            factors=tuple(
                {str(key): float(value) for key, value in level.items()}
                for level in content["factors"]
            ),
            rows=tuple(_row(entry) for entry in content["rows"]),
        )
    except (ValueError, KeyError, TypeError, AttributeError):
        raise BrokenLocal(
            f"calibration: {path} cannot be read; remove it with `planner calibrate --forget`"
        ) from None


def add(rows: Sequence[Row], shipped: Calibration) -> Fit:
    """Fit the rows kept so far and these, and keep both; a row that is there already counts once.

    Raises ValueError, one line, or OSError.
    """
    before = load()
    kept: list[Row] = list(before.rows) if before else []
    kept += [row for row in rows if not any(_same(row, other) for other in kept)]
    found = refit(kept, shipped)
    _write(Local(found.edition, found.factors, tuple(kept)))
    return found


def forget() -> bool:
    """Remove the local calibration; return whether there was one."""
    path = data_directory() / FILE
    there = path.exists()
    path.unlink(missing_ok=True)
    return there


def with_local(shipped: Calibration) -> Calibration:
    """Return the shipped calibration with the user's factors, where they belong to its edition."""
    local = load()
    if local is None or local.edition != shipped.edition:
        return shipped
    return applied(shipped, local.factors)


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


def _write(local: Local) -> None:
    directory = data_directory()
    directory.mkdir(parents=True, exist_ok=True)
    content = {
        "edition": local.edition,
        "factors": [dict(level) for level in local.factors],
        "rows": [
            {
                "kind": row.kind,
                "inputs": {k: v for k, v in row.inputs.items() if v},
                "measured": dict(row.measured),
                "remarks": dict(row.remarks),
            }
            for row in local.rows
        ],
    }
    path = directory / FILE
    partial = path.with_suffix(".partial")
    partial.write_text(json.dumps(content, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    partial.replace(path)
