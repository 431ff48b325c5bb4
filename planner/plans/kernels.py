"""The kernels of a plan: where one step's time goes at the last point."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from planner import answer
from planner.deployment import Deployment, ModelPass
from planner.step.breakdown import breakdown
from planner.step.figures import COMMUNICATION
from planner.step.timing import BOUNDS

ROUNDING = 1e-9
"""Share of a step below which what is left over is rounding, not engine time [-]."""


Row = dict[str, Any]
"""The fields of an `answer.KernelAnswer`; a plan validates all its rows at once."""


def kernel_rows(deployment: Deployment, passes: Sequence[ModelPass]) -> list[Row]:
    """Return the kernels of the last point, those of one name together; shares add up to one."""
    step, points = deployment.step, passes[0].points
    figures = breakdown(step, points)
    total = sum(each.share * float(each.points.total_s[-1, -1]) for each in passes)
    columns = (
        figures.flops,
        figures.bytes,
        figures.time_s,
        figures.compute_s,
        figures.memory_s,
        figures.launch_s,
    )
    rows = zip(figures.names, figures.launches, *(c.tolist() for c in columns), strict=True)
    answers = [
        _kernel(name, count, flops, moved, seconds, _bound(seconds, *rest), total)
        for name, count, flops, moved, seconds, *rest in rows
    ]
    sent = float(points.of_batch.bounds_s[COMMUNICATION, -1, -1])
    if sent:
        count = sum(c.count for c in step.collectives)
        answers.append(_kernel("collectives", count, 0.0, 0.0, sent, "communication", total))
    rest = float(points.total_s[-1, -1]) - sent - float(figures.time_s.sum())
    if rest > ROUNDING * total:
        answers.append(_kernel("engine", 1, 0.0, 0.0, rest, "launch", total))
    answers += [_drafts(deployment, draft, total) for draft in passes[1:]]
    return answers


def _drafts(deployment: Deployment, draft: ModelPass, total: float) -> Row:
    figures = breakdown(deployment.step, draft.points)
    flops, moved = (draft.share * float(each.sum()) for each in (figures.flops, figures.bytes))
    seconds = draft.share * float(draft.points.total_s[-1, -1])
    bound = BOUNDS[draft.points.bound_codes[-1, -1]]
    return _kernel("drafts", deployment.queries - 1, flops, moved, seconds, bound, total)


def _kernel(
    name: str,
    count: float,
    flops: float,
    moved: float,
    seconds: float,
    bound: answer.Bound,
    total: float,
) -> Row:
    return {
        "name": name,
        "count": round(count),
        "flops": flops,
        "bytes": moved,
        "arithmetic_intensity": flops / moved if moved else None,
        "time_s": seconds,
        "bound": bound,
        "share": seconds / total,
    }


def _bound(total: float, compute: float, memory: float, launch: float) -> answer.Bound:
    if launch > total - launch:
        return "launch"
    return "compute" if compute > memory and not math.isclose(compute, memory) else "memory"
