"""The service on an empty SQLite file and on an empty Postgres database."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import create_engine

pytest.importorskip("litestar", reason="the service is an extra")

from litestar.testing import TestClient

from api.app import Application, create_app
from api.openapi.examples import CONFIG as CONFIG
from api.openapi.examples import EXAMPLES
from api.settings import Settings
from api.system.keys import Keys
from tests.api.postgres import Cluster, cluster

HOST = "planner.local"
BASE = f"http://{HOST}"
DATABASES = ("sqlite", "postgres")


@pytest.fixture(scope="session")
def postgres_cluster() -> Iterator[Cluster]:
    """A Postgres server of this test session (of this worker, under xdist)."""
    with cluster() as opened:
        yield opened


@pytest.fixture(params=DATABASES)
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The address of an empty database, SQLite then Postgres."""
    with empty_database(request, tmp_path) as url:
        yield url


@pytest.fixture(params=DATABASES, scope="module")
def shared_url(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    """The same for all tests of a module."""
    with empty_database(request, tmp_path_factory.mktemp("shared")) as url:
        yield url


@contextmanager
def empty_database(request: pytest.FixtureRequest, directory: Path) -> Iterator[str]:
    with another_database(request.param, request, directory) as url:
        yield url


@contextmanager
def another_database(kind: str, request: pytest.FixtureRequest, directory: Path) -> Iterator[str]:
    if kind == "sqlite":
        yield f"sqlite:///{directory / 'planner.db'}"
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
    values = {
        "database_url": url,
        "auto_migrate": True,
        "allowed_hosts": [HOST],
        "log_level": "error",
        "lane_jobs": 0,
        **changes,
    }
    return Settings(_env_file=None, **values)


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [n for n in os.environ if n.startswith("PLANNER_")]:
        if not name.startswith("PLANNER_TEST_"):
            monkeypatch.delenv(name)


Client = TestClient[Application]


@contextmanager
def started(settings: Settings) -> Iterator[Client]:
    """The service in this process."""
    client = TestClient(create_app(settings), base_url=BASE, raise_server_exceptions=False)
    with client as opened:
        yield opened


@pytest.fixture
def settings(database_url: str) -> Settings:
    return make_settings(database_url)


@pytest.fixture
def client(settings: Settings) -> Iterator[Client]:
    """The service on an empty database."""
    with started(settings) as opened:
        yield opened


@pytest.fixture(scope="module")
def shared(shared_url: str) -> Iterator[Client]:
    """The service on a database that the tests of a module share."""
    with started(make_settings(shared_url)) as opened:
        yield opened


@dataclass(frozen=True)
class Keyed:
    """The service with keys required, and the headers of three of them."""

    client: Client
    writer: dict[str, str]
    reader: dict[str, str]
    stranger: dict[str, str]


@pytest.fixture(scope="module")
def keyed(shared_url: str) -> Iterator[Keyed]:
    """Workspace `ours` with a writing and a reading key, workspace `theirs` with a writing one."""
    settings = make_settings(shared_url, auth="required")
    with started(settings) as client:
        keys = Keys(client.app.state.services.database)
        made = [("ours", "write"), ("ours", "read"), ("theirs", "write")]
        headers = [
            {"Authorization": f"Bearer {keys.create(workspace, '', scope)[1]}"}
            for workspace, scope in made
        ]
        yield Keyed(client, *headers)


QUESTION: dict[str, Any] = {
    "model": "meta-llama/Llama-3.1-70B-Instruct",
    "gpu": "h100-sxm5",
    "tp": 4,
    "batch": [1, 64],
    "context": [8192],
    "name": "four H100",
    "tags": ["chat", "prod"],
}


@pytest.fixture
def question() -> dict[str, Any]:
    """A scenario that every edition of the catalogues can answer."""
    return {**QUESTION}


CARD: dict[str, Any] = {"base": "h100-sxm5", "bandwidth_bytes_per_s": 3.0e12, "source": "measured"}
"""An accelerator of one's own."""


RESULTS: dict[str, Any] = EXAMPLES["createMeasurement"]
"""What `vllm bench serve` writes of one run, the figures that are read."""
RAN = {"gpu": "h100-sxm5", "tp": 1}
"""What it does not say of it."""


def make_everything(client: Client, headers: dict[str, str] | None = None) -> dict[str, str]:
    """Store one of each kind of thing; return their ids."""
    send = {"headers": headers or {}}
    measured = client.post("/v1/measurements", json=RESULTS, params=RAN, **send)
    model = client.post("/v1/models", json={"id": "mine", "config": CONFIG}, **send)
    card = client.post("/v1/accelerators", json={"id": "card", "spec": CARD}, **send)
    own = {**QUESTION, "model": "own/mine", "gpu": "own/card", "tp": 1, "name": "own"}
    scenario = client.post("/v1/scenarios", json=own, **send)
    other = client.post("/v1/scenarios", json=QUESTION, **send)
    compared = client.post(
        "/v1/comparisons", json={"scenarios": [scenario.json()["id"], other.json()["id"]]}, **send
    )
    for made in (model, card, scenario, other, compared, measured):
        assert made.status_code == 201, made.text
    return {
        "model_id": model.json()["id"],
        "accelerator_id": card.json()["id"],
        "scenario_id": scenario.json()["id"],
        "comparison_id": compared.json()["id"],
        "measurement_id": measured.json()["measurement"]["id"],
        "engine_id": "vllm",
        "name": QUESTION["name"],
    }
