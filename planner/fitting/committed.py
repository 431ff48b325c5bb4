"""The measured rows and priors that are kept with the project, so that it can refit alone."""

from __future__ import annotations

import json
from importlib.resources import as_file, files
from typing import Any

from planner.calibration.table import EDITION
from planner.runs.rows import Row, read_rows

ROWS = files("planner.runs").joinpath("data")
FITTING = files("planner.fitting").joinpath("data")


def committed_rows(name: str) -> list[Row]:
    """Return the rows kept under a name: serving, decode or memory."""
    with as_file(ROWS.joinpath(f"{name}-{EDITION}.csv.gz")) as path:
        return read_rows(path)


def committed_priors() -> dict[str, Any]:
    """Return the content of the priors file."""
    path = FITTING.joinpath(f"priors-{EDITION}.json")
    priors: dict[str, Any] = json.loads(path.read_text("utf-8"))
    return priors
