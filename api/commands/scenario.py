"""`planner scenario`: stored scenarios, of the local store or of a server."""

from __future__ import annotations

import json
from typing import Any

import click

from api.commands.client import Client, run, server_option
from api.commands.questions import inline
from planner.commands.options import json_option, scenario_options
from planner.commands.output import print_table

PATH = "/v1/scenarios"


@click.group()
def command() -> None:
    """Save scenarios with their plans, list, show and delete them."""


@command.command("save")
@scenario_options
@click.option("--tag", "tags", multiple=True, help="Tag; repeatable.")
@click.option("--notes", help="Notes.")
@server_option
@json_option
def save(as_json: bool, server: str | None, tags: tuple[str, ...], **fields: Any) -> None:
    """Store a scenario with the plan it has today."""
    scenario = {name: value for name, value in fields.items() if value is not None}
    scenario |= {
        "tags": list(tags),
        "model": inline("model", scenario["model"]),
        "gpu": inline("gpu", scenario["gpu"]),
    }
    stored = run(server, lambda client: client.json("POST", PATH, json=scenario))
    click.echo(json.dumps(stored, indent=2) if as_json else f"{stored['id']}  {stored['name']}")


@command.command("list")
@click.option("--tag", help="With this tag.")
@click.option("--model", help="Of this model.")
@click.option("--gpu", help="On this accelerator.")
@click.option("--text", help="With this text in name, notes, tags, model or accelerator.")
@click.option("--deleted", is_flag=True, help="Deleted ones instead.")
@server_option
@json_option
def list_command(as_json: bool, server: str | None, **filters: Any) -> None:
    """List stored scenarios, oldest first."""
    items = run(server, lambda client: all_scenarios(client, filters))
    if as_json:
        click.echo(json.dumps(items, indent=2))
        return
    print_table(
        ("id", "revision", "name", "model", "accelerator", "tags"),
        [
            (
                item["id"],
                str(item["revision"]),
                item["name"],
                _called(item["scenario"]["model"]),
                _called(item["scenario"]["gpu"]),
                ", ".join(item["tags"]),
            )
            for item in items
        ],
    )


async def all_scenarios(client: Client, filters: dict[str, Any]) -> list[dict[str, Any]]:
    """Return every page of a list."""
    query = {k: str(v).lower() if isinstance(v, bool) else v for k, v in filters.items() if v}
    items: list[dict[str, Any]] = []
    cursor: str | None = None
    while True:
        parameters = {**query, "limit": 200, **({"cursor": cursor} if cursor else {})}
        page = await client.json("GET", PATH, params=parameters)
        items += page["items"]
        cursor = page["next_cursor"]
        if cursor is None:
            return items


@command.command("show")
@click.argument("scenario_id", metavar="ID")
@click.option("--plan", is_flag=True, help="The stored plan, and whether it is stale.")
@click.option("--recompute", is_flag=True, help="With --plan: what is different today, and why.")
@server_option
def show(scenario_id: str, plan: bool, recompute: bool, server: str | None) -> None:
    """Show a stored scenario as JSON."""
    path = f"{PATH}/{scenario_id}" + ("/plan" if plan or recompute else "")
    query = {"recompute": "true"} if recompute else {}
    document = run(server, lambda client: client.json("GET", path, params=query))
    click.echo(json.dumps(document, indent=2))


@command.command("delete")
@click.argument("scenario_id", metavar="ID")
@server_option
def delete(scenario_id: str, server: str | None) -> None:
    """Put a stored scenario away; the service can restore it."""

    async def work(client: Client) -> None:
        read = await client.send("GET", f"{PATH}/{scenario_id}")
        tag = {"If-Match": read.headers["etag"]}
        await client.send("DELETE", f"{PATH}/{scenario_id}", headers=tag)

    run(server, work)
    click.echo(f"{scenario_id} deleted")


def _called(name: str | dict[str, Any]) -> str:
    if isinstance(name, str):
        return name
    return str(name.get("id") or name.get("_name_or_path") or name.get("model_type") or "inline")
