"""What survives a kill, a stop, and the loss of a connection."""

from __future__ import annotations

import contextlib
import random
import sqlite3
import threading
import time
from pathlib import Path
from typing import Any

import httpx
import pytest
from sqlalchemy import create_engine, text

from tests.api.postgres import Cluster
from tests.api.record import record
from tests.api.server import Server, serving

AUTO = {"PLANNER_AUTO_MIGRATE": "true", "PLANNER_LOG_LEVEL": "warning"}


def write_until_killed(server: Server, question: dict[str, Any], seconds: float) -> list[str]:
    """Four writers until the service is gone; the ids it acknowledged."""
    acknowledged: list[str] = []

    def work(writer: int) -> None:
        with httpx.Client(base_url=server.base, timeout=10) as client:
            for n in range(100_000):
                try:
                    response = client.post(
                        "/v1/scenarios", json={**question, "name": f"{writer}.{n}"}
                    )
                except httpx.TransportError:
                    return
                assert response.status_code == 201
                acknowledged.append(response.json()["id"])

    writers = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for writer in writers:
        writer.start()
    time.sleep(seconds)
    server.kill()
    for writer in writers:
        writer.join()
    return acknowledged


def stored(url: str) -> tuple[set[str], set[str]]:
    """Ids of scenarios, and of those that have a revision with question and plan."""
    engine = create_engine(url)
    with engine.connect() as connection:
        scenarios = {row[0] for row in connection.execute(text("SELECT id FROM scenarios"))}
        whole = {
            row[0]
            for row in connection.execute(
                text("SELECT scenario_id FROM scenario_revisions WHERE plan LIKE '{%}'")
            )
        }
    engine.dispose()
    return scenarios, whole


@pytest.mark.reliability
@pytest.mark.parametrize("rounds", [2, pytest.param(20, marks=pytest.mark.slow)])
def test_no_acknowledged_write_is_lost(
    database_url: str, tmp_path: Path, question: dict[str, Any], rounds: int
) -> None:
    rng = random.Random(rounds)  # noqa: S311 - a fixed sequence
    acknowledged: set[str] = set()
    for _ in range(rounds):
        server = Server(database_url, tmp_path / "log", environment=AUTO).wait()
        acknowledged |= set(write_until_killed(server, question, rng.uniform(0.3, 1.5)))
        scenarios, whole = stored(database_url)
        assert acknowledged <= scenarios
        assert scenarios == whole
        if database_url.startswith("sqlite"):
            with contextlib.closing(sqlite3.connect(tmp_path / "planner.db")) as connection:
                assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    assert len(acknowledged) > 10 * rounds
    record("kills", database_url, kills=rounds, acknowledged_writes=len(acknowledged), lost=0)


def test_a_retry_after_a_kill_answers_the_same(
    database_url: str, tmp_path: Path, question: dict[str, Any]
) -> None:
    key = {"Idempotency-Key": "retry"}
    server = Server(database_url, tmp_path / "log", environment=AUTO).wait()
    first = httpx.post(f"{server.base}/v1/scenarios", json=question, headers=key)
    server.kill()
    with serving(database_url, tmp_path / "log", environment=AUTO) as again:
        second = httpx.post(f"{again.base}/v1/scenarios", json=question, headers=key)
        assert second.headers["idempotency-replayed"] == "true"
        assert second.json() == first.json()
        assert len(httpx.get(f"{again.base}/v1/scenarios").json()["items"]) == 1


def test_a_stop_lets_the_request_in_flight_end(tmp_path: Path, question: dict[str, Any]) -> None:
    url = f"sqlite:///{tmp_path / 'planner.db'}"
    sweep = {
        "scenario": question,
        "tp": [1, 2, 4, 8],
        "weights": ["bf16", "fp8"],
        "batch": list(range(1, 2049)),
        "context": [1024, 2048, 4096, 8192, 16384, 32768],
    }
    server = Server(url, tmp_path / "log", environment=AUTO).wait()
    answers: list[int] = []

    client = httpx.Client(base_url=server.base, timeout=60)
    client.get("/health/live")

    def ask() -> None:
        response = client.post("/v1/sweeps", json=sweep)
        answers.append(response.status_code)
        assert response.json()["rows"] == 4 * 2 * 2048 * 6

    asking = threading.Thread(target=ask)
    asking.start()
    time.sleep(0.25)
    began = time.monotonic()
    assert server.stop() == 0
    assert time.monotonic() - began < 15
    asking.join()
    client.close()
    assert answers == [200]


def test_dropped_connections_are_made_anew(
    postgres_cluster: Cluster, tmp_path: Path, question: dict[str, Any]
) -> None:
    admin = create_engine(postgres_cluster.url("postgres"), isolation_level="AUTOCOMMIT")
    with admin.connect() as connection:
        connection.exec_driver_sql("CREATE DATABASE dropped")
        url = postgres_cluster.url("dropped")
        with serving(url, tmp_path / "log", environment=AUTO) as server:
            path = httpx.post(f"{server.base}/v1/scenarios", json=question).headers["location"]
            kill = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname='dropped'"
            for _ in range(4):
                connection.exec_driver_sql(kill)
                assert httpx.get(f"{server.base}{path}").status_code == 200
            connection.exec_driver_sql("ALTER DATABASE dropped ALLOW_CONNECTIONS false")
            connection.exec_driver_sql(kill)
            began = time.monotonic()
            assert httpx.get(f"{server.base}/health/ready", timeout=10).status_code == 503
            assert time.monotonic() - began < 5
            assert httpx.get(f"{server.base}{path}").status_code == 503
            assert httpx.get(f"{server.base}/health/live").status_code == 200
            connection.exec_driver_sql("ALTER DATABASE dropped ALLOW_CONNECTIONS true")
            assert httpx.get(f"{server.base}/health/ready").status_code == 200
            assert httpx.get(f"{server.base}{path}").status_code == 200
        connection.exec_driver_sql("DROP DATABASE dropped WITH (FORCE)")
    admin.dispose()


def test_beyond_loopback_a_key_is_needed(tmp_path: Path, question: dict[str, Any]) -> None:
    everywhere = {"PLANNER_HOST": "0.0.0.0"}  # noqa: S104
    url = f"sqlite:///{tmp_path / 'planner.db'}"
    with serving(url, tmp_path / "log", environment=everywhere | AUTO) as server:
        base = server.base
        assert httpx.get(f"{base}/v1/scenarios").status_code == 401
        assert httpx.post(f"{base}/v1/plans", json=question).status_code == 401
        assert httpx.get(f"{base}/health/live").status_code == 200
