"""What a table takes before it is made: rows, bytes and time, from measured rates."""

from __future__ import annotations

from dataclasses import dataclass

from planner.plans.table.request import TableRequest

MEMBER_S = 2.0e-3
"""Time that setting up a member takes of a core, measured over the catalogue [s]."""
ROW_S = 4.0e-7
"""Time of a row of decode, evaluated and written, measured by `bench/sweep.py` [s]."""
LOAD_ROW_S = 5.0e-6
"""Time of a row of requests under load, whose steady state is a root [s]."""
LIMITS_S = 1.0e-3
"""Time of the limits of a member at one context [s]."""
ROW_BYTES = 36.0
"""Bytes of a row in a file [byte]."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """A table before it is made; at most, as impossible members have one row."""

    members: int
    rows: int
    bytes: int
    core_s: float
    """Time of one core [s]."""


def estimate(request: TableRequest) -> Estimate:
    """Return what a table takes if every member is possible."""
    members = request.members
    rows = members * request.points
    each_s = LOAD_ROW_S if request.serving else ROW_S
    limits_s = members * len(request.context) * LIMITS_S if request.limits else 0.0
    return Estimate(
        members=members,
        rows=rows,
        bytes=round(rows * ROW_BYTES),
        core_s=members * MEMBER_S + rows * each_s + limits_s,
    )
