"""Factors a user fitted to measurements of their own, kept in the user's data directory.

`planner calibrate --add` writes them (`planner.fitting.kept`); here they are only read, with
nothing loaded that a plan does not need. `PLANNER_DATA_DIR` overrides where.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from planner.calibration.table import SCALE, Calibration, Parameter
from planner.errors import InvalidInput

FILE = "calibration-local.json"

LEVELS: tuple[tuple[tuple[str, ...], float], ...] = (
    (("kind", "gpu", "engine"), 0.06),
    (("kind", "gpu", "engine", "size"), 0.19),
    (("kind", "gpu", "engine", "weights"), 0.10),
    (("kind", "gpu", "engine", "model"), 0.10),
)
"""Tags a local factor is told apart by, and the prior's deviation of its logarithm [-]."""


class BrokenLocal(InvalidInput):
    """A local calibration that cannot be read; one line says what to do."""


@dataclass(frozen=True, slots=True)
class Own:
    """What is kept."""

    edition: str
    """Edition of the shipped calibration the factors belong to."""
    factors: tuple[Mapping[str, float], ...]
    """By level of `LEVELS`: factor by the tags' values."""
    rows: tuple[Mapping[str, Any], ...]
    """The rows they were fitted to, as plain values."""


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


def load_own() -> Own | None:
    """Return the user's factors, or None where there are none. Raises BrokenLocal."""
    try:
        path = data_directory() / FILE
        text = path.read_text(encoding="utf-8")
    except (OSError, RuntimeError):  # none there, or no home directory at all
        return None
    try:
        content = json.loads(text)
        return Own(
            edition=str(content["edition"]),
            factors=tuple(
                {str(key): float(value) for key, value in level.items()}
                for level in content["factors"]
            ),
            rows=tuple(dict(entry) for entry in content["rows"]),
        )
    except (ValueError, KeyError, TypeError, AttributeError):
        raise BrokenLocal(
            f"calibration: {path} cannot be read; remove it with `planner calibrate --forget`"
        ) from None


def applied(shipped: Calibration, factors: Sequence[Mapping[str, float]]) -> Calibration:
    """Return the shipped calibration with local factors on decode, prompts and TTFT."""
    scale = shipped.parameters[SCALE]
    more = Parameter(
        (*scale.levels, *(tags for tags, _ in LEVELS)), scale.values, (*scale.factors, *factors)
    )
    return replace(shipped, parameters={**shipped.parameters, SCALE: more})


def with_own(shipped: Calibration) -> Calibration:
    """Return the shipped calibration with the user's factors, where they belong to its edition.

    The edition of the result says so. Raises BrokenLocal.
    """
    own = load_own()
    if own is None or own.edition != shipped.edition:
        return shipped
    return replace(applied(shipped, own.factors), edition=f"{shipped.edition}+local")
