"""Keeping the user's rows and the factors fitted to them (`planner.calibration.own` reads them).

Nothing here writes into the package.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from planner.calibration import Calibration
from planner.calibration.own import FILE, data_directory, load_own
from planner.fitting.own import Fit, refit
from planner.runs.entries import entry_of, joined, row_of
from planner.runs.rows import Row


def kept_rows() -> list[Row]:
    """Return the rows kept so far. Raises BrokenLocal."""
    own = load_own()
    return [row_of(entry) for entry in own.rows] if own else []


def add(rows: Sequence[Row], shipped: Calibration) -> Fit:
    """Fit the rows kept so far and these, and keep both; a row that is there already counts once.

    Raises ValueError, one line, or OSError.
    """
    together = joined([*kept_rows(), *rows])
    fit = refit(together, shipped)
    _write(fit, together)
    return fit


def forget() -> bool:
    """Remove the local calibration; return whether there was one."""
    path = data_directory() / FILE
    there = path.exists()
    path.unlink(missing_ok=True)
    return there


def _write(fit: Fit, rows: Sequence[Row]) -> None:
    directory = data_directory()
    directory.mkdir(parents=True, exist_ok=True)
    content = {
        "edition": fit.edition,
        "factors": [dict(level) for level in fit.factors],
        "rows": [entry_of(row) for row in rows],
    }
    path = directory / FILE
    partial = path.with_suffix(".partial")
    partial.write_text(json.dumps(content, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    partial.replace(path)
