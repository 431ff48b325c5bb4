"""`planner roofline`: ridge points by format, as specified and as measured."""

from __future__ import annotations

import json

import click

from planner.commands.options import json_option
from planner.commands.output import print_table
from planner.units import number, scaled


@click.command()
@click.option("--gpu", "gpus", multiple=True, metavar="GPU", help="Accelerator; repeatable.")
@json_option
def command(gpus: tuple[str, ...], as_json: bool) -> None:
    """Show peak, bandwidth and ridge point of each format, spec and measured side by side."""
    from planner.step.ridges import ridges

    rows = ridges(gpus)
    if as_json:
        click.echo(json.dumps(rows, indent=2))
        return
    print_table(
        (
            "gpu",
            "format",
            "peak",
            "bandwidth",
            "ridge",
            "measured peak",
            "measured bandwidth",
            "measured ridge",
        ),
        [
            (
                row["gpu"],
                row["format"],
                scaled(row["peak_flops_per_s"], "FLOP/s"),
                scaled(row["bandwidth_bytes_per_s"], "B/s"),
                number(row["ridge_point"]),
                _optional(row["measured_flops_per_s"], "FLOP/s"),
                _optional(row["measured_bandwidth_bytes_per_s"], "B/s"),
                number(row["measured_ridge_point"]),
            )
            for row in rows
        ],
    )


def _optional(value: float | None, unit: str) -> str:
    return "–" if value is None else scaled(value, unit)
