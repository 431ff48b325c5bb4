"""Four times as much slow work as there are places, and plans go on: the starvation script."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.api.conftest import RAN, RESULTS
from tests.api.load import Seen, clients, get, p99, post, times_ms
from tests.api.record import record
from tests.api.server import Server, serving
from tests.api.test_lanes import locked

PLACES = 2
TIMES = 4
ENVIRONMENT = {
    "PLANNER_AUTO_MIGRATE": "true",
    "PLANNER_LOG_LEVEL": "warning",
    "PLANNER_LANE_STORE": str(PLACES),
    "PLANNER_LANE_LONG": str(PLACES),
    "PLANNER_BUSY_TIMEOUT_MS": "60000",
    "PLANNER_LOCK_TIMEOUT_MS": "60000",
    "PLANNER_STATEMENT_TIMEOUT_MS": "60000",
}

ROWS = {"batch": list(range(1, 401)), "context": list(range(1, 251))}
"""Of a sweep of 100,000 rows."""


@pytest.mark.reliability
@pytest.mark.slow
def test_slow_work_leaves_plans_quick(
    database_url: str, tmp_path: Path, question: dict[str, Any]
) -> None:
    """N requests on a locked store, N refits and N sweeps, N four times the places of their lane.

    Each plan is another question, so that none is answered from memory.
    """
    sweep = {"scenario": question, **ROWS}
    number = iter(range(2, 10**9))

    def plan(client: Any) -> Any:
        return client.post("/v1/plans", json={**question, "batch": [1, next(number)]})

    with serving(database_url, tmp_path / "log", environment=ENVIRONMENT) as server:
        for _ in range(50):
            times_ms(server.base, plan, 0.05)
        idle = p99(times_ms(server.base, plan, 5))
        many = TIMES * PLACES
        slow = [
            *[post("/v1/scenarios", question)] * (many // 2),
            *[get("/v1/scenarios", text="x")] * (many // 2),
            *[post("/v1/measurements", RESULTS, **RAN)] * many,
            *[post("/v1/sweeps", sweep)] * many,
        ]
        plans = Seen()
        with clients(server.base, slow) as seen, locked(database_url):
            time.sleep(1)
            busy = p99(times_ms(server.base, plan, 15, plans))
    record("starvation", database_url, **beside(idle, busy), slow_clients=len(slow))
    assert set(plans.statuses) == {200}
    assert set(seen.statuses) <= {200, 201, 503}
    assert busy < 10 * idle


def beside(idle_ms: float, busy_ms: float) -> dict[str, float]:
    """Return what is recorded of a p99 on an idle and on a busy service."""
    return {
        "idle_p99_ms": round(idle_ms, 2),
        "busy_p99_ms": round(busy_ms, 2),
        "ratio": round(busy_ms / idle_ms, 2),
    }


SWEEPER = """
import json, sys, httpx
base, body = sys.argv[1], json.loads(sys.argv[2])
for number in range(10**9):
    body["scenario"]["name"] = str(number)
    print(httpx.post(f"{base}/v1/sweeps", json=body, timeout=60).status_code, flush=True)
"""


@contextmanager
def sweeping(server: Server, sweep: dict[str, Any], out: Path) -> Iterator[None]:
    """Two clients that sweep without end, in processes of their own.

    As threads beside the one that measures they would hold it up themselves: each answer is 20 MB.
    """
    command = [sys.executable, "-c", SWEEPER, server.base, json.dumps(sweep)]
    with out.open("ab") as file:
        sweepers = [subprocess.Popen(command, stdout=file) for _ in range(2)]
    try:
        yield
    finally:
        for sweeper in sweepers:
            sweeper.kill()
            sweeper.wait()


@pytest.mark.reliability
@pytest.mark.slow
def test_sweeps_leave_the_probe_quick(
    database_url: str, tmp_path: Path, question: dict[str, Any]
) -> None:
    """They work in processes that give way to the service."""
    sweep, live, probes = {"scenario": question, **ROWS}, get("/health/live"), Seen()
    out = tmp_path / "statuses"
    with serving(database_url, tmp_path / "log", environment=ENVIRONMENT) as server:
        idle = p99(times_ms(server.base, live, 10))
        with sweeping(server, sweep, out):
            time.sleep(2)
            busy = p99(times_ms(server.base, live, 20, probes))
    sweeps = len(out.read_text().split())
    record("live beside sweeps", database_url, **beside(idle, busy), sweeps=sweeps)
    assert set(probes.statuses) == {200}
    assert set(out.read_text().split()) == {"200"}
    assert busy < 10 * idle
