"""Which editions of the data an answer was computed with."""

from __future__ import annotations

from functools import lru_cache

from planner import answer, hw, models
from planner.calibration import current
from planner.engines.names import edition as engines_edition


def current_editions() -> answer.Editions:
    """Return the editions in use; a calibration with factors of the user's own says so."""
    return _with(current().edition)


@lru_cache(maxsize=64)
def _with(calibration: str) -> answer.Editions:
    return answer.Editions(
        models=models.edition(),
        hardware=hw.edition(),
        calibration=calibration,
        engines=engines_edition(),
    )
