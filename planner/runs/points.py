"""At which batch and context a decode row ran."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from planner.deployment import Deployment
from planner.roofline import Array, Bools
from planner.runs.rows import Row
from planner.serving.steady import room_for

SHORT_CONTEXT = 128.0
"""Tokens in the cache where a source prints none and says short [token]."""


@dataclass(frozen=True, slots=True)
class Points:
    """Where rows ran, one value a row."""

    batch: Array
    """Sequences decoding at once [-]."""
    context: Array
    """Mean tokens in the cache [token]."""
    isl: Array
    osl: Array
    repeats: Array
    """Batches that a static batch too large for the cache pool is run as [-]."""
    whole: Bools
    """Whether a row times whole requests, prompt included."""


def decode_points(deployment: Deployment, rows: Sequence[Row]) -> Points:
    """Return where decode rows of one deployment ran."""
    batch, isl, osl, printed = (
        np.array([row.number(name, default) for row in rows], dtype=float)
        for name, default in (("batch", 1), ("isl", 0), ("osl", 1), ("context", 0))
    )
    whole = np.array([row.inputs["metric"] == "request_latency_s" for row in rows])
    mean = np.where(isl > 0, isl + osl / 2, SHORT_CONTEXT)
    context = np.where((printed > 0) & ~whole, printed, mean)
    room = np.maximum(room_for(deployment, isl, osl), 1.0)
    held = np.where(whole, np.minimum(batch, room), batch)
    return Points(held, context, isl, osl, batch / held, whole)
