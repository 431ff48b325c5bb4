"""The store in trouble: full, read-only, stopped, started again, frozen, out of connections."""

from __future__ import annotations

import os
import resource
import signal
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx
import pytest
from sqlalchemy import create_engine, event

from tests.api.conftest import Client
from tests.api.load import clients, get, post, processes_of
from tests.api.postgres import Cluster, cluster
from tests.api.record import record
from tests.api.server import Server, serving
from tests.api.test_errors import check

QUICKLY = {
    "PLANNER_AUTO_MIGRATE": "true",
    "PLANNER_LOG_LEVEL": "error",
    "PLANNER_STATEMENT_TIMEOUT_MS": "1500",
    "PLANNER_LOCK_TIMEOUT_MS": "1000",
}


def test_a_store_that_only_reads_answers_reads(client: Client, question: dict[str, Any]) -> None:
    path = client.post("/v1/scenarios", json=question).headers["location"]
    engine = client.app.state.services.database.engine
    engine.dispose()

    @event.listens_for(engine, "connect")
    def _read_only(connection: Any, _record: Any) -> None:
        if engine.dialect.name == "sqlite":
            connection.execute("PRAGMA query_only=ON")
        else:
            connection.execute("SET default_transaction_read_only = on")
            connection.commit()

    refused = client.post("/v1/scenarios", json=question)
    check(refused, 503)
    assert refused.headers["retry-after"] == "1"
    assert client.get(path).status_code == 200
    assert client.post("/v1/plans", json=question).status_code == 200
    event.remove(engine, "connect", _read_only)
    engine.dispose()
    assert client.post("/v1/scenarios", json=question).status_code == 201


def limit_files(server: Server, size: int) -> None:
    """Let no file of a service grow beyond `size`, which its writes see as a device that is full"""
    for pid in processes_of(server):
        with suppress(ProcessLookupError):
            resource.prlimit(pid, resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))


@pytest.mark.reliability
@pytest.mark.slow
@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
def test_a_full_disk_is_503_and_loses_nothing(
    database_url: str, tmp_path: Path, question: dict[str, Any]
) -> None:
    with serving(database_url, tmp_path / "log", environment=QUICKLY) as server:
        post_one = f"{server.base}/v1/scenarios"
        first = httpx.post(post_one, json=question, timeout=30)
        assert first.status_code == 201
        limit_files(server, 4096)
        statuses = {httpx.post(post_one, json=question, timeout=30).status_code for _ in range(20)}
        assert statuses == {503}
        assert httpx.post(f"{server.base}/v1/plans", json=question, timeout=30).status_code == 200
        assert httpx.get(f"{server.base}/health/live", timeout=30).status_code == 200
        limit_files(server, resource.RLIM_INFINITY)
        assert httpx.post(post_one, json=question, timeout=30).status_code == 201
        items = httpx.get(post_one, timeout=30).json()["items"]
        assert first.json()["id"] in {item["id"] for item in items}
        assert len(items) == 2
    record("disk full", database_url, refused_with_503=20, lost=0)


@pytest.fixture(scope="module")
def own_cluster() -> Iterator[Cluster]:
    """A Postgres that this module may stop and freeze."""
    with cluster() as opened:
        if opened.own is None:
            pytest.skip("the tests may not stop the Postgres of PLANNER_TEST_POSTGRES_URL")
        engine = create_engine(opened.url("postgres"), isolation_level="AUTOCOMMIT")
        with engine.connect() as connection:
            connection.exec_driver_sql("CREATE DATABASE faults")
        engine.dispose()
        yield opened


@pytest.fixture
def on_postgres(own_cluster: Cluster, tmp_path: Path) -> Iterator[Server]:
    url = own_cluster.url("faults")
    with serving(url, tmp_path / "log", environment=QUICKLY) as server:
        yield server


def until(condition: Any, seconds: float) -> float:
    """Wait until a condition holds; return how long that took [s]."""
    began = time.monotonic()
    while not condition():
        assert time.monotonic() - began < seconds
        time.sleep(0.05)
    return time.monotonic() - began


def status(server: Server, path: str) -> int:
    return httpx.get(f"{server.base}{path}", timeout=30).status_code


@pytest.mark.reliability
@pytest.mark.slow
def test_a_postgres_that_is_stopped_and_started(
    on_postgres: Server, own_cluster: Cluster, question: dict[str, Any]
) -> None:
    server = on_postgres
    made = httpx.post(f"{server.base}/v1/scenarios", json=question, timeout=30)
    path = made.headers["location"]
    own_cluster.own.stop()
    try:
        unready_s = until(lambda: status(server, "/health/ready") == 503, 5)
        assert status(server, "/health/live") == 200
        assert status(server, path) == 503
        plan = httpx.post(f"{server.base}/v1/plans", json=question, timeout=30)
        assert plan.status_code == 200
    finally:
        own_cluster.own.start()
    ready_s = until(lambda: status(server, "/health/ready") == 200, 30)
    assert status(server, path) == 200
    record(
        "Postgres stopped and started",
        "postgresql",
        unready_after_s=round(unready_s, 2),
        ready_after_s=round(ready_s, 2),
    )


def postgres_processes(own: Any) -> list[int]:
    main = own.get_pid()
    children = Path(f"/proc/{main}/task/{main}/children").read_text().split()
    return [main, *map(int, children)]


@pytest.mark.reliability
@pytest.mark.slow
def test_a_frozen_postgres_stops_no_plan(
    on_postgres: Server, own_cluster: Cluster, question: dict[str, Any]
) -> None:
    """Nothing times out at the other end: the service itself has to give up."""
    server = on_postgres
    path = httpx.post(f"{server.base}/v1/scenarios", json=question, timeout=30).headers["location"]
    frozen = postgres_processes(own_cluster.own)
    for pid in frozen:
        os.kill(pid, signal.SIGSTOP)
    try:
        with clients(server.base, [get(path)] * 24):
            unready_s = until(lambda: status(server, "/health/ready") == 503, 10)
            plans = [
                httpx.post(f"{server.base}/v1/plans", json={**question, "batch": [n]}, timeout=30)
                for n in range(1, 30)
            ]
            assert {plan.status_code for plan in plans} == {200}
            assert status(server, "/health/live") == 200
            for pid in frozen:
                os.kill(pid, signal.SIGCONT)
    finally:
        for pid in frozen:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)
    ready_s = until(lambda: status(server, "/health/ready") == 200, 30)
    assert status(server, path) == 200
    record(
        "Postgres frozen",
        "postgresql",
        unready_after_s=round(unready_s, 2),
        ready_after_s=round(ready_s, 2),
    )


@pytest.mark.reliability
@pytest.mark.slow
def test_a_storm_of_clients_is_answered_or_told_to_wait(
    database_url: str, tmp_path: Path, question: dict[str, Any]
) -> None:
    with serving(database_url, tmp_path / "log", environment=QUICKLY) as server:
        sends = [get("/v1/scenarios"), post("/v1/scenarios", question), post("/v1/plans", question)]
        with clients(server.base, sends * 40) as seen:
            time.sleep(10)
        assert set(seen.statuses) <= {200, 201, 503}
        assert seen.failures == 0
        assert status(server, "/health/ready") == 200
    record("storm of 120 clients", database_url, **{str(k): n for k, n in seen.statuses.items()})
