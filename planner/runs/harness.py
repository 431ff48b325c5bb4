"""How published runs were loaded, by where they come from: their lengths, and how they arrived."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from importlib.resources import files

import numpy as np

from planner.roofline import Array
from planner.runs.rows import Row, numbers
from planner.serving.steady import Habits


@dataclass(frozen=True, slots=True)
class Harness:
    """What a benchmark's rows leave unsaid."""

    mean_share: float = 1.0
    """Mean length drawn over the length stated [-]."""
    arrivals: str = ""
    """`bunched` where equal lengths keep the clients in step; empty where they spread."""
    sized: bool = False
    """Whether engines were set up to hold the clients they were run with, see `room_of_run`."""
    tuned: bool = False
    """Whether vendors and experts set the engines up for the benchmark."""
    polls: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    """Steps between looks for new requests, by engine and least clients [-]."""
    rank_wait: Mapping[str, float] = field(default_factory=dict)
    """Steps a prompt waits at most until every attention-DP rank has one, by engine [-]."""

    def poll(self, engine: str, clients: float) -> float:
        """Return the steps between looks for new requests [-]; 1 where none is skipped."""
        polls = [n for least, n in self.polls.get(engine, {}).items() if clients >= float(least)]
        return max(polls, default=1.0)


AS_STATED = Harness()


@cache
def _harnesses() -> dict[str, Harness]:
    text = files("planner.runs").joinpath("data/harnesses.json").read_text("utf-8")
    return {
        name: Harness(**{key: value for key, value in found.items() if key != "source"})
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


def as_a_user_asks(row: Row) -> Row:
    """Return a serving run as a user would ask for it: its mean lengths, and no source."""
    isl, osl = (f"{float(values[0]):g}" for values in mean_lengths([row]))
    return replace(row, inputs={**row.inputs, "isl": isl, "osl": osl, "source": ""})


def habits(rows: Sequence[Row]) -> Habits:
    """Return how the engines of rows were set up to take requests in, shape (row,)."""
    loads = [(harness_of(row), row.inputs["engine"]) for row in rows]
    clients = numbers(rows, "concurrency", 1.0).tolist()
    return Habits(
        np.array([h.poll(name, n) for (h, name), n in zip(loads, clients, strict=True)]),
        np.array([h.rank_wait.get(name, 0.0) for h, name in loads]),
    )
