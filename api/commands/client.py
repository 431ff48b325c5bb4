"""The command line as a client: of a server, or of the local store through the same routes."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    import httpx

T = TypeVar("T")
TIMEOUT_S = 60


class Client:
    """Speaks to the service; problems become one line."""

    def __init__(self, http: httpx.AsyncClient) -> None:
        self.http = http

    async def send(self, method: str, path: str, **options: Any) -> httpx.Response:
        """Return the response to a request."""
        from httpx import HTTPError

        try:
            response = await self.http.request(method, path, **options)
        except HTTPError as error:
            reason = str(error) or type(error).__name__
            raise click.ClickException(f"server: {self.http.base_url}: {reason}") from None
        if response.status_code >= 400:
            raise click.ClickException(_detail(response))
        return response

    async def json(self, method: str, path: str, **options: Any) -> Any:
        """Return the document that answers a request."""
        return (await self.send(method, path, **options)).json()


def _detail(response: httpx.Response) -> str:
    try:
        return str(response.json()["detail"])
    except (ValueError, KeyError, TypeError):
        return f"server: answered {response.status_code}"


def run(server: str | None, work: Callable[[Client], Awaitable[T]], jobs: int = 0) -> T:
    """Run `work` with a client of `server`, or of the local store, of which it does `jobs` at once.

    A command that waits for none would only begin them.
    """
    import asyncio

    async def main() -> T:
        # An error that passed through the application's lifespan would come out as a group.
        failed: click.ClickException
        async with _remote(server) if server else _local(jobs) as http:
            try:
                return await work(Client(http))
            except click.ClickException as error:
                failed = error
        raise failed

    return asyncio.run(main())


@asynccontextmanager
async def _remote(server: str) -> AsyncIterator[httpx.AsyncClient]:
    import httpx

    if not server.startswith(("http://", "https://")):
        raise click.UsageError(f"server: {server!r}; accepted: http://HOST:PORT or https://…")
    async with httpx.AsyncClient(base_url=server, headers=_key(), timeout=TIMEOUT_S) as http:
        yield http


@asynccontextmanager
async def _local(jobs: int) -> AsyncIterator[httpx.AsyncClient]:
    """Build the service in this process: the store is a file, whoever can read it needs no key."""
    import httpx

    from api.app import create_app
    from api.commands.settings import bring_up, load_settings

    local = {"host": "127.0.0.1", "auth": "auto", "allowed_hosts": [], "log_level": "error"}
    settings = load_settings(**local, lane_jobs=jobs)
    bring_up(settings)
    app = create_app(settings.model_copy(update={"auto_migrate": False}), agents=False)
    async with app.lifespan():
        transport = httpx.ASGITransport(app)  # type: ignore[arg-type]  # the same protocol
        async with httpx.AsyncClient(
            transport=transport, base_url="http://localhost", headers=_key(), timeout=TIMEOUT_S
        ) as http:
            yield http


def _key() -> dict[str, str]:
    key = os.environ.get("PLANNER_API_KEY")
    return {"Authorization": f"Bearer {key}"} if key else {}


def server_option(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add --server."""
    text = "Address of a service; its key is in PLANNER_API_KEY. Without, the local store."
    return click.option("--server", metavar="URL", envvar="PLANNER_SERVER", help=text)(function)
