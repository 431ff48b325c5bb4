"""`planner validate`: predict rows of measured runs and say how far off the predictions are."""

from __future__ import annotations

import csv
import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from planner.commands.options import json_option
from planner.commands.output import print_table
from planner.commands.progress import busy

if TYPE_CHECKING:
    from planner.accuracy.holdout import Holdout
    from planner.accuracy.report import Line
    from planner.runs.predict import Prediction
    from planner.runs.rows import Kind

COLUMNS: dict[Kind, tuple[str, ...]] = {
    "serving": ("ttft_ms", "tpot_ms", "tpot_p10_ms", "tpot_p90_ms", "ttft_p10_ms", "ttft_p90_ms"),
    "decode": ("value", "value_p10", "value_p90"),
    "memory": ("weights_gib", "kv_gib", "kv_tokens"),
}
"""Columns of the predictions file after `row`, before `note`."""


@click.command()
@click.argument(
    "rows_csv", required=False, type=click.Path(exists=True, dir_okay=False, path_type=Path)
)
@click.option(
    "--predictions",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write a prediction for every row to this CSV file.",
)
@click.option(
    "--report",
    "report_md",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Without ROWS_CSV: write the report there, its charts beside it.",
)
@click.option(
    "--choices",
    is_flag=True,
    help="Without ROWS_CSV: how well options are chosen, and how many GPUs are said.",
)
@click.option(
    "--schedules",
    is_flag=True,
    help="Without ROWS_CSV: closed form and simulated schedule beside what was measured.",
)
@json_option
def command(
    rows_csv: Path | None,
    predictions: Path | None,
    report_md: Path | None,
    choices: bool,
    schedules: bool,
    as_json: bool,
) -> None:
    """Predict the measured runs of ROWS_CSV and print errors by group.

    The file holds serving, decode or memory rows, told apart by their columns. A cell that is not
    the number it should be refuses the file: its row, counted from 1, and its column are named.
    Predictions are made without reading any measured column. Without a file, the rows that the
    calibration is fitted to are predicted, each by a fit that leaves it out: this takes some
    minutes. With --json errors are then given by what was left out: nothing, config, model, gpu,
    engine or family.
    """
    if rows_csv is None and predictions is not None:
        raise click.UsageError("predictions: of no rows; accepted: --predictions with ROWS_CSV")
    about = {"report": report_md is not None, "choices": choices, "schedules": schedules}
    chosen = [name for name, is_given in about.items() if is_given]
    if chosen and rows_csv is not None:
        raise click.UsageError(f"{chosen[0]}: not of ROWS_CSV; accepted: --{chosen[0]} without it")
    if len(chosen) > 1:
        raise click.UsageError(f"{', '.join(chosen)}: given together; accepted: one of them")
    if choices or schedules:
        from planner.commands.held import print_choices, print_schedules

        (print_choices if choices else print_schedules)(as_json)
        return
    if rows_csv is None:
        _left_out(report_md, as_json)
        return
    from planner.accuracy import report
    from planner.runs.predict import predict
    from planner.runs.rows import read_rows

    rows = read_rows(rows_csv)
    if not rows:
        raise click.ClickException(f"rows: {rows_csv} holds no rows")
    with busy("Predicting"):
        predicted = predict(rows)
    lines = report.report(rows, predicted)
    if predictions is not None:
        _write(predictions, rows[0].kind, predicted)
    content = report.as_json(rows, predicted, lines)
    if as_json:
        click.echo(json.dumps(content, indent=2))
        return
    click.echo(f"{content['rows']} {content['kind']} rows, {content['answered']} answered")
    for refused in content["refused"]:
        click.echo(f"refused {refused['row']}: {refused['note']}")
    _print(lines)


def _left_out(report_md: Path | None, as_json: bool) -> None:
    from planner.accuracy.holdout import Holdout
    from planner.fitting.refit import refit_committed

    with busy("Fitting"):
        holdout = Holdout(refit_committed())
    if as_json:
        with busy("Predicting rows left out"):
            summary = _summary(holdout)
        click.echo(json.dumps(summary, indent=2))
    if report_md is not None or not as_json:
        _report(holdout, report_md, quiet=as_json)


def _summary(holdout: Holdout) -> dict[str, Any]:
    """Errors of the committed rows by what was left out of the fit together with a row."""
    from planner.accuracy import report
    from planner.accuracy.accuracy import WAYS

    errors: dict[str, Any] = {}
    for way in WAYS:
        held_out = list(holdout.fitted() if way == "nothing" else holdout.held(way))
        errors[way] = []
        for kind in dict.fromkeys(one.row.kind for one in held_out):
            rows = [one.row for one in held_out if one.row.kind == kind]
            predictions = [one.prediction for one in held_out if one.row.kind == kind]
            lines = report.report(rows, predictions)
            errors[way].append(report.as_json(rows, predictions, lines))
    return {"edition": holdout.refit.edition, "left_out": errors}


def _report(holdout: Holdout, report_md: Path | None, quiet: bool) -> None:
    from planner.accuracy.accuracy import report

    with busy("Predicting rows left out"):
        written = report(holdout)
    if report_md is None:
        click.echo(written.text)
        return
    folder = report_md.parent / "accuracy"
    folder.mkdir(parents=True, exist_ok=True)
    report_md.write_text(written.text, encoding="utf-8")
    for name, text in written.charts.items():
        (folder / name).write_text(text, encoding="utf-8")
    click.echo(f"{report_md}, {len(written.charts)} charts in {folder}", err=quiet)


def _write(path: Path, kind: Kind, predicted: Sequence[Prediction]) -> None:
    from planner.calibration.intervals import NEARNESS

    names, measured = COLUMNS[kind], NEARNESS[0]
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(("row", *names, "note"))
        for one in predicted:
            values = (one.values.get(name) for name in names)
            cells = ("" if value is None else f"{value:.6g}" for value in values)
            near = [one.nearness] if one.nearness and one.nearness != measured else []
            writer.writerow((one.row, *cells, "; ".join([*near, *one.notes])))


def _print(lines: Sequence[Line]) -> None:
    for quantity in dict.fromkeys(line.quantity for line in lines):
        rows = [
            (
                f"{line.by} {line.group}".strip(),
                f"{line.errors.rows}",
                f"{line.errors.median:.1%}",
                f"{line.errors.mean:.1%}",
                f"{line.errors.p90:.1%}",
                f"{line.errors.bias:+.1%}",
                "" if line.errors.covered is None else f"{line.errors.covered:.0%}",
            )
            for line in lines
            if line.quantity == quantity
        ]
        print_table(("rows", "n", "median", "mean", "P90", "bias", "in p10–p90"), rows, quantity)
