"""`planner sweep`: axes as CSV or JSON columns, or as a table of any size in a directory."""

from __future__ import annotations

import csv
import sys
from pathlib import Path
from typing import Any

import click

from planner.commands.completion import models
from planner.commands.options import DRAFTS, NUMBERS, json_option, together, worker_options
from planner.commands.output import print_json
from planner.commands.progress import busy
from planner.errors import InvalidInput

DEGREES = ("pp", "ep", "attention_dp")
LOADS = ("concurrency", "isl", "osl")


class InvalidSweep(InvalidInput):
    """Options that do not go together; names the first."""


def _words(_: click.Context, __: click.Parameter, value: str | None) -> list[str] | None:
    return None if value is None else [part.strip() for part in value.split(",")]


def _degree(name: str, what: str) -> Any:
    return click.option(name, type=NUMBERS, default="1", help=f"{what} degrees.")


axes = together(
    click.argument("model", metavar="MODEL…", nargs=-1, shell_complete=models),
    click.option("--gpu", callback=_words, metavar="GPU[,GPU…]", help="Accelerators."),
    click.option("--all-models", is_flag=True, help="Every model of the catalogue."),
    click.option("--all-gpus", is_flag=True, help="Every accelerator that can be had."),
    _degree("--tp", "Tensor-parallel"),
    _degree("--pp", "Pipeline-parallel"),
    _degree("--ep", "Expert-parallel"),
    _degree("--attention-dp", "Attention data-parallel"),
    click.option("--batch", type=NUMBERS, default="1,2,4,8,16,32,64,128,256", help="Batches."),
    click.option("--context", type=NUMBERS, default="8192", help="Contexts."),
    click.option("--weights", callback=_words, metavar="FORMAT[,…]", help="Weight formats."),
    click.option("--kv", callback=_words, metavar="FORMAT[,…]", help="KV cache formats."),
    click.option("--engine", callback=_words, metavar="ENGINE[,…]", help="Serving engines."),
    click.option("--speculation", type=DRAFTS, help="Drafts a step: 1 or 1:1.8."),
    click.option("--concurrency", type=NUMBERS, help="Clients: rows of requests (--output)."),
    click.option("--isl", type=NUMBERS, help="Input lengths, with --concurrency."),
    click.option("--osl", type=NUMBERS, help="Output lengths, with --concurrency."),
    click.option("--limits", is_flag=True, help="Crossover and knee as well (--output)."),
)
places = together(
    click.option(
        "--output",
        type=click.Path(file_okay=False, path_type=Path),
        help="Directory of a table in Parquet, without a limit on rows; goes on where it ended.",
    ),
    worker_options,
    click.option("--estimate", is_flag=True, help="Say what the table takes, and make none."),
)


@click.command()
@axes
@places
@json_option
def command(
    as_json: bool,
    output: Path | None,
    workers: int,
    cluster: str | None,
    estimate: bool,
    model: tuple[str, ...],
    gpu: list[str] | None,
    all_models: bool,
    all_gpus: bool,
    **axes: Any,
) -> None:
    """Answer every combination of the axes for MODEL; CSV unless --json or --output.

    With --output the rows go to a directory of Parquet, partitioned by model: any number of them,
    of any number of models. A combination that is impossible is a row with its error.
    """
    gpus, names = _accelerators(gpu, all_gpus), _models(model, all_models)
    if output is None and not estimate:
        _print_rows(_one("model", names), gpus, as_json, **axes)
        return
    from planner.commands.tables import make_table, print_estimate
    from planner.plans.table.request import TableRequest

    given = {name: value for name, value in axes.items() if value is not None}
    given["speculation"] = [axes["speculation"]]
    request = TableRequest(model=names, gpu=gpus, **given)
    if estimate or output is None:
        print_estimate(request, as_json)
    else:
        make_table(request, output, workers, cluster, as_json)


def _models(given: tuple[str, ...], every: bool) -> list[Any]:
    if bool(given) == every:
        raise InvalidSweep("model: name models or say --all-models; accepted: one of the two")
    if not every:
        return list(given)
    from planner.models import list_models

    return [spec.id for spec in list_models()]


def _accelerators(given: list[str] | None, every: bool) -> list[Any]:
    if bool(given) == every:
        raise InvalidSweep("gpu: name accelerators or say --all-gpus; accepted: one of the two")
    if given:
        return list(given)
    from planner.hw import list_accelerators

    return [each.id for each in list_accelerators() if each.status == "available"]


def _one(name: str, values: list[Any]) -> Any:
    if len(values) > 1:
        raise InvalidSweep(f"{name}: {len(values)} values; accepted: one, or more with --output")
    return values[0]


def _print_rows(
    model: str,
    gpu: list[str],
    as_json: bool,
    limits: bool,
    speculation: Any,
    engine: list[str] | None,
    **axes: Any,
) -> None:
    from planner.plans.sweep import SweepRequest, sweep
    from planner.scenario import Scenario

    for name in LOADS:
        if axes.pop(name) is not None:
            raise InvalidSweep(f"{name}: is an axis of tables; accepted: with --output")
    if limits:
        raise InvalidSweep("limits: are columns of tables; accepted: with --output")
    base = Scenario(
        model=model,
        gpu=gpu[0],
        engine=_one("engine", engine) if engine else None,
        speculation=speculation,
        **{name: _one(name, axes.pop(name)) for name in DEGREES},
    )
    request = SweepRequest(scenario=base, gpu=gpu, **axes)
    with busy("Answering combinations"):
        result = sweep(request)
    if as_json:
        print_json(result)
        return
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(result.columns)
    writer.writerows(zip(*result.columns.values(), strict=True))
