"""How published runs were loaded, by where they come from: their lengths, and how they arrived."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

import numpy as np

from planner.roofline import Array
from planner.runs.rows import Row, numbers


@dataclass(frozen=True, slots=True)
class Harness:
    """What a benchmark's rows leave unsaid."""

    mean_share: float = 1.0
    """Mean length drawn over the length stated [-]."""
    arrivals: str = ""
    """`bunched` where equal lengths keep the clients in step; empty where they spread."""
    sized: bool = False
    """Whether engines were set up to hold the clients they were run with, see `room_of_run`."""


AS_STATED = Harness()


@cache
def _harnesses() -> dict[str, Harness]:
    text = files("planner.runs").joinpath("data/harnesses.json").read_text("utf-8")
    return {
        name: Harness(found["mean_share"], found["arrivals"], found["sized"])
        for name, found in json.loads(text).items()
    }


def harness_of(row: Row) -> Harness:
    """Return how a row was loaded; as it states where its benchmark is not known."""
    return _harnesses().get(row.inputs.get("source", ""), AS_STATED)


def mean_lengths(rows: Sequence[Row]) -> tuple[Array, Array]:
    """Return the mean input and output lengths rows were run with, shape (row,) [token]."""
    share = np.array([harness_of(row).mean_share for row in rows])
    isl, osl = (numbers(rows, name, 1.0) for name in ("isl", "osl"))
    return np.maximum(isl * share, 1.0), np.maximum(osl * share, 1.0)
