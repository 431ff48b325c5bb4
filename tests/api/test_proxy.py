"""The deployment of docker-compose.yml without Docker: two services on one Postgres behind nginx.

The proxy's configuration is the one of docker-compose.yml, with this machine's addresses in it.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml
from sqlalchemy import create_engine

from tests.api.postgres import Cluster
from tests.api.record import record
from tests.api.server import Server, free_port

ROOT = Path(__file__).parents[2]
ENVIRONMENT = {"PLANNER_LOG_LEVEL": "warning", "PLANNER_BEHIND_PROXY": "true"}


def configuration(directory: Path, port: int, upstreams: list[tuple[int, bool]]) -> str:
    """The proxy's configuration; each service has a port, and may be marked down.

    `resolve`, with its zone and resolver, needs a newer nginx than Debian's, and Docker's names.
    """
    command = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
    script = command["services"]["proxy"]["command"][2].replace("$$", "$")
    text = re.search(r"<<'CONF'\n(.*?)\nCONF\n", script, re.DOTALL)
    assert text is not None
    servers = "".join(
        f"server 127.0.0.1:{each}{' down' if down else ''} max_fails=2 fail_timeout=5s;\n"
        for each, down in upstreams
    )
    changed = re.sub(r"(?m)^ *(resolver|zone) [^;\n]*;\n", "", text[1])
    changed = re.sub(r"( *server api-\d:8000[^;]*;\n)+", servers, changed)
    changed = changed.replace("listen 8080", f"listen 127.0.0.1:{port}")
    return changed.replace("/tmp/", f"{directory}/").replace("/dev/stderr", f"{directory}/errors")  # noqa: S108 - Debian's own paths


class Proxy:
    """A running nginx in front of services."""

    def __init__(self, directory: Path, upstreams: list[int]) -> None:
        self.directory = directory
        self.port = free_port()
        self.base = f"http://127.0.0.1:{self.port}"
        self.upstreams = upstreams
        self.file = directory / "nginx.conf"
        self.write(down=None)
        self.process = subprocess.Popen(
            ["nginx", "-c", str(self.file), "-g", "daemon off;"], stderr=subprocess.DEVNULL
        )

    def write(self, down: int | None) -> None:
        upstreams = [(port, port == down) for port in self.upstreams]
        self.file.write_text(configuration(self.directory, self.port, upstreams))

    def reload(self, down: int | None) -> None:
        """Take a service out, or all in; requests under way end where they are."""
        self.write(down)
        subprocess.run(["nginx", "-c", str(self.file), "-s", "reload"], check=True, timeout=10)
        time.sleep(1)

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait(15)


@pytest.fixture
def deployed(
    postgres_cluster: Cluster, tmp_path: Path
) -> Iterator[tuple[Proxy, list[Server], str]]:
    if shutil.which("nginx") is None:
        pytest.skip("nginx is not installed (Debian: apt-get install nginx)")
    admin = create_engine(postgres_cluster.url("postgres"), isolation_level="AUTOCOMMIT")
    with admin.connect() as connection:
        connection.exec_driver_sql("CREATE DATABASE behind_proxy")
    url = postgres_cluster.url("behind_proxy")
    first = Server(url, tmp_path / "one", environment={**ENVIRONMENT, "PLANNER_AUTO_MIGRATE": "1"})
    servers = [first.wait(), Server(url, tmp_path / "two", environment=ENVIRONMENT).wait()]
    proxy = Proxy(tmp_path, [server.port for server in servers])
    try:
        yield proxy, servers, url
    finally:
        proxy.stop()
        for server in servers:
            server.stop()
        with admin.connect() as connection:
            connection.exec_driver_sql("DROP DATABASE behind_proxy WITH (FORCE)")
        admin.dispose()


@pytest.mark.reliability
@pytest.mark.slow
def test_a_rolling_restart_fails_no_request(
    deployed: tuple[Proxy, list[Server], str], tmp_path: Path, question: dict[str, Any]
) -> None:
    proxy, servers, url = deployed
    statuses: Counter[str] = Counter()
    names: list[str] = []
    done = threading.Event()

    def work(number: int) -> None:
        count = 0
        while not done.is_set():
            count += 1
            name = f"{number}.{count}"
            try:
                # A connection each: one that the proxy keeps open may close as it is reloaded.
                made = httpx.post(
                    f"{proxy.base}/v1/scenarios", json={**question, "name": name}, timeout=30
                )
                read = httpx.get(f"{proxy.base}{made.headers.get('location', '/')}", timeout=30)
                plan = httpx.post(f"{proxy.base}/v1/plans", json=question, timeout=30)
            except httpx.TransportError as error:
                statuses[type(error).__name__] += 1
                continue
            if made.status_code == 201:
                names.append(made.json()["id"])
            statuses.update(str(each.status_code) for each in (made, read, plan))

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    try:
        time.sleep(2)
        for place, server in enumerate(servers):
            proxy.reload(down=server.port)
            assert server.stop() == 0
            again = Server(url, tmp_path / f"again{place}", server.port, ENVIRONMENT)
            servers[place] = again.wait()
            proxy.reload(down=None)
            time.sleep(2)
    finally:
        done.set()
        for thread in threads:
            thread.join()
    assert set(statuses) == {"200", "201"}, (statuses, (proxy.directory / "errors").read_text())
    engine = create_engine(url)
    with engine.connect() as connection:
        stored = {row[0] for row in connection.exec_driver_sql("SELECT id FROM scenarios")}
    engine.dispose()
    assert set(names) <= stored
    record(
        "rolling restart of two services behind nginx",
        url,
        requests=sum(statuses.values()),
        failed=0,
        acknowledged_writes=len(names),
        lost=len(set(names) - stored),
    )


@pytest.mark.reliability
@pytest.mark.slow
def test_what_the_proxy_says_itself(
    deployed: tuple[Proxy, list[Server], str], question: dict[str, Any]
) -> None:
    proxy, servers, _ = deployed
    hidden = httpx.get(f"{proxy.base}/metrics")
    assert (hidden.status_code, hidden.json()["detail"]) == (404, "no such path")
    large = httpx.post(f"{proxy.base}/v1/plans", content=b"x" * 34_000_000, timeout=30)
    assert (large.status_code, large.json()["status"]) == (413, 413)
    made = httpx.post(f"{proxy.base}/v1/scenarios", json=question)
    entry = httpx.get(f"{proxy.base}/v1/changes").json()["items"][0]
    assert (entry["object"], entry["client"]) == (made.json()["id"], "127.0.0.1")
    for server in servers:
        server.kill()
    away = httpx.get(f"{proxy.base}/v1/scenarios", timeout=30)
    assert away.status_code == 503
    assert away.headers["content-type"] == "application/problem+json"
    assert away.headers["retry-after"] == "1"


def test_the_configuration_is_that_of_the_containers(tmp_path: Path) -> None:
    text = configuration(tmp_path, 8080, [(1, False), (2, True)])
    assert "server 127.0.0.1:1 max_fails=2" in text
    assert "server 127.0.0.1:2 down max_fails=2" in text
    assert "resolver 127" not in text
    assert "api-1" not in text
    assert "proxy_set_header X-Forwarded-For $remote_addr;" in text
    assert text.count("{") == text.count("}")
