"""Settings for commands."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from api.settings import Settings


def load_settings(**given: Any) -> Settings:
    """Return the settings; those given here win over environment and `.env`."""
    from pydantic import ValidationError

    from api.settings import Settings

    try:
        settings = Settings(**{name: value for name, value in given.items() if value is not None})
        _ = settings.url
    except ValidationError as error:
        fault = error.errors(include_url=False)[0]
        name = "_".join(str(part) for part in fault["loc"]).upper()
        raise click.UsageError(f"PLANNER_{name.removeprefix('PLANNER_')}: {fault['msg']}") from None
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    return settings


def bring_up(settings: Settings) -> None:
    """Migrate the store where it migrates itself; otherwise it must be at the right revision."""
    from sqlalchemy.exc import SQLAlchemyError

    from api.store import migrate

    try:
        if settings.migrates:
            migrate.upgrade(settings)
        else:
            migrate.require(settings)
    except (migrate.WrongRevision, SQLAlchemyError, OSError) as error:
        raise click.ClickException(f"store: {str(error).splitlines()[0]}") from None
