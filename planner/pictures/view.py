"""What the pictures of one scenario show: its plan, and the same deployment over many batches."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from planner.answer import Plan
from planner.deployment import Deployment, deployment_of
from planner.plans.planning import plan_deployment
from planner.plans.sweep import rows_of
from planner.scenario import Scenario
from planner.step.ridges import ridges

LARGEST = 2**17
"""Largest batch drawn [-]."""
SMALLEST_SPAN = 512
"""The batch axis reaches at least this far [-]."""
CONTEXTS = (1024, 8192, 32_768, 131_072)
"""Contexts drawn beside the scenario's own, up to the model's longest [token]."""

Row = dict[str, Any]


@dataclass(frozen=True, slots=True, eq=False)
class View:
    """A scenario answered, and the columns its pictures are drawn from."""

    plan: Plan
    deployment: Deployment
    curve: list[Row]
    """Rows of a sweep over the batch at the scenario's (largest) context."""
    contexts: list[Row]
    """Rows of a sweep over the batch at several contexts."""
    limits: list[Row]
    """By context: context, saturation_intensity, crossover_batch, ridge_point."""
    roofs: list[Row]
    """Ridge points of the accelerator by format, as specified and as measured."""

    @property
    def context(self) -> int:
        """The context the limits of the plan hold at [token]."""
        return max(self.plan.scenario.context or [0])

    @property
    def batch(self) -> int:
        """The last batch of the plan, of which its kernels are [-]."""
        return self.plan.points[-1].batch


def look(scenario: Scenario, plan: Plan | None = None, *, advice: bool = False) -> View:
    """Return what the pictures of a scenario show.

    `plan` is its answer where that is known already. Raises ValueError like `plan`.
    """
    deployment = deployment_of(scenario)
    answer = plan or plan_deployment(scenario, deployment, advice=advice)
    context = max(answer.scenario.context or [0])
    most = deployment.spec.max_context or CONTEXTS[-1]
    contexts = sorted({context, *(length for length in CONTEXTS if length <= most)})
    batches = batch_axis(answer)
    limits = []
    for length in contexts:
        of_context = deployment.limits(length)
        limits.append(
            {
                "context": length,
                "ridge_point": of_context.ridge_point,
                "saturation_intensity": of_context.saturation_intensity,
                "crossover_batch": of_context.crossover_batch,
            }
        )
    rows = _rows(scenario, batches, contexts)
    return View(
        plan=answer,
        deployment=deployment,
        curve=[row for row in rows if row["context"] == context],
        contexts=rows,
        limits=limits,
        roofs=ridges([scenario.gpu]),
    )


def batch_axis(plan: Plan) -> list[int]:
    """Return the batches drawn: four to a doubling, well past what memory holds and the knee."""
    landmarks = (
        SMALLEST_SPAN,
        2 * plan.memory.max_batch,
        4 * plan.limits.knee_batch,
        2 * (plan.limits.crossover_batch or 0),
        *(point.batch for point in plan.points),
    )
    last = min(LARGEST, max(landmarks))
    steps = np.arange(0, 4 * np.log2(last) + 1)
    grid = {round(2.0 ** (step / 4)) for step in steps} | {point.batch for point in plan.points}
    if 0 < plan.memory.max_batch <= last:
        grid.add(plan.memory.max_batch)
    return sorted(batch for batch in grid if 1 <= batch <= last)


def _rows(scenario: Scenario, batches: list[int], contexts: list[int]) -> list[Row]:
    table = rows_of(scenario.model_copy(update={"batch": batches, "context": contexts}))
    names = list(table)
    return [dict(zip(names, row, strict=True)) for row in zip(*table.values(), strict=True)]
