"""`planner serve`: start the service."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import click

from api.commands.settings import bring_up, load_settings

if TYPE_CHECKING:
    from api.settings import Settings


@click.command("serve")
@click.option("--host", help="Address to listen on.")
@click.option("--port", type=int, help="Port to listen on.")
@click.option("--workers", type=int, help="Server processes.")
@click.option("--settings", "show", is_flag=True, help="Print every setting and end.")
def command(host: str | None, port: int | None, workers: int | None, show: bool) -> None:
    """Start the REST service; its settings are PLANNER_… variables or a .env file."""
    settings = load_settings(host=host, port=port, workers=workers)
    if show:
        from api.settings import table

        for name, value, default, meaning in table(settings):
            click.echo(f"{name}={value}  # {meaning} [default: {default or 'empty'}]")
        return
    serve(settings)


def serve(settings: Settings) -> None:
    """Serve until a signal ends it."""
    from granian import Granian
    from granian.constants import Interfaces

    bring_up(settings)
    # The workers are processes of their own: they read the settings from the environment.
    for name in settings.model_fields_set:
        os.environ[f"PLANNER_{name.upper()}"] = _text(getattr(settings, name))
    shown = f"[{settings.host}]" if ":" in settings.host else settings.host
    click.echo(f"http://{shown}:{settings.port}  (API documentation: /schema)")
    click.echo(f"store: {_store(settings)}; API keys {_keys(settings)}")
    Granian(
        "api.app:create_app",
        factory=True,
        address=settings.host,
        port=settings.port,
        interface=Interfaces.ASGI,
        workers=settings.workers,
        log_access=False,
        websockets=False,
        workers_kill_timeout=10,
    ).serve()


def _text(value: Any) -> str:
    if hasattr(value, "get_secret_value"):
        return str(value.get_secret_value())
    return ",".join(value) if isinstance(value, list) else str(value)


def _store(settings: Settings) -> str:
    return str(settings.sqlite_file or "Postgres")


def _keys(settings: Settings) -> str:
    return "required" if settings.keys_required else "not required on loopback"
