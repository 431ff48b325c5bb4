"""Refitting: the committed rows in, a calibration file out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from planner.calibration.committed import committed_priors, committed_rows
from planner.calibration.fit import Design, Effects, Priors, Problem, fit
from planner.calibration.observations import add_decode, add_prompts
from planner.calibration.table import Calibration, from_json
from planner.roofline import Array
from planner.serving import serve
from planner.validation.groups import Group, grouped
from planner.validation.rows import Row
from planner.validation.setup import setup

SET = ("model", "gpu", "engine", "weight_format")
"""Columns that make rows one set: they share most of their error."""

SET_SIZE = 20
"""Rows beyond this many in a set do not add weight [-]."""

TTFT_WEIGHT = 0.1
"""Weight of a row's TTFT beside its TPOT [-]."""


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

    def running(self, calibration: Calibration) -> Array:
        """Return the predicted running batch of every row [-]."""
        clients, isl, osl = (self.input(name) for name in ("concurrency", "isl", "osl"))
        found = np.zeros(len(self.rows))
        for group in self.groups:
            at = group.rows
            one = group.deployment.calibrated(calibration, group.deployment.subject)
            found[at] = serve(one, clients[at], isl[at], osl[at], calibration=calibration).running
        return found


@dataclass(frozen=True)
class Fitted:
    """A problem with the measurements and weights of its rows."""

    problem: Problem
    measured: Array
    weight: Array

    def solve(self, use: Array, start: Array | None = None) -> Array:
        """Return the effects fitted to the rows of which `use` is true."""
        return fit(self.problem, self.measured, np.where(use, self.weight, 0.0), start)


def problem_of(serving: ServingRows, running: Array, priors: Priors, burst: float,
               wait: float) -> Fitted:  # fmt: skip
    """Return the problem of serving rows at their running batch: TPOT first, then TTFT."""
    n = len(serving.rows)
    isl, osl, ranks = serving.input("isl"), serving.input("osl"), serving.ranks
    others = np.maximum(running - 1.0, 0.0)
    context, ones = isl + osl / 2, np.ones(n)
    design = Design(priors)
    add_decode(design, serving.groups, running, context, ones, 0)
    add_prompts(design, serving.groups, isl, ranks, others / osl / ranks, 0)
    add_decode(design, serving.groups, running, context, wait * ones, n)
    add_prompts(design, serving.groups, isl, ranks, 1.0 + burst * others / ranks, n)
    queued = np.array([row.remarks.get("queued") == "1" for row in serving.rows])
    return Fitted(
        design.close(2 * n),
        np.concatenate([serving.measured("tpot_ms"), serving.measured("ttft_ms")]),
        np.concatenate([serving.weight, serving.weight * TTFT_WEIGHT * ~queued]),
    )


def content(priors: Priors, effects: Effects, theta: Array, serving: Mapping[str, float],
            edition: str) -> dict[str, Any]:  # fmt: skip
    """Return the calibration file of fitted effects, as plain values."""
    parameters: dict[str, Any] = {
        name: {
            "levels": [list(tags) for tags, _ in prior.levels],
            "values": dict(prior.values),
            "factors": [{} for _ in prior.levels],
        }
        for name, prior in priors.parameters.items()
    }
    for (name, level, key), position in effects.index.items():
        factor = float(np.exp(theta[position]))
        if level < 0:
            parameters[name]["values"][key] *= factor
        elif abs(factor - 1) >= SMALLEST_FACTOR:
            parameters[name]["factors"][level][key] = float(f"{factor:.4g}")
    for row in parameters.values():
        row["values"] = {key: float(f"{value:.4g}") for key, value in row["values"].items()}
    parameters["serving"] = {"levels": [], "values": dict(serving), "factors": []}
    return {
        "edition": edition,
        "sharpness": dict(priors.sharpness),
        "parameters": parameters,
        "intervals": {},
        "provenance": {},
    }


SMALLEST_FACTOR = 0.002
"""Factors nearer to one than this are left out of the file [-]."""


def refit(serving: ServingRows, priors: Priors, numbers: Mapping[str, float], edition: str,
          rounds: int = 3) -> tuple[dict[str, Any], Fitted, Array]:  # fmt: skip
    """Return the calibration file, the last problem and its solution.

    The running batch depends on the times and the times on the batch: both are iterated.
    """
    running = serving.input("concurrency")
    theta = None
    while True:
        fitted = problem_of(serving, running, priors, numbers["burst"], numbers["wait"])
        theta = fitted.solve(np.ones(len(fitted.measured), bool), start=theta)
        found = content(priors, fitted.problem.effects, theta, numbers, edition)
        rounds -= 1
        if rounds < 1:
            return found, fitted, theta
        running = serving.running(from_json(found))


def refit_committed() -> dict[str, Any]:
    """Return the calibration fitted to the rows and priors kept with the project."""
    given = committed_priors()
    rows = [row for row in committed_rows("serving") if not row.inputs["speculative"]]
    found, _, theta = refit(
        ServingRows.of(rows), Priors.of(given), given["serving"], given["edition"]
    )
    found["provenance"] = {
        "rows": {"serving": len(rows)},
        "effects": int((np.abs(theta) > SMALLEST_FACTOR).sum()),
    }
    return found
