"""`planner engines`: list serving engines, or show one with the source of each figure."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

import click

from planner.commands.options import json_option, version_option
from planner.commands.output import print_table
from planner.units import scaled

BYTE = "byte"


@click.group()
def command() -> None:
    """List serving engines, or show one with the source of each figure."""


@command.command("list")
@json_option
def list_command(as_json: bool) -> None:
    """List the engines that have a profile."""
    from planner.engines.describe import list_engines

    engines = list_engines()
    if as_json:
        click.echo(json.dumps(engines, indent=2))
        return
    print_table(
        ("id", "name", "speed measured", "defaults of", "memory known", "runs on"),
        [
            (
                engine["id"],
                engine["name"],
                ", ".join(engine["measured"]) or "never",
                engine["release"] or "–",
                _versions(engine["versions"]),
                ", ".join(engine["backends"]),
            )
            for engine in engines
        ],
    )


def _versions(versions: Mapping[str, Sequence[str]]) -> str:
    """Return the ranges of versions, by what a version is."""
    return ", ".join(f"{form} {'–'.join(ends)}" for form, ends in versions.items())


@command.command("show")
@click.argument("engine", metavar="ENGINE")
@version_option
@click.option("--gpu", metavar="GPU", help="Figures as they are on this accelerator.")
@click.option("--tp", type=click.IntRange(min=1), default=1, help="And over so many of them.")
@json_option
def show_command(
    engine: str, engine_version: str | None, gpu: str | None, tp: int, as_json: bool
) -> None:
    """Show one engine; ENGINE is an id, or `neutral` for what holds without an engine."""
    from planner.engines.describe import engine_facts
    from planner.hw import get_accelerator

    accelerator = None if gpu is None else get_accelerator(gpu)
    facts = engine_facts(engine, engine_version, accelerator, tp)
    if as_json:
        click.echo(json.dumps(facts, indent=2))
        return
    print_table(
        ("figure", "value", "confidence", "source"),
        [
            (
                figure["name"],
                _text(figure["value"], figure["unit"]),
                figure["confidence"].replace("_", " "),
                figure["source"],
            )
            for figure in facts["figures"]
        ],
        title=f"{facts['name']} {facts['release']}".rstrip(),
    )


def _text(value: object, unit: str = "") -> str:
    if isinstance(value, bool) or value is None:
        return {True: "yes", False: "no", None: "–"}[value]
    if isinstance(value, (int, float)):
        if unit.startswith(BYTE):
            return scaled(value, unit.replace(BYTE, "B", 1))
        return f"{value:,} {unit}".rstrip()
    if isinstance(value, dict):
        return "; ".join(f"{key}: {_text(item)}" for key, item in value.items()) or "–"
    if isinstance(value, list):
        return ", ".join(map(_text, value)) or "–"
    return str(value) or "–"
