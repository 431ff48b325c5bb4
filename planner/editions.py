"""Which editions of the data an answer was computed with."""

from __future__ import annotations

from functools import cache

from planner import answer, hw, models

ROOFLINE = "roofline"
"""The calibration edition of an answer that uses none."""


@cache
def current_editions() -> answer.Editions:
    """Return the editions in use."""
    return answer.Editions(models=models.edition(), hardware=hw.edition(), calibration=ROOFLINE)
