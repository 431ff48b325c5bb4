"""The service on an empty SQLite file and on an empty Postgres database."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import create_engine

pytest.importorskip("litestar", reason="the service is an extra")

from litestar.testing import TestClient

from api.app import Application, create_app
from api.settings import Settings
from tests.api.postgres import Cluster, cluster

HOST = "planner.local"
DATABASES = ("sqlite", "postgres")


@pytest.fixture(scope="session")
def postgres_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A Postgres server of this test session (of this worker, under xdist)."""
    with cluster(tmp_path_factory.mktemp("postgres")) as found:
        yield found


@pytest.fixture(params=DATABASES)
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The address of an empty database, SQLite then Postgres."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path / 'planner.db'}"
        return
    servers: Cluster = request.getfixturevalue("postgres_cluster")
    name = f"t{uuid.uuid4().hex}"
    admin = create_engine(servers.url("postgres"), isolation_level="AUTOCOMMIT")
    with admin.connect() as connection:
        connection.exec_driver_sql(f"CREATE DATABASE {name}")
    yield servers.url(name)
    with admin.connect() as connection:
        connection.exec_driver_sql(f"DROP DATABASE {name} WITH (FORCE)")
    admin.dispose()


def make_settings(url: str, **changes: Any) -> Settings:
    """Settings of a test: nothing of the machine's environment counts."""
    values = {"database_url": url, "auto_migrate": True, "allowed_hosts": [HOST],
              "log_level": "error", **changes}  # fmt: skip
    return Settings(_env_file=None, **values)


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [n for n in os.environ if n.startswith("PLANNER_")]:
        if not name.startswith("PLANNER_TEST_"):
            monkeypatch.delenv(name)


@pytest.fixture
def settings(database_url: str) -> Settings:
    return make_settings(database_url)


@pytest.fixture
def app(settings: Settings) -> Application:
    return create_app(settings)


@pytest.fixture
def client(app: Application) -> Iterator[TestClient[Application]]:
    with TestClient(app, base_url=f"http://{HOST}", raise_server_exceptions=False) as found:
        yield found


QUESTION: dict[str, Any] = {
    "model": "meta-llama/Llama-3.1-70B-Instruct", "gpu": "h100-sxm5", "tp": 4,
    "batch": [1, 64], "context": [8192], "name": "four H100", "tags": ["chat", "prod"],
}  # fmt: skip


@pytest.fixture
def question() -> dict[str, Any]:
    """A scenario that every edition of the catalogues can answer."""
    return {**QUESTION}
