"""`planner gpus`: list accelerators, or show one with its sources."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING

import click

from planner.commands.completion import accelerators
from planner.commands.options import json_option
from planner.commands.output import print_table
from planner.units import number, scaled

if TYPE_CHECKING:
    from planner.hw.accelerator import Accelerator
    from planner.hw.figure import Figure


@click.group()
def command() -> None:
    """List accelerators, or show one with the source of each figure."""


@command.command("list")
@click.option("--vendor", help="Vendor, in any case.")
@click.option("--kind", help="gpu, cpu, tpu, …")
@click.option("--format", "number_format", help="Only those with this arithmetic format.")
@click.option("--memory-gb", type=float, help="Only those with at least this memory [GB].")
@click.option("--text", help="Words in the id or name.")
@json_option
def list_command(
    vendor: str | None,
    kind: str | None,
    number_format: str | None,
    memory_gb: float | None,
    text: str | None,
    as_json: bool,
) -> None:
    """List the accelerators of the catalogue."""
    from planner.hw import describe, list_accelerators

    smallest = None if memory_gb is None else memory_gb * 1e9
    accelerators = list_accelerators(
        vendor=vendor, kind=kind, format=number_format, text=text, min_memory_bytes=smallest
    )
    if as_json:
        click.echo(json.dumps([describe(a) for a in accelerators], indent=2))
        return
    print_table(
        ("id", "memory", "bandwidth", "16 bit", "8 bit", "ridge", "figures", "name"),
        [
            (
                a.id,
                "–" if a.memory_bytes is None else scaled(a.memory_bytes, "B"),
                scaled(a.bandwidth_bytes_per_s, "B/s"),
                _first(a.peaks_flops_per_s, "bf16", "fp16", unit=""),
                _first(a.peaks_flops_per_s, "fp8", "int8", unit=""),
                _first(a.ridge_points, "bf16", "fp16", "fp32"),
                _confidence(a),
                a.name,
            )
            for a in accelerators
        ],
        legend="16 bit, 8 bit: peak FLOP/s without sparsity; ridge: FLOP/byte in 16 bit, in fp32 "
        "where there is none; figures: how far they carry, the weak ones named",
    )


def _confidence(accelerator: Accelerator) -> str:
    """How far the figures carry, and which ones nobody vouches for."""
    weak = [
        f"{name.partition('_')[0]} {figure.confidence}"
        for name, figure in accelerator.weak_figures.items()
    ]
    return ", ".join([accelerator.confidence.replace("_", " "), *weak])


def _first(by_format: Mapping[str, float], *formats: str, unit: str = "") -> str:
    value = next((by_format[f] for f in formats if f in by_format), None)
    if value is None:
        return "–"
    return scaled(value, unit) if value >= 1e4 else number(value)


@command.command("show")
@click.argument("gpu", metavar="GPU", shell_complete=accelerators)
@json_option
def show_command(gpu: str, as_json: bool) -> None:
    """Show one accelerator; GPU is an id, a name, or a .json or .toml file."""
    from planner.hw import describe, get_accelerator

    accelerator = get_accelerator(gpu)
    facts = describe(accelerator)
    if as_json:
        click.echo(json.dumps(facts, indent=2))
        return
    measured = facts.pop("measured")
    facts = {name: value for name, value in facts.items() if name not in ("sources", "confidences")}
    print_table(("fact", "value"), [(name, _text(value, name)) for name, value in facts.items()])
    print_table(
        ("figure", "value", "confidence", "source"),
        [
            (name, _value(figure), figure.confidence, figure.source)
            for name, figure in accelerator.figures.items()
        ],
    )
    if measured:
        print_table(
            ("measured", "format", "value", "source"),
            [
                (m["metric"], m["format"], _text(m["value"], m["metric"]), m["source"])
                for m in measured
            ],
        )


def _value(figure: Figure) -> str:
    unit = {"bytes": "B", "bytes/s": "B/s"}.get(figure.unit, figure.unit)
    counted = figure.unit in ("count", "accelerators")
    return number(figure.value) if counted else scaled(figure.value, unit)


UNITS = {"flops_per_s": "FLOP/s", "bytes_per_s": "B/s", "bytes": "B", "_w": "W"}
"""Unit printed by the ending of a figure's name."""


def _text(value: object, name: str = "") -> str:
    unit = next((u for ending, u in UNITS.items() if name.endswith(ending)), "")
    if isinstance(value, (int, float)) and unit:
        return scaled(value, unit)
    if isinstance(value, float):
        return number(value, 4)
    if isinstance(value, dict):
        return ", ".join(f"{k} {_text(v, name if unit else k)}" for k, v in value.items())
    if isinstance(value, (list, tuple)):
        return "; ".join(_text(item, name) for item in value)
    return "–" if value is None else str(value)
