"""`planner keys`: the API keys of the store this machine serves."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, cast

import click

from api.commands.settings import bring_up, load_settings
from planner.commands.output import print_table

if TYPE_CHECKING:
    from api.system.keys import Keys
    from api.web.context import AccessScope

WORKSPACE = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")


def _keys() -> Keys:
    from api.store import Database
    from api.system.keys import Keys

    settings = load_settings()
    bring_up(settings)
    return Keys(Database(settings))


@click.group()
def command() -> None:
    """Make, list and revoke API keys."""


@command.command("create")
@click.option("--workspace", required=True, help="Workspace the key opens.")
@click.option("--name", default="", help="What the key is for.")
@click.option(
    "--scope", type=click.Choice(["read", "write"]), default="read", help="What it may do."
)
def create(workspace: str, name: str, scope: str) -> None:
    """Make a key and print it, this once."""
    if not WORKSPACE.fullmatch(workspace):
        raise click.UsageError("workspace: accepted: 1 to 64 of a-z, 0-9, _ and -")
    ident, key = _keys().create(workspace, name[:200], cast("AccessScope", scope))
    click.echo(key)
    click.echo(f"id {ident}; only its hash is kept, it cannot be shown again", err=True)


@command.command("list")
def list_command() -> None:
    """List keys; the keys themselves are not known."""
    rows = [
        (
            row.id,
            row.workspace,
            row.scope,
            row.created_at.isoformat(timespec="seconds"),
            "revoked" if row.revoked_at else "",
            row.name,
        )
        for row in _keys().list()
    ]
    print_table(("id", "workspace", "scope", "made", "state", "name"), rows)


@command.command("revoke")
@click.argument("key_id", metavar="ID")
def revoke(key_id: str) -> None:
    """Make a key invalid at once."""
    if not _keys().revoke(key_id):
        raise click.ClickException(f"key: no valid key {key_id[:60]!r}")
    click.echo(f"{key_id} revoked")
