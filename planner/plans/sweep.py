"""Sweeps: one scenario over axes, answered as columns."""

from __future__ import annotations

import math
from concurrent.futures import Executor
from itertools import product
from typing import Annotated, Any, Self

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, model_validator

from planner import answer
from planner.deployment import deployment_of
from planner.plans.columns import FIGURES, grid_columns
from planner.plans.editions import current_editions
from planner.plans.planning import BOUND_NAMES
from planner.plans.progress import tracked
from planner.scenario import DEFAULT_CONTEXT, Count, Scenario, Short, grid_points
from planner.workload.distributions import Tokens

MOST_DEPLOYMENTS = 2_000
MOST_ROWS = 200_000

Axis = Annotated[list[Short], Field(min_length=1, max_length=500)]


class SweepRequest(BaseModel):
    """A scenario and the axes to vary; an axis left out keeps the scenario's own value."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    scenario: Scenario
    batch: Annotated[list[Count], Field(min_length=1, max_length=4096)] | None = None
    context: Annotated[list[Tokens], Field(min_length=1, max_length=4096)] | None = None
    gpu: Axis | None = None
    tp: Annotated[list[Count], Field(min_length=1, max_length=64)] | None = None
    weights: Axis | None = None
    kv: Axis | None = None

    @model_validator(mode="after")
    def _bounded(self) -> Self:
        deployments = math.prod(len(axis) for axis in self._deployment_axes())
        rows = deployments * grid_points(self._batches(), self._contexts())
        if deployments > MOST_DEPLOYMENTS or rows > MOST_ROWS:
            raise ValueError(
                f"axes: {deployments} deployments and {rows} rows; accepted: "
                f"{MOST_DEPLOYMENTS} deployments and {MOST_ROWS} rows at most"
            )
        return self

    def _deployment_axes(self) -> tuple[list[Any], list[int], list[Any], list[Any]]:
        base = self.scenario
        return (
            self.gpu or [base.gpu],
            self.tp or [base.tp],
            self.weights or [base.weights],
            self.kv or [base.kv],
        )

    def _batches(self) -> list[int]:
        return self.batch or self.scenario.batch or [1]

    def _contexts(self) -> list[int]:
        return self.context or self.scenario.context or [DEFAULT_CONTEXT]

    def deployments(self) -> list[Scenario]:
        """Return a scenario for each combination of gpu, tp and formats."""
        fixed = {"batch": self._batches(), "context": self._contexts()}
        return [
            self.scenario.model_copy(update={**fixed, **dict(zip(AXES, values, strict=True))})
            for values in product(*self._deployment_axes())
        ]


AXES = ("gpu", "tp", "weights", "kv")
COLUMNS = (*AXES, "batch", "context", *FIGURES, "fits", "error")
"""Every sweep has these columns in this order, also where no combination is possible; `weights` and
`kv` are the formats used, also where the request names none."""


class SweepResult(answer.Answer):
    """Rows of a sweep by column; figures are null where `error` says why."""

    columns: dict[str, list[Any]]
    rows: int
    editions: answer.Editions


def sweep(request: SweepRequest, executor: Executor | None = None) -> SweepResult:
    """Answer every combination of the request's axes.

    `executor` spreads the deployments (any concurrent.futures one, a cluster's included). A
    combination that is impossible keeps its rows, with the reason in `error`.
    """
    scenarios = request.deployments()
    answers = executor.map(rows_of, scenarios) if executor else map(rows_of, scenarios)
    tables = list(tracked(answers, len(scenarios)))
    merged: dict[str, list[Any]] = {name: [] for name in COLUMNS}
    for table in tables:
        size = len(table["batch"])
        for name in COLUMNS:
            merged[name] += table.get(name, [None] * size)
    return SweepResult(columns=merged, rows=len(merged["batch"]), editions=current_editions())


def rows_of(scenario: Scenario) -> dict[str, list[Any]]:
    """Return the rows of one deployment by column, context after context for each batch."""
    batches, contexts = np.array(scenario.batch, float), np.array(scenario.context, float)
    shape = (len(batches), len(contexts))
    rows = batches.size * contexts.size
    table: dict[str, list[Any]] = {
        name: [value if not isinstance(value, dict) else value.get("id")] * rows
        for name, value in ((axis, getattr(scenario, axis)) for axis in AXES)
    }
    table["batch"] = np.repeat(scenario.batch or [], len(contexts)).tolist()
    table["context"] = np.tile(scenario.context or [], len(batches)).tolist()
    try:
        deployment = deployment_of(scenario)
    except ValueError as error:
        return table | {"error": [str(error)] * rows}
    figures = grid_columns(deployment, scenario.replicas, batches, contexts)
    figures["bound"] = BOUND_NAMES[figures["bound"]]
    used = {"weights": deployment.weights, "kv": deployment.formats.kv.id}
    return {
        **table,
        **{name: [value] * rows for name, value in used.items()},
        **{name: np.broadcast_to(x, shape).ravel().tolist() for name, x in figures.items()},
        "error": [None] * rows,
    }
