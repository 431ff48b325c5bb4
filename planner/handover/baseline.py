"""A deployment against the one it replaces: what is worse, and which change makes it so."""

from __future__ import annotations

from planner.answer import Answer
from planner.plans.compare import ComparisonRequest, compare
from planner.scenario import Scenario

LESS_IS_BETTER = ("tpot_s", "ttft_s", "usd_per_million_tokens")
MORE_IS_BETTER = ("tokens_per_s_per_gpu",)


class Regression(Answer):
    """A figure that is worse than the baseline's."""

    figure: str
    baseline: float
    value: float
    worse: float
    """Share by which it is worse [-]."""
    because: str
    """Where the difference comes from."""


def regressions(reference: Scenario, scenario: Scenario, threshold: float) -> list[Regression]:
    """Return the figures of a scenario that are worse than the reference's by more than a share.

    The reference is put under the same load.
    """
    load = ("batch", "context", "concurrency", "isl", "osl", "prefix_hit")
    same = {name: getattr(scenario, name) for name in load}
    before = reference.model_copy(update={**same, "name": "baseline"})
    after = scenario.model_copy(update={"name": "file"})
    comparison = compare(ComparisonRequest(scenarios=[before, after]))
    because = comparison.attributions[0].verdict if comparison.attributions else ""
    rows = []
    for row in comparison.figures:
        old, new = row.values[0], row.values[1]
        if old is None or new is None or old <= 0 or new <= 0:
            continue
        if row.figure in LESS_IS_BETTER:
            worse = new / old - 1
        elif row.figure in MORE_IS_BETTER:
            worse = old / new - 1
        else:
            continue
        if worse > threshold:
            rows.append(
                Regression(figure=row.figure, baseline=old, value=new, worse=worse, because=because)
            )
    return rows
