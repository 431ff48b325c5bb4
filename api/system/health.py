"""Whether the service can answer: its store, and each of its lanes."""

from __future__ import annotations

import asyncio
from concurrent.futures import Future

from sqlalchemy.exc import SQLAlchemyError

from api.lanes import LaneFull
from api.services import Services
from api.store import migrate
from api.web.problem import Problem

PATIENCE_S = 2.0
"""Time in which the store, and every lane that others wait for, must have had its turn."""
WATCHED = ("compute", "store", "keys")
"""Lanes that are stuck if they do not move; long work may take long."""


async def check_ready(services: Services) -> None:
    """Raise a 503 problem that says what does not answer."""
    loop, lanes = asyncio.get_running_loop(), services.lanes
    try:
        async with asyncio.timeout(PATIENCE_S):
            revision = await loop.run_in_executor(lanes["probe"], services.database.revision)
    except (SQLAlchemyError, OSError, TimeoutError, LaneFull):
        raise _unready("the store does not answer") from None
    if revision != migrate.head():
        raise _unready(f"the store is at revision {revision}, this release needs {migrate.head()}")
    probes: dict[str, Future[None]] = {name: lanes[name].probe() for name in WATCHED}
    waited = [asyncio.wrap_future(probe) for probe in probes.values()]
    await asyncio.wait(waited, timeout=PATIENCE_S)
    stuck = [name for name, probe in probes.items() if not probe.done()]
    for probe in probes.values():
        probe.cancel()
    if stuck:
        raise _unready(f"no request gets through the {' and '.join(stuck)} lane")


def _unready(detail: str) -> Problem:
    return Problem(503, detail, headers={"Retry-After": "1"})
