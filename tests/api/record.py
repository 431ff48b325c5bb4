"""Figures of a run, for docs/RELIABILITY.md: written where PLANNER_TEST_RECORD says, if it does."""

from __future__ import annotations

import json
import os
from pathlib import Path


def record(suite: str, database: str, **figures: float | str) -> None:
    """Add figures of a suite on a database (a name, or the url of one) to the record."""
    target = os.environ.get("PLANNER_TEST_RECORD")
    if target:
        name = database.partition(":")[0].partition("+")[0]
        line = {"suite": suite, "database": name, "figures": figures}
        with Path(target).open("a", encoding="utf-8") as out:
            out.write(json.dumps(line) + "\n")
