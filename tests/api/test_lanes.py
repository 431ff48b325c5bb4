"""Bounded lanes: what is stuck in one does not stop the others, and a full one says so at once."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from sqlalchemy import create_engine

from api.lanes import Lane, LaneFull, Processes
from api.lanes.processes import WorkEnded
from api.web.problem import Problem, over_limit
from tests.api.conftest import RAN, RESULTS
from tests.api.server import Server, serving

PLACES, WAITING = 2, 2
"""Requests that use the store at once, and that wait for each of these places."""
MOST = PLACES + PLACES * WAITING
ENVIRONMENT = {
    "PLANNER_AUTO_MIGRATE": "true",
    "PLANNER_LANE_STORE": str(PLACES),
    "PLANNER_LANE_WAITING": str(WAITING),
    "PLANNER_BUSY_TIMEOUT_MS": "60000",
    "PLANNER_LOCK_TIMEOUT_MS": "60000",
    "PLANNER_STATEMENT_TIMEOUT_MS": "60000",
}


@pytest.fixture(scope="module")
def narrow(shared_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A service with a narrow store lane, and patience with a locked store."""
    log = tmp_path_factory.mktemp("narrow") / "log"
    with serving(shared_url, log, environment=ENVIRONMENT) as server:
        yield server


@contextmanager
def locked(url: str) -> Iterator[None]:
    """Hold the scenarios of a store: all of them on Postgres, the right to write on SQLite."""
    engine = create_engine(url)
    with engine.connect() as connection:
        if engine.dialect.name == "sqlite":
            connection.exec_driver_sql("BEGIN IMMEDIATE")
        else:
            connection.exec_driver_sql("LOCK TABLE scenarios IN ACCESS EXCLUSIVE MODE")
        yield
        connection.rollback()
    engine.dispose()


def in_lane(server: Server, lane: str) -> int:
    text = httpx.get(f"{server.base}/metrics").text
    line = next(
        x for x in text.splitlines() if x.startswith(f'planner_lane_requests{{lane="{lane}"')
    )
    return int(float(line.split()[-1]))


def until(server: Server, lane: str, inside: int) -> None:
    for _ in range(600):
        if in_lane(server, lane) == inside:
            return
        time.sleep(0.05)
    raise AssertionError(f"{lane}: {in_lane(server, lane)} requests, not {inside}")


def test_a_stuck_store_stops_no_plan(
    narrow: Server, shared_url: str, question: dict[str, Any]
) -> None:
    def write(_: int) -> int:
        return httpx.post(f"{narrow.base}/v1/scenarios", json=question, timeout=90).status_code

    with ThreadPoolExecutor(MOST) as pool:
        with locked(shared_url):
            stuck: list[Future[int]] = [pool.submit(write, n) for n in range(MOST)]
            until(narrow, "store", MOST)
            for _ in range(5):
                assert httpx.post(f"{narrow.base}/v1/plans", json=question).status_code == 200
            refused = httpx.post(f"{narrow.base}/v1/scenarios", json=question)
            ready = httpx.get(f"{narrow.base}/health/ready", timeout=10)
            assert httpx.get(f"{narrow.base}/health/live").status_code == 200
            assert not any(one.done() for one in stuck)
        assert {one.result() for one in stuck} == {201}
    assert refused.status_code == 503
    assert refused.headers["retry-after"] == "1"
    assert refused.json()["type"].endswith(":busy")
    assert (ready.status_code, ready.json()["detail"]) == (
        503,
        "no request gets through the store lane",
    )
    assert httpx.get(f"{narrow.base}/health/ready").status_code == 200


def test_long_work_stops_no_plan(narrow: Server, question: dict[str, Any]) -> None:
    """Sweeps and refits four times as many as there are worker processes, and plans meanwhile."""
    sweep = {"scenario": question, "batch": list(range(1, 201)), "context": list(range(1, 251))}
    counts = {"/v1/sweeps": (sweep, {}), "/v1/measurements": (RESULTS, RAN)}
    seen: Counter[int] = Counter()

    def post(path: str) -> None:
        body, query = counts[path]
        response = httpx.post(narrow.base + path, json=body, params=query, timeout=120)
        seen[response.status_code] += 1

    with ThreadPoolExecutor(16) as pool:
        work = [pool.submit(post, path) for path in counts for _ in range(8)]
        plans = 0
        while not all(one.done() for one in work):
            assert httpx.post(f"{narrow.base}/v1/plans", json=question).status_code == 200
            plans += 1
        for one in work:
            one.result()
    assert set(seen) <= {200, 201, 503}
    assert seen[200] + seen[201] >= 8
    assert plans >= 5


@pytest.mark.parametrize("shared_url", ["postgres"], indirect=True)
def test_statements_and_locks_have_their_time_on_postgres(shared_url: str, tmp_path: Path) -> None:
    short = {**ENVIRONMENT, "PLANNER_LOCK_TIMEOUT_MS": "200"}
    with serving(shared_url, tmp_path / "log", environment=short) as server, locked(shared_url):
        answer = httpx.get(f"{server.base}/v1/scenarios", timeout=30)
        assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")


def test_a_lane_takes_what_it_holds() -> None:
    lane, gate = Lane("narrow", 1, 1), threading.Event()
    first, second = lane.submit(gate.wait), lane.submit(gate.wait)
    with pytest.raises(LaneFull, match="narrow lane is full"):
        lane.submit(gate.wait)
    probe = lane.probe()
    assert not probe.done()
    gate.set()
    assert first.result(10)
    assert second.result(10)
    assert probe.result(10) is None
    assert lane.submit(int).result(10) == 0
    lane.shutdown()
    assert (lane.inside, lane.refused) == (0, 1)


def _refuse() -> None:
    raise over_limit("axes", 3, 2, "PLANNER_MAX")


def _end() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def test_work_apart_returns_raises_or_ends() -> None:
    processes = Processes(1)
    assert processes.run(os.getpid) != os.getpid()
    assert processes.run(divmod, 7, 2) == (3, 1)
    with pytest.raises(Problem, match="axes: 3 asked") as refused:
        processes.run(_refuse)
    assert refused.value.status == 422
    assert refused.value.errors[0].field == "axes"
    with pytest.raises(WorkEnded):
        processes.run(_end)
    assert processes.run(divmod, 7, 2) == (3, 1)
    assert processes.running == set()
