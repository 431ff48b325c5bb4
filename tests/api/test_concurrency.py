"""Writers side by side: two server processes on one store, as behind a proxy."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest

from tests.api.conftest import CONFIG
from tests.api.server import Server

READERS_AND_WRITERS = 8


@pytest.fixture(scope="module")
def pair(shared_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Server]]:
    """Two services, started at once on an empty database."""
    directory = tmp_path_factory.mktemp("pair")
    auto = {"PLANNER_AUTO_MIGRATE": "true", "PLANNER_LOG_LEVEL": "warning"}
    servers = [Server(shared_url, directory / f"log{n}", environment=auto) for n in range(2)]
    try:
        yield [server.wait() for server in servers]
    finally:
        for server in servers:
            assert server.stop() == 0
            assert "Traceback" not in server.text()


def spread(pair: list[Server], count: int) -> list[httpx.Client]:
    return [httpx.Client(base_url=pair[n % 2].base, timeout=30) for n in range(count)]


def close(clients: list[httpx.Client]) -> None:
    for client in clients:
        client.close()


@pytest.mark.parametrize("seconds", [3, pytest.param(30, marks=pytest.mark.slow)])
def test_writers_meet_only_201(pair: list[Server], question: dict[str, Any], seconds: int) -> None:
    clients = spread(pair, READERS_AND_WRITERS)
    end = time.monotonic() + seconds
    seen: Counter[int] = Counter()

    def work(client: httpx.Client) -> None:
        while time.monotonic() < end:
            seen[client.post("/v1/scenarios", json=question).status_code] += 1

    with ThreadPoolExecutor(len(clients)) as pool:
        list(pool.map(work, clients))
    close(clients)
    assert set(seen) == {201}
    assert seen[201] > 10 * seconds


def test_no_update_is_lost(pair: list[Server], question: dict[str, Any]) -> None:
    clients = spread(pair, READERS_AND_WRITERS)
    path = clients[0].post("/v1/scenarios", json={**question, "notes": "1"}).headers["location"]
    seen: Counter[int] = Counter()

    def work(client: httpx.Client) -> None:
        for _ in range(10):
            read = client.get(path)
            raised = {**question, "notes": str(int(read.json()["notes"]) + 1)}
            response = client.put(path, json=raised, headers={"If-Match": read.headers["etag"]})
            seen[response.status_code] += 1

    with ThreadPoolExecutor(len(clients)) as pool:
        list(pool.map(work, clients))
    final = clients[0].get(path).json()
    items = clients[0].get(f"{path}/revisions").json()["items"]
    close(clients)
    assert set(seen) <= {200, 412}
    assert seen[200] >= 10
    assert int(final["notes"]) == 1 + seen[200] == final["revision"] == len(items)


def test_one_of_many_with_the_same_tag_wins(pair: list[Server], question: dict[str, Any]) -> None:
    clients = spread(pair, 24)
    path = clients[0].post("/v1/scenarios", json=question).headers["location"]
    start = threading.Barrier(24)

    def work(client: httpx.Client) -> int:
        start.wait()
        return client.put(path, json=question, headers={"If-Match": '"1"'}).status_code

    with ThreadPoolExecutor(24) as pool:
        seen = Counter(pool.map(work, clients))
    close(clients)
    assert seen == {200: 1, 412: 23}


def test_one_key_makes_one_scenario(pair: list[Server], question: dict[str, Any]) -> None:
    clients = spread(pair, 8)
    start = threading.Barrier(8)
    body = {**question, "tags": ["once"]}

    def work(client: httpx.Client) -> tuple[int, str]:
        start.wait()
        response = client.post("/v1/scenarios", json=body, headers={"Idempotency-Key": "one"})
        return response.status_code, response.json()["id"]

    with ThreadPoolExecutor(8) as pool:
        seen = set(pool.map(work, clients))
    stored = clients[0].get("/v1/scenarios?tag=once").json()["items"]
    close(clients)
    assert seen == {(201, stored[0]["id"])}
    assert len(stored) == 1


def test_an_own_object_is_stored_once(pair: list[Server]) -> None:
    clients = spread(pair, 8)
    start = threading.Barrier(8)

    def work(item: tuple[int, httpx.Client]) -> int:
        start.wait()
        config = {**CONFIG, "num_hidden_layers": 16 + item[0] % 2}
        return item[1].post("/v1/models", json={"id": "race", "config": config}).status_code

    with ThreadPoolExecutor(8) as pool:
        seen = Counter(pool.map(work, enumerate(clients)))
    close(clients)
    assert set(seen) <= {201, 409}
    assert seen[409] >= 4


def test_what_one_process_writes_the_other_reads(
    pair: list[Server], question: dict[str, Any]
) -> None:
    made = httpx.post(f"{pair[0].base}/v1/scenarios", json=question)
    read = httpx.get(f"{pair[1].base}{made.headers['location']}")
    assert read.json() == made.json()
    plans = [
        httpx.get(f"{server.base}{made.headers['location']}/plan").json()["plan"] for server in pair
    ]
    assert plans[0] == plans[1]
