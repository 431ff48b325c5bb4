"""`planner roofline`: ridge points by format, as specified and as measured."""

from __future__ import annotations

import json
from typing import Any

import click

from planner.commands.completion import accelerators
from planner.commands.options import json_option
from planner.commands.output import print_table
from planner.units import number, scaled

EXAMPLES = """\b
Examples:
  planner roofline --gpu h100-sxm5 --gpu b200-sxm
  planner roofline --gpu epyc-9654
"""


@click.command(epilog=EXAMPLES)
@click.option(
    "--gpu",
    "gpus",
    multiple=True,
    metavar="GPU",
    shell_complete=accelerators,
    help="Accelerator; repeatable.",
)
@json_option
def command(gpus: tuple[str, ...], as_json: bool) -> None:
    """Show peak, bandwidth and ridge point of each format, spec and measured side by side.

    A GPU that is named is also shown at other bandwidths that were published for it.
    """
    from planner.hw import get_accelerator
    from planner.step.ridges import other_bandwidths, ridges

    rows = ridges(gpus)
    if as_json:
        click.echo(json.dumps(rows, indent=2))
        return
    _print(rows, LEGEND)
    for others, source in other_bandwidths(gpus):
        bandwidth = scaled(others[0]["bandwidth_bytes_per_s"], "B/s")
        _print(others, f"{bandwidth} is published, too: {source}")
    for accelerator in map(get_accelerator, gpus):
        for note in accelerator.notes:
            click.echo(f"note: {accelerator.id}: {note}")


LEGEND = (
    "ridge: FLOP/byte at which arithmetic takes as long as memory; measured: what kernels reach, "
    "in brackets as a share of the datasheet's"
)


def _print(rows: list[dict[str, Any]], legend: str) -> None:
    print_table(
        ("gpu", "format", "peak", "bandwidth", "ridge", "measured", "measured", "ridge"),
        [
            (
                row["gpu"],
                row["format"],
                scaled(row["peak_flops_per_s"], ""),
                scaled(row["bandwidth_bytes_per_s"], "B/s"),
                number(row["ridge_point"], 4),
                _reached(row["measured_flops_per_s"], row["peak_flops_per_s"], ""),
                _reached(
                    row["measured_bandwidth_bytes_per_s"], row["bandwidth_bytes_per_s"], "B/s"
                ),
                number(row["measured_ridge_point"]),
            )
            for row in rows
        ],
        legend=legend,
    )


def _reached(value: float | None, specified: float, unit: str) -> str:
    return "–" if value is None else f"{scaled(value, unit)} ({value / specified:.0%})"
