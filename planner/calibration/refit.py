"""Refitting: the committed rows in, a calibration file out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from planner.calibration.committed import committed_priors, committed_rows
from planner.calibration.fit import Design, Effects, Priors, Problem, fit
from planner.calibration.kernel_rows import Samples, add_samples, read_samples
from planner.calibration.observations import add_decode, add_prompts
from planner.calibration.table import Calibration, from_json
from planner.roofline import Array, Bools
from planner.serving import QUEUEING, Queueing, serve
from planner.timing import Features, Item
from planner.validation.groups import Group, grouped
from planner.validation.room import room_of_run
from planner.validation.rows import Row
from planner.validation.setup import setup

SET = ("model", "gpu", "engine", "weight_format")
"""Columns that make rows one set: they share most of their error."""

SET_SIZE = 20
"""Rows beyond this many in a set do not add weight [-]."""

KERNEL_WEIGHT = 0.5
"""Weight of a set of kernel samples beside a serving row [-]."""


@dataclass(frozen=True)
class ServingRows:
    """Serving rows as arrays."""

    rows: Sequence[Row]
    groups: Sequence[Group]

    @classmethod
    def of(cls, rows: Sequence[Row]) -> ServingRows:
        """Resolve the deployments of rows."""
        return cls(rows, grouped([setup(row).deployment for row in rows]))

    def input(self, name: str) -> Array:
        """Return an input column as numbers."""
        return np.array([row.number(name, 1.0) for row in self.rows], dtype=float)

    def measured(self, name: str) -> Array:
        """Return a measured column [s]."""
        return np.array([row.measured[name] for row in self.rows]) / 1e3

    @cached_property
    def weight(self) -> Array:
        """Weight of each row, less where its set is large [-]."""
        names = ["|".join(row.inputs[c] for c in SET) for row in self.rows]
        _, at, sizes = np.unique(names, return_inverse=True, return_counts=True)
        weight: Array = np.minimum(1.0, SET_SIZE / sizes)[at]
        return weight

    @cached_property
    def ranks(self) -> Array:
        """Attention-DP ranks [-]."""
        found = np.ones(len(self.rows))
        for group in self.groups:
            found[group.rows] = group.deployment.sharding.attention_dp
        return found

    def states(self, calibration: Calibration) -> States:
        """Return what a calibration predicts of every row."""
        clients, isl, osl = (self.input(name) for name in ("concurrency", "isl", "osl"))
        found = States(*(np.zeros(len(self.rows)) for _ in range(4)))
        for group in self.groups:
            at = group.rows
            one = group.deployment.calibrated(calibration, group.deployment.subject)
            room = room_of_run(one, clients[at], isl[at], osl[at])
            state = serve(one, clients[at], isl[at], osl[at], calibration=calibration, room=room)
            found.running[at] = state.running
            found.decode_s[at] = state.decode_s
            found.prompt_s[at] = state.prompt_s
            found.burst[at] = Queueing.of(calibration, one.subject).burst
        return found


@dataclass(frozen=True, slots=True)
class States:
    """Predicted steady states of rows."""

    running: Array
    decode_s: Array
    prompt_s: Array
    burst: Array


@dataclass(frozen=True)
class Fitted:
    """A problem with the measurements and weights of its rows."""

    problem: Problem
    measured: Array
    weight: Array

    def solve(self, use: Bools, start: Array | None = None) -> Array:
        """Return the effects fitted to the rows of which `use` is true."""
        return fit(self.problem, self.measured, np.where(use, self.weight, 0.0), start)


def times_problem(serving: ServingRows, states: States, priors: Priors,
                  samples: Sequence[Samples]) -> Fitted:  # fmt: skip
    """Return the problem of the times: serving rows at their running batch, and kernel samples."""
    n = len(serving.rows)
    isl, osl, ranks = serving.input("isl"), serving.input("osl"), serving.ranks
    held = (1.0 - states.burst) * np.maximum(states.running - 1.0, 0.0) / osl / ranks
    design = Design(priors)
    add_decode(design, serving.groups, states.running, isl + osl / 2, np.ones(n), 0)
    add_prompts(design, serving.groups, isl, ranks, held, 0)
    times, weights = add_samples(design, samples, n)
    return Fitted(
        design.close(n + len(times)),
        np.concatenate([serving.measured("tpot_ms"), times]),
        np.concatenate([serving.weight, weights * KERNEL_WEIGHT]),
    )


def queueing_problem(serving: ServingRows, states: States, priors: Priors) -> Fitted:
    """Return the problem of TTFT, given the times of steps and prompts."""
    n = len(serving.rows)
    others = np.maximum(states.running - 1.0, 0.0) * states.prompt_s
    items = (Item("prompt"), *(Item(name) for name in QUEUEING))
    visits = [np.zeros(n), np.ones(n), others, states.decode_s]
    own = states.prompt_s * serving.ranks
    design = Design(priors)
    for group in serving.groups:
        at = group.rows
        none = np.zeros((len(items), len(at)))
        memory = none.copy()
        memory[0] = own[at]
        features = Features(none, memory, none, np.stack(visits)[:, at])
        design.add(items, group.deployment.subject, "", features, at, np.ones(len(at)), False)
    queued = np.array([row.remarks.get("queued") == "1" for row in serving.rows])
    return Fitted(design.close(n), serving.measured("ttft_ms"), serving.weight * ~queued)


def content(priors: Priors, fits: Sequence[tuple[Effects, Array]], edition: str) -> dict[str, Any]:
    """Return the calibration file of fitted effects, as plain values."""
    parameters: dict[str, Any] = {
        name: {
            "levels": [list(tags) for tags, _ in prior.levels],
            "values": dict(prior.values),
            "factors": [{} for _ in prior.levels],
        }
        for name, prior in priors.parameters.items()
    }
    for effects, theta in fits:
        for (name, level, key), position in effects.index.items():
            factor = float(np.exp(theta[position]))
            if level < 0:
                parameters[name]["values"][key] *= factor
            elif abs(factor - 1) >= SMALLEST_FACTOR:
                parameters[name]["factors"][level][key] = float(f"{factor:.4g}")
    for row in parameters.values():
        row["values"] = {key: float(f"{value:.4g}") for key, value in row["values"].items()}
    return {
        "edition": edition,
        "sharpness": dict(priors.sharpness),
        "parameters": parameters,
        "intervals": {},
        "provenance": {},
    }


SMALLEST_FACTOR = 0.002
"""Factors nearer to one than this are left out of the file [-]."""

ROUNDS = 3
"""Iterations between the running batch and the times it depends on [-]."""


class Refit:
    """A fit to serving rows and kernel samples, which can leave some of them out."""

    def __init__(self, serving: ServingRows, samples: Sequence[Samples], priors: Priors,
                 edition: str) -> None:  # fmt: skip
        """Fit to all rows; the running batch and the times are iterated."""
        self.serving, self.priors, self.edition = serving, priors, edition
        everything = np.ones(len(serving.rows), dtype=bool)
        found = content(priors, (), edition)
        for _ in range(ROUNDS):
            states = serving.states(from_json(found))
            self.times = times_problem(serving, states, priors, samples)
            self.queueing = queueing_problem(serving, states, priors)
            found = self.without(~everything)
        self.content = found

    def without(self, left_out: Bools) -> dict[str, Any]:
        """Return the calibration fitted without some of the serving rows."""
        more = len(self.times.measured) - len(left_out)
        use = np.concatenate([~left_out, np.ones(more, dtype=bool)])
        fits = [
            (self.times.problem.effects, self.times.solve(use)),
            (self.queueing.problem.effects, self.queueing.solve(~left_out)),
        ]
        return content(self.priors, fits, self.edition)


def refit_committed() -> dict[str, Any]:
    """Return the calibration fitted to the rows and priors kept with the project."""
    given = committed_priors()
    rows = [row for row in committed_rows("serving") if not row.inputs["speculative"]]
    samples = read_samples()
    found = Refit(ServingRows.of(rows), samples, Priors.of(given), given["edition"]).content
    found["provenance"] = {
        "rows": {"serving": len(rows), "kernels": sum(len(s.seconds) for s in samples)},
    }
    return found
