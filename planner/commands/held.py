"""What `planner validate` says of left-out rows beside their errors: choices, and schedules."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from planner.commands.output import print_table

if TYPE_CHECKING:
    from planner.accuracy.decisions import Summary
    from planner.accuracy.schedules import ScheduleErrors

WAYS = ("config", "model", "gpu")
"""What is left out of the fits that choices are made by."""

HEAD_OF_CHOICES = """\
Groups are runs of one model on one accelerator under one load that differ as said; the one with the
most predicted tokens/s per GPU is chosen. Target: within 3% of the best in 90% of groups. `GPUs`
is the share of choices, and of all options, whose 80% interval on the number of GPUs holds the one
that measured throughput implies. Target: 75% to 87%.
"""

HEAD_OF_SCHEDULES = """\
Runs that do not queue, each by a fit that has not seen its model; mean times, |predicted/measured
− 1|. No committed row states a percentile of requests, so that P99 cannot be compared.
"""


def print_choices(as_json: bool) -> None:
    """Print how well options of committed rows are chosen, each way of leaving out."""
    from planner.accuracy.choice import KINDS
    from planner.accuracy.decisions import every_run_held, summary
    from planner.accuracy.holdout import Holdout
    from planner.fitting.refit import refit_committed

    holdout = Holdout(refit_committed())
    answers: dict[str, list[Summary]] = {}
    every_run: dict[str, float] = {}
    for way in WAYS:
        rows = list(holdout.held(way, serving_only=True))
        answers[way] = [one for kind in KINDS if (one := summary(rows, kind))]
        every_run[way] = every_run_held(rows)
    if as_json:
        click.echo(json.dumps(choices_as_json(answers, every_run), indent=2))
        return
    click.echo(HEAD_OF_CHOICES)
    print_table(
        (
            "left out",
            "options differ in",
            "groups",
            "within 3%",
            "median",
            "worst tenth",
            "GPUs",
            "GPUs, all",
        ),
        (choice_cells(way, one) for way, rows in answers.items() for one in rows),
        "left-out rows",
    )
    held = ", ".join(f"one {way} {share:.0%}" for way, share in every_run.items())
    click.echo(f"GPUs of every run that does not queue, in a group or not: {held}")


def choices_as_json(
    answers: dict[str, list[Summary]], every_run: dict[str, float]
) -> dict[str, Any]:
    """Return the same with shares as numbers, by what was left out."""
    return {
        way: {"groups": [asdict(one) for one in rows], "every_run_held": every_run[way]}
        for way, rows in answers.items()
    }


def choice_cells(way: str, one: Summary) -> tuple[str, ...]:
    """Return a line of the table of choices."""
    return (
        f"one {way}",
        one.differing,
        str(one.groups),
        f"{one.close:.0%}",
        f"{one.median:.1%}",
        f"{one.worst_tenth:.1%}",
        f"{one.gpus_held:.0%}",
        f"{one.gpus_held_all:.0%}",
    )


def print_schedules(as_json: bool) -> None:
    """Print the errors of closed form and simulation over committed rows, one model left out."""
    from planner.accuracy.holdout import Holdout
    from planner.accuracy.schedules import compared, held_schedules
    from planner.fitting.refit import refit_committed

    rows = compared(list(held_schedules(Holdout(refit_committed()))))
    if as_json:
        click.echo(json.dumps([asdict(one) for one in rows], indent=2))
        return
    click.echo(HEAD_OF_SCHEDULES)
    print_table(
        ("runs", "n", "time", "closed form", "mean", "simulated", "mean"),
        (schedule_cells(one) for one in rows),
        "left-out rows",
    )


def schedule_cells(one: ScheduleErrors) -> tuple[str, ...]:
    """Return a line of the table of schedules."""
    shares = (
        one.closed_form_median,
        one.closed_form_mean,
        one.simulated_median,
        one.simulated_mean,
    )
    return (one.of, str(one.runs), one.quantity.upper(), *(f"{share:.1%}" for share in shares))
