"""`planner serve`: start the service."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

import click

from api.commands.settings import bring_up, load_settings

if TYPE_CHECKING:
    from api.settings import Settings


HEAD_BYTES = 131_072
"""Buffer of a connection, which a request's head has to fit into [byte]."""


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
    from importlib.metadata import version

    import structlog
    from granian import Granian
    from granian.constants import Interfaces
    from granian.http import HTTP1Settings
    from granian.log import LogLevels

    from api.web import log

    bring_up(settings)
    # The workers are processes of their own: they read the settings from the environment.
    for name in settings.model_fields_set:
        os.environ[f"PLANNER_{name.upper()}"] = _text(getattr(settings, name))
    shown = f"[{settings.host}]" if ":" in settings.host else settings.host
    address = f"http://{shown}:{settings.port}"
    if sys.stdout.isatty():
        click.echo(f"{address}  (API documentation: {address}/schema)")
        click.echo(f"store: {_store(settings)}; API keys {_keys(settings)}")
    log.configure(settings.log_level)
    structlog.get_logger("api").info(
        "start",
        url=address,
        documentation=f"{address}/schema",
        store=_store(settings),
        keys=_keys(settings),
        workers=settings.workers,
        version=version("decode-planner"),
    )
    Granian(
        "api.app:create_app",
        factory=True,
        address=settings.host,
        port=settings.port,
        interface=Interfaces.ASGI,
        workers=settings.workers,
        log_access=False,
        log_level=LogLevels(settings.log_level),
        log_dictconfig=log.of_libraries(settings.log_level),
        http1_settings=HTTP1Settings(
            header_read_timeout=int(1e3 * settings.header_timeout_s), max_buffer_size=HEAD_BYTES
        ),
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
