"""`compare`: scenarios side by side, winners, the Pareto set, and attributions."""

from __future__ import annotations

from collections.abc import Sequence

from planner.answer import NoteAnswer
from planner.plans.compare.answers import (
    Attribution,
    Column,
    Comparison,
    ComparisonRequest,
    Dominated,
    FigureRow,
    Pareto,
)
from planner.plans.compare.attribution import Path, attribution, path
from planner.plans.compare.exact import Grid
from planner.plans.compare.figures import FIGURES, Answered, ComparedFigure, answered
from planner.plans.editions import current_editions
from planner.scenario import Scenario

CRITERIA = ("tpot_s", "tokens_per_s_per_gpu", "usd_per_million_tokens")
"""What the Pareto set is over."""


def compare(request: ComparisonRequest) -> Comparison:
    """Compare scenarios against a baseline.

    Figures are rounded to one part in 7e13, so that differences and attributed steps add up
    exactly. Raises ValueError as `plan` does, with the label of the scenario it is about.
    """
    labels = _labels(request)
    serving = all(scenario.isl is not None for scenario in request.scenarios)
    notes = _notes(request.scenarios, serving)

    def answer_one(scenario: Scenario) -> Answered:
        return answered(scenario, request.usd_per_gpu_hour, serving)

    answers = [answer_one(scenario) for scenario in request.scenarios]
    base = answers[request.baseline]
    ways = {
        label: path(base, other, answer_one)
        for label, other in zip(labels, answers, strict=True)
        if other is not base
    }
    grids = {figure.name: _grid(figure, answers, ways) for figure in FIGURES}
    rows = [_row(figure, answers, labels, request.baseline, grids) for figure in FIGURES]
    pareto = _pareto(rows, answers, labels)
    if "usd_per_million_tokens" not in pareto.criteria:
        notes.append(
            NoteAnswer(code="no_price", text="an accelerator has no price: cost is left out")
        )
    attributions: list[Attribution] = [
        attribution(way, (labels[request.baseline], label), grids) for label, way in ways.items()
    ]
    return Comparison(
        baseline=labels[request.baseline],
        columns=[_column(label, one) for label, one in zip(labels, answers, strict=True)],
        figures=rows,
        winners={row.figure: row.best for row in rows if row.better is not None and row.best},
        pareto=pareto,
        attributions=attributions,
        notes=notes,
        editions=current_editions(),
    )


def _labels(request: ComparisonRequest) -> list[str]:
    """Return a name for each scenario, no two the same."""
    wanted = request.labels or [
        scenario.name or chr(ord("A") + index) for index, scenario in enumerate(request.scenarios)
    ]
    labels: list[str] = []
    for name in wanted:
        count, label = 1, name
        while label in labels:
            count += 1
            label = f"{name} ({count})"
        labels.append(label)
    return labels


def _notes(scenarios: Sequence[Scenario], serving: bool) -> list[NoteAnswer]:
    if serving or all(scenario.isl is None for scenario in scenarios):
        return []
    text = "not every scenario asks about serving: decode points are compared"
    return [NoteAnswer(code="decode_only", text=text)]


def _column(label: str, of: Answered) -> Column:
    return Column(
        label=label,
        scenario=of.scenario,
        batch=of.point.batch,
        context=of.point.context,
        gpus=of.gpus,
        fits=of.plan.memory.fits,
        usd_per_gpu_hour=of.usd_per_gpu_hour,
        price_source=of.price_source,
        notes=of.plan.notes,
    )


def _grid(figure: ComparedFigure, answers: Sequence[Answered], ways: dict[str, Path]) -> Grid:
    """Return one grid for a figure of all scenarios and of every step between them."""
    seen = [*answers, *(one for way in ways.values() for one in way.answers)]
    return Grid.over(value for one in seen if (value := figure.read(one)) is not None)


def _row(
    figure: ComparedFigure,
    answers: Sequence[Answered],
    labels: Sequence[str],
    baseline: int,
    grids: dict[str, Grid],
) -> FigureRow:
    grid = grids[figure.name]
    raw = [figure.read(one) for one in answers]
    values = [None if value is None else grid.snap(value) for value in raw]
    base = values[baseline]
    return FigureRow(
        figure=figure.name,
        meaning=figure.meaning,
        unit=figure.unit,
        better=figure.better,
        values=values,
        differences=[None if v is None or base is None else v - base for v in values],
        ratios=[None if v is None or not base else v / base for v in values],
        best=_best(figure, values, [one.plan.memory.fits for one in answers], labels),
    )


def _best(
    figure: ComparedFigure,
    values: Sequence[float | None],
    fits: Sequence[bool],
    labels: Sequence[str],
) -> list[str]:
    known = [v for v, fit in zip(values, fits, strict=True) if v is not None and fit]
    if figure.better is None or len(known) < 2 or len(set(known)) == 1:
        return []
    best = min(known) if figure.better == "lower" else max(known)
    together = zip(labels, values, fits, strict=True)
    return [label for label, value, fit in together if fit and value == best]


def _pareto(
    rows: Sequence[FigureRow], answers: Sequence[Answered], labels: Sequence[str]
) -> Pareto:
    """Return the Pareto set among the scenarios that fit, over criteria that all of them have."""
    used = [row for row in rows if row.figure in CRITERIA and None not in row.values]
    scores = {
        label: tuple(
            (v or 0.0) * (1 if row.better == "lower" else -1)
            for row in used
            for v in [row.values[index]]
        )
        for index, (label, one) in enumerate(zip(labels, answers, strict=True))
        if one.plan.memory.fits
    }
    dominated = []
    for label, score in scores.items():
        better = [
            other
            for other, theirs in scores.items()
            if theirs != score and all(a <= b for a, b in zip(theirs, score, strict=True))
        ]
        if better:
            dominated.append(Dominated(label=label, by=better[0]))
    beaten = {one.label for one in dominated}
    return Pareto(
        criteria=[row.figure for row in used],
        members=[label for label in scores if label not in beaten],
        dominated=dominated,
    )
