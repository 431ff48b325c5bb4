"""Rows of decode speed at a known batch and context, as parts of a fit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from planner.fitting.fit import Design
from planner.fitting.observations import add_decode, add_prompts, set_weights
from planner.roofline import Array
from planner.runs.groups import Group, grouped
from planner.runs.points import decode_points
from planner.runs.rows import Row
from planner.runs.setup import setup

SET = ("model", "gpu", "engine", "backend", "weight_format")
"""Columns that make rows one set: they share most of their error."""

SET_SIZE = 5
"""Rows beyond this many in a set do not add weight [-]."""


_SUSPECT = "marked as suspect where it was collected"

EARLY = "faster than its weights and cache can be read"

FASTEST = 0.85
"""Share of the datasheet roofline's time below which a measurement is doubted [-]."""


@dataclass(frozen=True)
class DecodeRows:
    """Decode rows as arrays; those that cannot be set up are left out."""

    rows: Sequence[Row]
    groups: Sequence[Group]

    @classmethod
    def of(cls, rows: Sequence[Row]) -> DecodeRows:
        """Resolve the deployments of rows."""
        readable, deployments = [], []
        for row in rows:
            try:
                deployments.append(setup(row).deployment)
            except ValueError:
                continue
            readable.append(row)
        return cls(readable, grouped(deployments))

    @cached_property
    def seconds(self) -> Array:
        """Measured time of a step, or of a whole request [s]."""
        times_s = []
        for row in self.rows:
            value = row.measured["value"]
            as_seconds = {
                "decode_tokens_per_s": row.count("batch") / value,
                "tpot_ms": value / 1e3,
                "request_latency_s": value,
            }
            times_s.append(as_seconds[row.inputs["metric"]])
        return np.array(times_s)

    @property
    def weight(self) -> Array:
        """Weight of each row: less where its set is large, none where it is doubted [-]."""
        weight = set_weights(self.rows, SET, SET_SIZE)
        return np.where([bool(doubt) for doubt in self.doubts], 0.0, weight)

    @cached_property
    def doubts(self) -> list[str]:
        """Why a row is left out of the fit; empty for most."""
        doubts = [_SUSPECT if r.remarks.get("suspect") == "1" else "" for r in self.rows]
        for group in self.groups:
            one = group.deployment
            points = decode_points(one, [self.rows[i] for i in group.rows])
            pure = one.step.at(points.batch, points.context).roofline_s
            steps = np.where(points.whole, (points.osl - 1.0) * points.repeats, 1.0)
            early = self.seconds[group.rows] < FASTEST * steps * pure
            for i in group.rows[early].tolist():
                doubts[i] = doubts[i] or EARLY
        return doubts

    def add(self, design: Design, offset: int) -> None:
        """Add all rows to a design, from row `offset` on."""
        n = len(self.rows)
        batch, context, isl, steps, prompts = (np.ones(n) for _ in range(5))
        for group in self.groups:
            at = group.rows
            points = decode_points(group.deployment, [self.rows[i] for i in at])
            batch[at], context[at] = points.batch, points.context
            isl[at] = np.maximum(points.isl, 1.0)
            later = np.maximum(points.osl - 1.0, 1.0)
            steps[at] = np.where(points.whole, later * points.repeats, 1.0)
            prompts[at] = np.where(points.whole, points.repeats, 0.0)
        add_decode(design, self.groups, batch, context, steps, offset)
        add_prompts(design, self.groups, isl, batch, prompts, offset)
