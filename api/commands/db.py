"""`planner db`: the revision of the store's schema."""

from __future__ import annotations

from collections.abc import Callable

import click
from alembic.util import CommandError
from sqlalchemy.exc import SQLAlchemyError

from api.commands.settings import load_settings
from api.settings import Settings
from api.store import migrate


@click.group()
def command() -> None:
    """Migrate the store and check it."""


@command.command("upgrade")
@click.argument("revision", default="head")
def upgrade(revision: str) -> None:
    """Migrate forward to REVISION, by default the newest."""
    _go(migrate.upgrade, revision)


@command.command("downgrade")
@click.argument("revision")
def downgrade(revision: str) -> None:
    """Migrate back to REVISION; -1 is one back, base is nothing. What it held is lost."""
    _go(migrate.downgrade, revision)


@command.command("check")
def check() -> None:
    """Say whether the store is at the newest revision and its tables are as they should be."""
    settings = load_settings()
    try:
        found = migrate.differences(settings)
    except migrate.WrongRevision as error:
        raise click.ClickException(str(error)) from None
    if found:
        raise click.ClickException(f"the tables differ: {'; '.join(found)[:2000]}")
    click.echo(f"at revision {migrate.current(settings)}, tables as they should be")


def _go(move: Callable[[Settings, str], None], revision: str) -> None:
    settings = load_settings()
    try:
        move(settings, revision)
        click.echo(f"at revision {migrate.current(settings)}")
    except (CommandError, SQLAlchemyError, OSError) as error:
        raise click.ClickException(f"store: {str(error).splitlines()[0]}") from None
