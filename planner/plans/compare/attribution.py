"""Where a difference comes from: one field changed at a time, and kernel by kernel."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

from planner.plans.compare.answers import Attribution, Contribution, FieldChange, KernelDifference
from planner.plans.compare.exact import Grid
from planner.plans.compare.figures import FIGURES, Answered
from planner.scenario import Scenario
from planner.units import seconds

APART = ("name", "tags", "notes", "tpot_ms", "ttft_ms", "percentile")
"""Fields that change no figure."""
FIELDS = tuple(name for name in Scenario.model_fields if name not in APART)
REST = "rest of the step"
"""What no kernel of a decode point accounts for."""
PROMPTS = "prompts of other requests"
"""What no kernel of a decode step accounts for in a serving state."""

Answerer = Callable[[Scenario], Answered]


@dataclass(frozen=True)
class Path:
    """The way from the baseline to another scenario; an answer before and after every step."""

    steps: list[FieldChange]
    answers: list[Answered]


def path(baseline: Answered, other: Answered, answer_one: Answerer) -> Path:
    """FieldChange one field at a time, in the order of the scenario's fields.

    Where a change alone is impossible it is made together with the next one. The order counts: a
    step's contribution is what it does after the steps before it.
    """
    steps: list[FieldChange] = []
    answers = [baseline]
    changed = [f for f in FIELDS if getattr(baseline.scenario, f) != getattr(other.scenario, f)]
    together: list[str] = []
    current = baseline.scenario
    for index, field in enumerate(changed):
        together.append(field)
        update = {name: getattr(other.scenario, name) for name in together}
        last = index == len(changed) - 1
        answered = other if last else _possible(current, update, answer_one)
        if answered is None:
            continue
        before = {name: getattr(current, name) for name in together}
        steps.append(FieldChange(fields=together, before=before, after=update))
        answers.append(answered)
        current, together = answered.scenario, []
    return Path(steps, answers)


def _possible(
    current: Scenario, update: dict[str, object], answer_one: Answerer
) -> Answered | None:
    try:
        return answer_one(Scenario.model_validate({**current.model_dump(), **update}))
    except ValueError:
        return None


def attribution(way: Path, labels: tuple[str, str], grids: dict[str, Grid]) -> Attribution:
    """Return what each step contributes to each figure, on the grids the table is on."""
    contributions = []
    for figure in FIGURES:
        values = [figure.read(answered) for answered in way.answers]
        known = [value for value in values if value is not None]
        if not figure.attributed or len(known) < len(values) or len(values) < 2:
            continue
        snapped = [grids[figure.name].snap(value) for value in known]
        contributions.append(
            Contribution(
                figure=figure.name,
                unit=figure.unit,
                baseline=snapped[0],
                other=snapped[-1],
                difference=snapped[-1] - snapped[0],
                steps=[after - before for before, after in pairwise(snapped)],
            )
        )
    return Attribution(
        baseline=labels[0],
        other=labels[1],
        verdict=_verdict(labels, way.steps, contributions),
        steps=way.steps,
        contributions=contributions,
        kernels=kernels(way.answers[0], way.answers[-1], grids["tpot_s"]),
    )


def kernels(baseline: Answered, other: Answered, grid: Grid) -> list[KernelDifference]:
    """Return the time of every kernel in both, and what no kernel accounts for."""
    before, after = _times(baseline, grid), _times(other, grid)
    rows = [
        KernelDifference(
            kernel=name,
            baseline_s=before.get(name, 0.0),
            other_s=after.get(name, 0.0),
            difference_s=after.get(name, 0.0) - before.get(name, 0.0),
        )
        for name in dict.fromkeys([*before, *after])
    ]
    return sorted(rows, key=lambda row: -abs(row.difference_s))


def _times(of: Answered, grid: Grid) -> dict[str, float]:
    """Return kernel times that add up to the time per token on the grid."""
    times: dict[str, float] = {}
    for kernel in of.step.kernels:
        times[kernel.name] = times.get(kernel.name, 0.0) + grid.snap(
            kernel.time_s / of.tokens_per_step
        )
    total = FIGURES[0].read(of) or 0.0
    rest = grid.snap(total) - sum(times.values())
    if abs(rest) > len(times) * grid.quantum:
        times[PROMPTS if of.serving else REST] = rest
    elif times:
        # Only rounding to the grid is left: the largest kernel takes it.
        times[max(times, key=lambda name: times[name])] += rest
    return times


def _verdict(
    labels: tuple[str, str], steps: list[FieldChange], contributions: list[Contribution]
) -> str:
    """Return the difference in time per token in one sentence."""
    tpot = next((c for c in contributions if c.figure == "tpot_s"), None)
    if tpot is None:
        return f"{labels[1]} asks the same question as {labels[0]}"
    if tpot.difference == 0.0:
        return f"{labels[1]} takes as long per token as {labels[0]}"
    way = "longer" if tpot.difference > 0 else "less"
    parts = ", ".join(
        f"{'+'.join(step.fields)} {_signed(value)}"
        for step, value in zip(steps, tpot.steps, strict=True)
    )
    return (
        f"{labels[1]} takes {seconds(abs(tpot.difference))} {way} per token than {labels[0]} "
        f"({seconds(tpot.baseline)} → {seconds(tpot.other)}): {parts}"
    )


def _signed(value: float) -> str:
    return "±0" if value == 0 else f"{'+' if value > 0 else '−'}{seconds(abs(value))}"
