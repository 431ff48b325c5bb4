"""`planner compare`: scenarios side by side, and where the difference comes from."""

from __future__ import annotations

from typing import Any

import click

from api.commands.client import Client, run, server_option
from api.commands.questions import question

FORMS = {"markdown": "text/markdown", "csv": "text/csv", "json": "application/json"}


@click.command("compare")
@click.argument("scenarios", nargs=-1, required=True, metavar="A B…")
@click.option("--baseline", type=int, default=0, help="Which one to measure against, from 0.")
@click.option("--save", is_flag=True, help="Keep the comparison in the store.")
@click.option("--name", help="What to call the comparison.")
@click.option("--csv", "form", flag_value="csv", help="Print CSV.")
@click.option("--json", "form", flag_value="json", help="Print JSON.")
@server_option
def command(
    scenarios: tuple[str, ...],
    baseline: int,
    save: bool,
    name: str | None,
    form: str | None,
    server: str | None,
) -> None:
    """Compare stored scenarios (ids or names), scenario files (.json) or field=value,… lists.

    Prints Markdown: figures side by side, the Pareto set, and what each changed field and each
    kernel adds to the difference.
    """
    compared = [question(text) or text for text in scenarios]
    body = {"scenarios": compared, "baseline": baseline, "save": save, "name": name}
    form = form or "markdown"
    if server is None and not save and all(isinstance(item, dict) for item in compared):
        click.echo(_here(body, form), nl=False)
        return
    click.echo(_there(body, form, server), nl=False)


def _here(body: dict[str, Any], form: str) -> str:
    """Compare in this process: no scenario is a stored one."""
    from planner.plans.compare import ComparisonRequest, compare, to_csv, to_markdown
    from planner.scenario import Scenario

    scenarios = [Scenario.model_validate(item) for item in body["scenarios"]]
    comparison = compare(ComparisonRequest(scenarios=scenarios, baseline=body["baseline"]))
    if form == "json":
        return comparison.model_dump_json(indent=2) + "\n"
    return to_markdown(comparison) if form == "markdown" else to_csv(comparison)


def _there(body: dict[str, Any], form: str, server: str | None) -> str:
    async def work(client: Client) -> str:
        body["scenarios"] = [await _id(client, item) for item in body["scenarios"]]
        accept = {"Accept": FORMS[form]}
        response = await client.send("POST", "/v1/comparisons", json=body, headers=accept)
        if "location" in response.headers:
            click.echo(f"saved: {response.headers['location']}", err=True)
        return response.text if response.text.endswith("\n") else response.text + "\n"

    return run(server, work)


async def _id(client: Client, item: str | dict[str, Any]) -> str | dict[str, Any]:
    """Return the id of a scenario that is given by name."""
    from api.commands.scenario import all_scenarios

    if isinstance(item, dict) or (len(item) == 36 and item.count("-") == 4):
        return item
    matching = [one for one in await all_scenarios(client, {"text": item}) if one["name"] == item]
    if len(matching) != 1:
        many = (
            f"{len(matching)} have this name; give an id"
            if matching
            else "no scenario of this name"
        )
        raise click.ClickException(f"scenarios: {item[:60]!r}: {many}")
    return str(matching[0]["id"])
