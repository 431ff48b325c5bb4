"""`planner sweep`: one scenario over axes, as a table, CSV or JSON columns."""

from __future__ import annotations

import csv
import sys
from typing import Any

import click

from planner.commands.options import (
    NUMBERS,
    json_option,
    model_argument,
)
from planner.commands.output import print_json


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
@json_option
def command(as_json: bool, model: str, gpu: list[str], **axes: Any) -> None:
    """Answer every combination of the axes for MODEL; CSV unless --json."""
    from planner.scenario import Scenario
    from planner.sweep import SweepRequest, sweep

    result = sweep(SweepRequest(scenario=Scenario(model=model, gpu=gpu[0]), gpu=gpu, **axes))
    if as_json:
        print_json(result)
        return
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(result.columns)
    writer.writerows(zip(*result.columns.values(), strict=True))
