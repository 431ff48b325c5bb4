"""`planner kernels`: all kernels of a layer on a machine's roofline."""

from __future__ import annotations

import click

from planner.commands.options import (
    gpu_option,
    json_option,
    kv_option,
    model_argument,
    weights_option,
)
from planner.commands.output import print_json, print_table
from planner.units import number, scaled, seconds


@click.command()
@model_argument
@gpu_option
@click.option("--batch", type=click.IntRange(1, 2**20), default=1, help="Sequences.")
@click.option("--context", type=click.IntRange(1, 2**30), default=8192, help="Tokens of each.")
@click.option("--prefill", is_flag=True, help="The kernels of a prompt instead of a decode step.")
@weights_option
@kv_option
@json_option
def command(
    as_json: bool,
    model: str,
    gpu: str,
    batch: int,
    context: int,
    prefill: bool,
    weights: str | None,
    kv: str | None,
) -> None:
    """Place every kernel of MODEL's layers on an accelerator's roofline, each on its own."""
    from planner.hw import get_accelerator
    from planner.models import get_model
    from planner.step.placement import place

    spec = get_model(model)
    result = place(
        spec,
        get_accelerator(gpu),
        spec.formats(weights, kv),
        batch,
        context,
        "prefill" if prefill else "decode",
    )
    if as_json:
        print_json(result)
        return
    print_table(
        (
            "kernel",
            "layers",
            "format",
            "FLOP",
            "bytes",
            "FLOP/byte",
            "ridge",
            "attains",
            "time",
            "bound",
            "what helps",
        ),
        [
            (
                f"{k.layer} {k.name}",
                str(k.layers),
                k.format,
                scaled(k.flops, ""),
                scaled(k.bytes, "B"),
                number(k.arithmetic_intensity),
                number(k.ridge_point),
                scaled(k.attainable_flops_per_s, "FLOP/s"),
                seconds(k.time_s),
                k.bound,
                k.advice,
            )
            for k in result.kernels
        ],
        title=f"{result.model} on {result.gpu}, {result.phase} at batch {result.batch}, context "
        f"{result.context:,}: kernels of one layer of each kind",
    )
