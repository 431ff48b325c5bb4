"""`planner db`: the revision of the store's schema."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Literal, TypeVar

import click

from api.commands.settings import load_settings

T = TypeVar("T")


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
@click.option("--yes", is_flag=True, help="Do not ask before data are lost.")
def downgrade(revision: str, yes: bool) -> None:
    """Migrate back to REVISION; -1 is one back, base is nothing.

    The data of the later revisions are lost: it names them and asks first.
    """
    from api.store import migrate

    gone = _one_line(lambda: migrate.lost(load_settings(), revision))
    if gone and not yes:
        named = ", ".join(f"{name} ({count} rows)" for name, count in gone.items())
        click.confirm(f"this drops {named}; go on?", abort=True)
    _migrate("downgrade", revision)


@command.command("backup")
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
def backup_command(file: Path) -> None:
    """Write the whole store to FILE, as it is at one moment; the service may go on."""
    from api.store.backup import backup

    counts = _one_line(lambda: backup(load_settings(), file))
    click.echo(f"{file}: {counts.total()} rows")


@command.command("restore")
@click.argument("file", type=click.Path(dir_okay=False, exists=True, path_type=Path))
def restore_command(file: Path) -> None:
    """Fill an empty store from FILE, on either database, all of it or nothing."""
    from api.store.backup import restore

    counts = _one_line(lambda: restore(load_settings(), file))
    click.echo(f"{counts.total()} rows restored")


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
    from api.store import migrate

    settings = load_settings()
    move = migrate.upgrade if direction == "upgrade" else migrate.downgrade
    _one_line(lambda: move(settings, revision))
    click.echo(f"at revision {migrate.current(settings)}")


def _one_line(work: Callable[[], T]) -> T:
    """Return what `work` does; what goes wrong with a store is one line."""
    from alembic.util import CommandError
    from sqlalchemy.exc import SQLAlchemyError

    from api.store.backup import BadBackup
    from api.store.migrate import WrongRevision

    try:
        return work()
    except (BadBackup, CommandError, WrongRevision, SQLAlchemyError, OSError) as error:
        raise click.ClickException(f"store: {str(error).splitlines()[0]}") from None
