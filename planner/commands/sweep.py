"""`planner sweep`: one scenario over axes, as a table, CSV or JSON columns."""

from __future__ import annotations

import csv
import sys
from typing import Any

import click

from planner.commands.options import (
    NUMBERS,
    attention_dp_option,
    engine_option,
    ep_option,
    json_option,
    model_argument,
    pp_option,
)
from planner.commands.output import print_json
from planner.commands.progress import progress_bar


def _words(_: click.Context, __: click.Parameter, value: str | None) -> list[str] | None:
    return None if value is None else [part.strip() for part in value.split(",")]


@click.command()
@model_argument
@click.option("--gpu", required=True, callback=_words, metavar="GPU[,GPU…]", help="Accelerators.")
@click.option("--tp", type=NUMBERS, default="1", help="Tensor-parallel degrees.")
@click.option("--batch", type=NUMBERS, default="1,2,4,8,16,32,64,128,256", help="Batches.")
@click.option("--context", type=NUMBERS, default="8192", help="Contexts.")
@click.option("--weights", callback=_words, metavar="FORMAT[,…]", help="Weight formats.")
@click.option("--kv", callback=_words, metavar="FORMAT[,…]", help="KV cache formats.")
@pp_option
@ep_option
@attention_dp_option
@engine_option
@json_option
def command(
    as_json: bool,
    model: str,
    gpu: list[str],
    pp: int,
    ep: int,
    attention_dp: int,
    engine: str | None,
    **axes: Any,
) -> None:
    """Answer every combination of the axes for MODEL; CSV unless --json."""
    from planner.plans.sweep import SweepRequest, sweep
    from planner.scenario import Scenario

    base = Scenario(model=model, gpu=gpu[0], pp=pp, ep=ep, attention_dp=attention_dp, engine=engine)
    request = SweepRequest(scenario=base, gpu=gpu, **axes)
    with progress_bar("sweep"):
        result = sweep(request)
    if as_json:
        print_json(result)
        return
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(result.columns)
    writer.writerows(zip(*result.columns.values(), strict=True))
