"""`planner models`: list models, or show one with its sizes and source."""

from __future__ import annotations

import json

import click

from planner.commands.options import json_option, model_argument
from planner.commands.output import print_notes, print_table
from planner.units import count, scaled


@click.group()
def command() -> None:
    """List models, or show one with its sizes and source."""


@command.command("list")
@click.option("--family", help="model_type.")
@click.option("--kind", help="dense, moe, hybrid or hybrid+moe.")
@click.option("--text", help="Words in the id.")
@json_option
def list_command(family: str | None, kind: str | None, text: str | None, as_json: bool) -> None:
    """List the models of the catalogue."""
    from planner.models.listing import list_facts

    models = list_facts(family, kind, text)
    if as_json:
        click.echo(json.dumps(models, indent=2))
        return
    print_table(
        ("id", "kind", "params", "active", "KV/token", "weights", "stored as", "source"),
        [
            (
                m["id"],
                m["kind"],
                count(m["total_params"]),
                count(m["active_params"]),
                scaled(m["kv_bytes_per_token"], "B"),
                scaled(m["weights_bytes"], "B"),
                m["quantization"],
                "checked" if m["checked"] else "unchecked",
            )
            for m in models
        ],
    )


@command.command("show")
@model_argument
@json_option
def show_command(model: str, as_json: bool) -> None:
    """Show one model; MODEL is an id, a config.json, a directory or a .gguf file."""
    from planner.models import describe, get_model

    spec = get_model(model)
    facts = describe(spec)
    if as_json:
        click.echo(json.dumps(facts, indent=2))
        return
    del facts["notes"]
    print_table(("figure", "value"), [(k, _text(v)) for k, v in facts.items()])
    print_notes(spec.notes)


def _text(value: object) -> str:
    if isinstance(value, bool) or value is None:
        return "–" if value is None else str(value)
    if isinstance(value, (int, float)):
        return f"{value:,.0f}"
    if isinstance(value, (list, tuple)):
        return "; ".join(str(item) for item in value)
    return str(value)
