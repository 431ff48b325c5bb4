"""The service as ratios within one run: plans and reads beside a route that does nothing.

    PYTHONPATH=. python bench/service.py [--databases sqlite,postgres]

Started on an SQLite file and on a Postgres database of its own, with a route added that reads a
body and answers it, behind the same gate. A question that was asked before is answered from memory;
one that never was costs its plan, whose own time the most that its rate can be follows from.
Nothing here asserts a time; machines differ, the ratios less.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import httpx
from litestar import Request, Response, post

from api.app import Application, create_app
from planner.deployment import deployment_of
from planner.plans.planning import plan_json
from planner.scenario import Scenario
from tests.api.conftest import DATABASES
from tests.api.postgres import cluster

PORT = 8497
BASE = f"http://127.0.0.1:{PORT}"
SECONDS = float(os.environ.get("BENCH_SECONDS", "4"))
ROUNDS = 5
QUESTION: dict[str, Any] = {
    "model": "meta-llama/Llama-3.1-70B-Instruct",
    "gpu": "h100-sxm5",
    "tp": 4,
    "batch": [1, 64],
    "context": [8192],
}
SWEEP = {"scenario": QUESTION, "batch": list(range(1, 401)), "context": list(range(1, 251))}


@post("/noop", status_code=200, opt={"any_media": True, "public": True}, operation_id="noop")
async def noop(request: Request[Any, Any, Any]) -> Response[bytes]:
    """Answer a body with itself."""
    return Response(await request.body(), media_type="application/json")


def app() -> Application:
    """The service with the route that does nothing."""
    served = create_app()
    served.register(noop)
    return served


@contextlib.contextmanager
def database(name: str) -> Iterator[str]:
    """The address of an empty database of its own."""
    if name == "postgres":
        with cluster() as servers:
            yield servers.url("postgres")
    else:
        with tempfile.TemporaryDirectory() as directory:
            yield f"sqlite:///{Path(directory) / 'planner.db'}"


@contextlib.contextmanager
def serving(url: str) -> Iterator[None]:
    environment = {
        **os.environ,
        "PLANNER_DATABASE_URL": url,
        "PLANNER_AUTO_MIGRATE": "true",
        "PLANNER_LOG_LEVEL": "warning",
    }
    arguments = ["--interface", "asgi", "--factory", "--port", str(PORT), "bench.service:app"]
    server = subprocess.Popen([sys.executable, "-m", "granian", *arguments], env=environment)
    try:
        for _ in range(600):
            with contextlib.suppress(httpx.TransportError):
                if httpx.get(f"{BASE}/health/ready", timeout=5).status_code == 200:
                    break
            time.sleep(0.1)
        yield
    finally:
        server.terminate()
        server.wait(30)


def rate(clients: int, requests: Sequence[bytes]) -> float:
    """Requests per second of so many clients, each with a connection kept alive.

    They send `requests` in turn from bare sockets: a client that takes longer than the service
    would hide what is compared.
    """
    seconds = SECONDS / ROUNDS
    counts, end = [0] * clients, time.perf_counter() + seconds

    def work(number: int) -> None:
        with socket.create_connection(("127.0.0.1", PORT)) as connection:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            for request in itertools.cycle(requests[number:] + requests[:number]):
                connection.sendall(request)
                read_answer(connection)
                counts[number] += 1
                if time.perf_counter() > end:
                    return

    threads = [threading.Thread(target=work, args=(number,)) for number in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(counts) / seconds


def read_answer(connection: socket.socket) -> None:
    """Read one answer that is a 200 with a Content-Length."""
    received = connection.recv(65536)
    while (head_end := received.find(b"\r\n\r\n")) < 0:
        received += connection.recv(65536)
    head = received[:head_end].lower()
    if not head.startswith(b"http/1.1 200"):
        raise RuntimeError(received[:500].decode())
    length = int(head.partition(b"content-length:")[2].partition(b"\r\n")[0])
    missing = head_end + 4 + length - len(received)
    while missing > 0:
        missing -= len(connection.recv(65536))


def request(method: str, path: str, body: bytes = b"") -> bytes:
    """A request as bytes."""
    fields = f"Host: 127.0.0.1:{PORT}\r\nAccept: */*\r\n"
    if body:
        fields += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n"
    return f"{method} {path} HTTP/1.1\r\n{fields}\r\n".encode() + body


def p99_ms(send: Callable[[httpx.Client], httpx.Response], busy: threading.Event | None) -> float:
    """The 99th percentile of the time of a request, one after the other, while `busy` is set."""
    times: list[float] = []
    end = time.perf_counter() + SECONDS
    with httpx.Client(base_url=BASE, timeout=60) as client:
        while (busy.is_set() if busy else time.perf_counter() < end) or len(times) < 20:
            began = time.perf_counter()
            send(client)
            times.append((time.perf_counter() - began) * 1e3)
            time.sleep(0.005)
    return statistics.quantiles(times, n=100)[98]


def fresh() -> Callable[[], Sequence[bytes]]:
    """Questions about one deployment that were never sent before, a few thousand a round."""
    rounds = itertools.count(1)

    def make() -> Sequence[bytes]:
        first = next(rounds)
        questions = ({**QUESTION, "batch": [first, n]} for n in range(5000, 9000))
        return [request("POST", "/v1/plans", json.dumps(each).encode()) for each in questions]

    return make


def plan_s() -> float:
    """Processor time of a plan that no one asked for before, of a deployment at hand [s]."""
    first = Scenario.model_validate(QUESTION)
    deployment, times = deployment_of(first), []
    for n in range(1, 1001):
        scenario = first.model_copy(update={"batch": [n, 5000]})
        began = time.process_time()
        plan_json(scenario, deployment)
        times.append(time.process_time() - began)
    return statistics.median(times)


NOOP = "POST /noop"
NEW = "POST /v1/plans, a question never asked before (another batch each time)"


def ratios(where: str) -> None:
    """Plans of one question, plans of questions that differ each time, and reads."""
    stored = httpx.post(f"{BASE}/v1/scenarios", json=QUESTION).headers["location"]
    body = json.dumps(QUESTION).encode()
    kinds: dict[str, Callable[[], Sequence[bytes]]] = {
        NOOP: lambda: [request("POST", "/noop", body)],
        "POST /v1/plans, a question asked before": lambda: [request("POST", "/v1/plans", body)],
        NEW: fresh(),
        "GET /v1/scenarios/{id}": lambda: [request("GET", stored)],
    }
    for clients in (1, 8, 32):
        # In turns, and the median of them: what else the machine does hits all alike.
        rounds = [
            {name: rate(clients, requests()) for name, requests in kinds.items()}
            for _ in range(ROUNDS)
        ]
        idle, own_s = statistics.median(each[NOOP] for each in rounds), plan_s()
        print(f"{clients} clients on {where}, requests/s over those of a no-op ({idle:.0f}):")
        for name in kinds:
            shares = [each[name] / each[NOOP] for each in rounds]
            print(f"  {name}: {statistics.median(shares):.2f}")
        most = 1 / (1 + own_s * idle)
        print(
            f"  the most a question never asked before can have: {most:.2f} "
            f"(a no-op takes {1e6 / idle:.0f} µs, the plan's own arithmetic {own_s * 1e6:.0f} µs)"
        )


def beside_sweeps() -> None:
    sends: dict[str, Callable[[httpx.Client], httpx.Response]] = {
        "GET /health/live": lambda client: client.get("/health/live"),
        "POST /v1/plans": lambda client: client.post("/v1/plans", json=QUESTION),
    }
    for name, send in sends.items():
        idle, busy = p99_ms(send, None), threading.Event()
        busy.set()

        def sweep() -> None:
            httpx.post(f"{BASE}/v1/sweeps", json=SWEEP, timeout=300).raise_for_status()

        def all_sweeps(flag: threading.Event = busy) -> None:
            threads = [threading.Thread(target=sweep) for _ in range(2)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            flag.clear()

        sweeps = threading.Thread(target=all_sweeps)
        sweeps.start()
        beside = p99_ms(send, busy)
        sweeps.join()
        print(
            f"p99 of {name} beside two sweeps of 100,000 rows over that of an idle service: "
            f"{beside / idle:.1f} ({idle:.1f} ms idle)"
        )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--databases", default=",".join(DATABASES))
    for name in parser.parse_args().databases.split(","):
        with database(name) as url, serving(url):
            ratios(name)
            if name == DATABASES[0]:  # sweeps read nothing of the store
                beside_sweeps()
