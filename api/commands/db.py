"""`planner db`: the revision of the store's schema."""

from __future__ import annotations

from typing import Literal

import click

from api.commands.settings import load_settings


@click.group()
def command() -> None:
    """Migrate the store and check it."""


@command.command("upgrade")
@click.argument("revision", default="head")
def upgrade(revision: str) -> None:
    """Migrate forward to REVISION, by default the newest."""
    _migrate("upgrade", revision)


@command.command("downgrade")
@click.argument("revision")
def downgrade(revision: str) -> None:
    """Migrate back to REVISION; -1 is one back, base is nothing.

    The data of the later revisions are lost.
    """
    _migrate("downgrade", revision)


@command.command("check")
def check() -> None:
    """Say whether the store is at the newest revision and its tables are as they should be."""
    from api.store import migrate

    settings = load_settings()
    try:
        differences = migrate.differences(settings)
    except migrate.WrongRevision as error:
        raise click.ClickException(str(error)) from None
    if differences:
        raise click.ClickException(f"the tables differ: {'; '.join(differences)[:2000]}")
    click.echo(f"at revision {migrate.current(settings)}, tables as they should be")


def _migrate(direction: Literal["upgrade", "downgrade"], revision: str) -> None:
    from alembic.util import CommandError
    from sqlalchemy.exc import SQLAlchemyError

    from api.store import migrate

    settings = load_settings()
    move = migrate.upgrade if direction == "upgrade" else migrate.downgrade
    try:
        move(settings, revision)
        click.echo(f"at revision {migrate.current(settings)}")
    except (CommandError, SQLAlchemyError, OSError) as error:
        raise click.ClickException(f"store: {str(error).splitlines()[0]}") from None
