"""Full load for minutes, clients that are slow or leave, a migration that is killed."""

from __future__ import annotations

import os
import random
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import httpx
import pytest

from api.store import migrate
from tests.api.conftest import make_settings
from tests.api.load import clients, descriptors, get, memory_mb, post
from tests.api.record import record
from tests.api.server import serving
from tests.api.test_store_faults import QUICKLY

SECONDS = float(os.environ.get("PLANNER_TEST_SOAK_S", "20"))
"""Length of the soak; tools/reliability.py asks for ten minutes [s]."""
MORE_MB, MORE_FILES = 60.0, 40
"""What a service may grow by between a third of the soak and its end."""


@pytest.mark.reliability
@pytest.mark.slow
def test_minutes_of_full_load_leave_no_trace(
    database_url: str, tmp_path: Path, question: dict[str, Any]
) -> None:
    """Sixteen clients that plan, sweep, store, read, list, compare and are refused."""
    number = iter(range(1, 10**9))

    def fresh(client: httpx.Client) -> httpx.Response:
        return client.post("/v1/plans", json={**question, "batch": [1, next(number) % 4000 + 1]})

    def stored_and_read(client: httpx.Client) -> httpx.Response:
        made = client.post("/v1/scenarios", json=question)
        if made.status_code != 201:
            return made
        path = made.headers["location"]
        changed = client.patch(path, json={"tp": 8}, headers={"If-Match": made.headers["etag"]})
        read = client.get(path, params={"include": "plan"})
        return read if changed.status_code in {200, 503} else changed

    two = {"scenarios": [question, {**question, "tp": 8}], "save": False}
    sends = [
        *[fresh] * 4,
        *[stored_and_read] * 4,
        post("/v1/plans", question),
        post("/v1/sweeps", {"scenario": question, "batch": list(range(1, 801))}),
        post("/v1/comparisons", two),
        get("/v1/scenarios", sort="-updated", limit=20),
        get("/v1/models"),
        get("/v1/changes", limit=5),
        lambda client: client.post("/v1/plans", content=b"x" * 200_000),
        lambda client: client.get("/v1/scenarios/unknown"),
    ]
    with serving(database_url, tmp_path / "log", environment=QUICKLY) as server:
        with clients(server.base, sends) as seen:
            time.sleep(SECONDS / 3)
            before, files = memory_mb(server), descriptors(server)
            time.sleep(2 * SECONDS / 3)
            after, files_after = memory_mb(server), descriptors(server)
        assert httpx.get(f"{server.base}/health/ready", timeout=30).status_code == 200
        assert "unhandled" not in server.text()
    record(
        "soak",
        database_url,
        seconds=SECONDS,
        requests=sum(seen.statuses.values()),
        failed=seen.failures,
        told_to_wait=seen.statuses[503],
        memory_mb=f"{before:.0f} to {after:.0f}",
        descriptors=f"{files} to {files_after}",
    )
    assert seen.failures == 0
    assert after - before < MORE_MB
    assert files_after - files < MORE_FILES


def hold(port: int, until: threading.Event, rng: random.Random) -> None:
    """Be a bad client: send some of a request, a byte at a time, half-close, or vanish."""
    whole = (
        b"POST /v1/plans HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        b"Content-Length: 5000\r\n\r\n" + b"{" * 4000
    )
    while not until.is_set():
        try:
            with socket.create_connection(("127.0.0.1", port), timeout=5) as connection:
                kind = rng.randrange(3)
                if kind == 0:
                    for byte in whole[: rng.randrange(1, 40)]:
                        connection.sendall(bytes([byte]))
                        until.wait(0.05)
                elif kind == 1:
                    connection.sendall(whole[: rng.randrange(1, len(whole))])
                    connection.shutdown(socket.SHUT_WR)
                    connection.settimeout(1)
                    connection.recv(100)
                else:
                    connection.sendall(whole[: rng.randrange(1, 300)])
        except OSError:
            continue


@pytest.mark.reliability
@pytest.mark.slow
def test_slow_and_half_closed_clients_hold_nobody_up(
    tmp_path: Path, question: dict[str, Any]
) -> None:
    url = f"sqlite:///{tmp_path / 'planner.db'}"
    bounds = {"PLANNER_BODY_TIMEOUT_S": "1", "PLANNER_HEADER_TIMEOUT_S": "1"}
    with serving(url, tmp_path / "log", environment={**QUICKLY, **bounds}) as server:
        until, rng = threading.Event(), random.Random(7)  # noqa: S311 - a fixed sequence
        arguments = (server.port, until, rng)
        bad = [threading.Thread(target=hold, args=arguments) for _ in range(40)]
        files = descriptors(server)
        for thread in bad:
            thread.start()
        with clients(server.base, [post("/v1/plans", question)] * 2) as seen:
            time.sleep(8)
        until.set()
        for thread in bad:
            thread.join()
        time.sleep(4)
        left = descriptors(server)
        assert "unhandled" not in server.text()
    record(
        "40 slow and half-closed clients",
        url,
        good_requests=sum(seen.statuses.values()),
        failed=seen.failures,
        descriptors=f"{files} to {left}",
    )
    assert set(seen.statuses) == {200}
    assert left - files < MORE_FILES


@pytest.mark.reliability
@pytest.mark.slow
def test_a_migration_killed_midway_can_be_repeated(database_url: str) -> None:
    """Twenty kills at moments that differ: each leaves a revision that there is, and the last run
    ends at the newest."""
    settings = make_settings(database_url)
    environment = {
        **{k: v for k, v in os.environ.items() if not k.startswith("PLANNER_")},
        "PLANNER_DATABASE_URL": database_url,
    }
    command = [sys.executable, "-c", "from planner.cli import main; main()", "db", "upgrade"]
    rng, revisions = random.Random(11), set()  # noqa: S311 - a fixed sequence
    migrate.upgrade(settings, "0001")
    for _ in range(20):
        process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL)
        try:
            process.wait(rng.uniform(0.6, 2.0))
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            process.wait()
        at = migrate.current(settings)
        revisions.add(at)
        if at == migrate.head():
            migrate.downgrade(settings, "0001")
    assert revisions <= {"0001", migrate.head()}
    migrate.upgrade(settings)
    assert migrate.differences(settings) == []
    record("migrations killed", database_url, kills=20, half_done=0)
