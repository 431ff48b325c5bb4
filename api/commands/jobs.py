"""`planner jobs`: long work of the local store or of a server, with a bar while it lasts."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import click

from api.commands.client import Client, run, server_option
from planner.commands.options import json_option
from planner.commands.output import print_table
from planner.commands.progress import busy

PATH = "/v1/jobs"
LOOK_S = 0.3
"""Time between two looks at a job [s]."""
KINDS = ("sweep", "recommendation", "fleet", "simulation", "refit", "export")


@click.group()
def command() -> None:
    """Have sweeps, searches, simulations, refits and exports done, list and cancel them."""


@command.command("run")
@click.argument("kind", type=click.Choice(KINDS))
@click.argument("question", required=False, type=click.Path(exists=True, path_type=Path))
@click.option("--result", type=click.Choice(["json", "csv", "parquet"]), help="Form of a sweep.")
@click.option("--output", type=click.Path(dir_okay=False, path_type=Path), help="File to write.")
@click.option("--no-wait", is_flag=True, help="Print the id, and do not wait for the result.")
@server_option
def run_command(
    kind: str,
    question: Path | None,
    result: str | None,
    output: Path | None,
    no_wait: bool,
    server: str | None,
) -> None:
    """Have work of KIND done; QUESTION is a JSON file, as the route of that kind takes it."""
    if no_wait and not server:
        raise click.UsageError("no-wait: the local store is worked on while this waits for it")
    if result == "parquet" and output is None:
        raise click.UsageError("output: Parquet is no text; accepted: --output FILE")
    body: dict[str, Any] = {"kind": kind}
    if question is not None:
        body["question"] = _read(question)
    if result is not None:
        body["result"] = result

    async def work(client: Client) -> bytes:
        job = await client.json("POST", PATH, json=body)
        if no_wait:
            return f"{job['id']}\n".encode()
        return await finished(client, job)

    content = run(server, work, jobs=1)
    if output is not None:
        output.write_bytes(content)
    else:
        click.echo(content.decode(), nl=not content.endswith(b"\n"))


def _read(path: Path) -> Any:
    try:
        return json.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        reason = str(error).splitlines()[0]
        raise click.UsageError(f"question: {path}: {reason}") from None


async def finished(client: Client, job: dict[str, Any]) -> bytes:
    """Return the result of a job, with a bar until it is there."""
    with busy(f"Waiting for the {job['kind']}") as bar:
        while job["finished_at"] is None:
            await asyncio.sleep(LOOK_S)
            job = await client.json("GET", f"{PATH}/{job['id']}")
            bar(job["done"], job["total"])
    if job["error"]:
        raise click.ClickException(job["error"]["detail"])
    return (await client.send("GET", f"{PATH}/{job['id']}/result")).content


@command.command("list")
@click.option("--state", help="Only those in this state.")
@server_option
@json_option
def list_command(as_json: bool, state: str | None, server: str | None) -> None:
    """List jobs, oldest first."""
    query = {"limit": 200, **({"state": state} if state else {})}
    items = run(server, lambda client: client.json("GET", PATH, params=query))["items"]
    if as_json:
        click.echo(json.dumps(items, indent=2))
        return
    rows = [
        (job["id"], job["kind"], job["state"], f"{job['done']}/{job['total']}", job["created_at"])
        for job in items
    ]
    print_table(("id", "kind", "state", "done", "made"), rows)


@command.command("cancel")
@click.argument("job_id", metavar="ID")
@server_option
def cancel(job_id: str, server: str | None) -> None:
    """Cancel a job that waits or runs."""
    job = run(server, lambda client: client.json("POST", f"{PATH}/{job_id}/cancel"))
    click.echo(f"{job_id} {'is being cancelled' if job['state'] == 'running' else job['state']}")
