"""What `planner sweep --output` shows: an estimate, progress, and what was made."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterator
from concurrent.futures import BrokenExecutor
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from planner.units import count, scaled, seconds

if TYPE_CHECKING:
    from planner.plans.table.files import Progress, TableSummary
    from planner.plans.table.request import TableRequest

STARTS = 3
"""Pools of processes that are started before a table is given up [-]."""


def print_estimate(request: TableRequest, as_json: bool) -> None:
    """Print what a table takes if every member is possible."""
    from planner.plans.table.estimate import estimate

    taken = estimate(request)
    if as_json:
        click.echo(json.dumps(asdict(taken), indent=2))
        return
    click.echo(_estimate_line(request))


def _estimate_line(request: TableRequest, workers: int = 1) -> str:
    from planner.plans.table.estimate import estimate

    taken = estimate(request)
    return (
        f"at most {count(taken.rows)} rows of {count(taken.members)} members, "
        f"{scaled(taken.bytes, 'B')}, about {seconds(taken.core_s / workers)} "
        f"on {workers} core{'s' if workers > 1 else ''}"
    )


def make_table(
    request: TableRequest, output: Path, workers: int, cluster: str | None, as_json: bool
) -> None:
    """Make what is missing of a table in a directory; progress goes to the standard error."""
    from planner.plans import executors
    from planner.plans.table.files import write_table

    cores = max(1, workers)
    try:
        output.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise click.UsageError(
            f"output: {output}: {error.strerror}; accepted: a directory that can be written"
        ) from None
    if not cluster and sys.stderr.isatty():
        click.echo(_estimate_line(request, cores), err=True)

    with _shown() as progress:
        for start in range(1, STARTS + 1):
            try:
                with executors.chosen(cores, cluster) as (executor, in_flight):
                    summary = write_table(
                        request, output, executor, progress, in_flight, shares_disk=cluster is None
                    )
                break
            except BrokenExecutor:  # a process died: its parts are missing, the others are not
                if start == STARTS:
                    raise
    _print_summary(summary, output, as_json)


def _print_summary(summary: TableSummary, output: Path, as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps({"output": str(output), **asdict(summary)}, indent=2))
        return
    before = summary.finished - summary.made
    click.echo(
        f"{output}: {summary.rows:,} rows ({summary.errors:,} of them members that are "
        f"impossible), {scaled(summary.bytes, 'B')} in {summary.finished} parts, {summary.made} "
        f"made in {seconds(summary.seconds)}" + (f", {before} there before" if before else "")
    )


@contextmanager
def _shown() -> Iterator[Progress | None]:
    """Yield what shows progress; nothing where the standard error is no terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    columns = (
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("parts, {task.fields[rows]} rows, left"),
        TimeRemainingColumn(),
    )
    with Bar(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task("", total=math.inf, rows="0")

        def show(summary: TableSummary) -> None:
            rows = count(summary.rows)
            bar.update(task, total=summary.parts, completed=summary.finished, rows=rows)

        yield show
