"""`planner check`: a gate before a deployment. Exit 0 pass or near, 1 fail, 2 cannot be read."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from planner.commands.options import LENGTHS, SPREAD

COLOURS = {"pass": "green", "near": "yellow", "fail": "red", "error": "red", "warning": "yellow"}


@click.command()
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="FILE…")
@click.option("--model", help="Model, where the catalogue does not have the file's.")
@click.option("--gpu", metavar="GPU", help="Accelerator, where the file names none.")
@click.option("--engine-version", metavar="VERSION", help="Version, where no image names it.")
@click.option("--concurrency", type=int, help="Closed-loop clients of one replica.")
@click.option("--requests-per-s", type=float, help="Requests a second over all replicas.")
@click.option("--isl", type=LENGTHS, help=f"Input tokens of a request: {SPREAD}.")
@click.option("--osl", type=LENGTHS, help="Output tokens of a request, likewise.")
@click.option("--prefix-hit", type=float, help="Share of input tokens seen before.")
@click.option("--tpot-ms", type=float, help="Limit on TPOT [ms].")
@click.option("--ttft-ms", type=float, help="Limit on TTFT [ms].")
@click.option("--percentile", type=float, help="Percentile of the prediction's uncertainty.")
@click.option(
    "--baseline",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Fail where figures are worse than this deployment's.",
)
@click.option(
    "--regression", type=float, default=0.05, help="Share worse that fails; default 0.05."
)
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "json", "sarif", "junit", "github", "markdown"]),
    default="text",
    help="Form of the report.",
)
@click.option("--json", "as_json", is_flag=True, help="The same as --format json.")
def command(
    files: tuple[Path, ...],
    baseline: Path | None,
    regression: float,
    form: str,
    as_json: bool,
    **question: Any,
) -> None:
    """Say of each FILE whether it starts and meets the limits, and what it wastes.

    A FILE is a command line or an object: see docs/handover.md. Exit 0 where all pass or are near,
    1 where one fails, 2 where one cannot be read.
    """
    from planner.commands.files import read_texts
    from planner.handover.checking import CheckQuestion, check
    from planner.handover.outputs import FORMATS, lines

    report = check(
        read_texts(files),
        CheckQuestion(**question),
        baseline=read_texts([baseline]) if baseline else None,
        regression=regression,
    )
    if as_json:
        form = "json"
    if form == "text" and sys.stdout.isatty():
        for line, kind in lines(report):
            click.secho(line, fg=COLOURS.get(kind))
    else:
        click.echo(FORMATS[form](report), nl=False)
    if report.exit_code:
        sys.exit(report.exit_code)
