"""Logs, metrics, documentation offline, the deployment, and what leaks."""

from __future__ import annotations

import gc
import json
import os
import re
import threading
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml
from structlog.testing import capture_logs

from api.settings import Settings
from api.web.problem import ProblemDetails
from tests.api.conftest import Client, make_settings, started
from tests.api.server import Server, serving
from tests.api.test_errors import check

ROOT = Path(__file__).parents[2]


def test_one_line_a_request_without_what_users_wrote(
    tmp_path: Path, question: dict[str, Any]
) -> None:
    url = f"sqlite:///{tmp_path / 'planner.db'}"
    with started(make_settings(url, log_level="info")) as client, capture_logs() as lines:
        made = client.post("/v1/scenarios", json={**question, "name": "secret name"})
        client.get("/v1/scenarios?text=secret", headers={"X-Request-ID": "from-a-proxy-1"})
        client.get(made.headers["location"])
    access = [line for line in lines if line["event"] == "request"]
    assert [(line["method"], line["route"], line["status"]) for line in access] == [
        ("POST", "/v1/scenarios", 201),
        ("GET", "/v1/scenarios", 200),
        ("GET", "/v1/scenarios/{scenario_id}", 200),
    ]
    assert access[0]["request_id"] == made.headers["x-request-id"]
    assert access[1]["request_id"] == "from-a-proxy-1"
    assert access[0]["workspace"] == "default"
    assert "secret" not in str(lines)


@pytest.mark.parametrize("given", ["x", "a" * 65, "with space", "new\tline1", "é" * 10])
def test_a_request_id_that_is_none_is_replaced(shared: Client, given: str) -> None:
    answer = shared.get("/health/live", headers={"X-Request-ID": given.encode()})
    assert re.fullmatch("[0-9a-f]{32}", answer.headers["x-request-id"])


def test_the_log_of_a_server_is_json_and_keeps_keys_out(tmp_path: Path) -> None:
    with serving(f"sqlite:///{tmp_path / 'planner.db'}", tmp_path / "log") as server:
        for path in ("/v1/about", "/v1/about?key=hunter2"):
            bearer = {"Authorization": "Bearer hunter2"}
            assert httpx.get(f"{server.base}{path}", headers=bearer).status_code == 401
        assert f'"url": "{server.base}"' in server.text()
    lines = [json.loads(x) for x in server.text().splitlines() if x.startswith("{")]
    assert len([x for x in lines if x["event"] == "request" and x["status"] == 401]) == 2
    assert "hunter2" not in server.text()


def test_metrics_count_by_route_template(client: Client, question: dict[str, Any]) -> None:
    client.post("/v1/scenarios", json=question)
    for n in range(3):
        client.get(f"/v1/scenarios/unknown-{n}")
    client.get("/no/such/path")
    client.request("BREW", "/v1/plans")
    text = client.get("/metrics").text
    assert 'route="/v1/scenarios/{scenario_id}",status="404"} 3.0' in text
    assert 'planner_requests_total{method="POST",route="/v1/scenarios",status="201"} 1.0' in text
    assert "unknown-" not in text
    assert "no/such" not in text
    assert "BREW" not in text
    assert "planner_request_seconds_bucket" in text


def test_the_documentation_asks_no_other_host(shared: Client) -> None:
    page = shared.get("/schema", headers={"Accept": "text/html"})
    assert page.status_code == 200
    sources = re.findall(r'(?:src|href)="([^"]+)"', page.text)
    assert len(sources) >= 3
    assert not re.findall(r"(?:https?:)?//[a-z]", re.sub(r"https?://\*", "", page.text))
    for source in sources:
        if source.startswith("data:"):
            continue
        assert source.startswith("/schema/files/")
        answer = shared.get(source, headers={"Accept": "*/*"})
        assert answer.status_code == 200
        assert len(answer.content) > 1000


def test_the_document_is_complete(shared: Client) -> None:
    document = shared.get("/schema/openapi.json").json()
    assert document["openapi"].startswith("3.1")
    schemas = document["components"]["schemas"]
    assert schemas["Scenario-Input"]["additionalProperties"] is False
    assert schemas["OwnModel"]["properties"]["id"]["pattern"].startswith("^")
    for path, item in document["paths"].items():
        for method, operation in item.items():
            where = f"{method} {path}"
            assert operation["description"], where
            assert operation["tags"], where
            assert {"500", "503"} <= set(operation["responses"]), where
            if "requestBody" in operation:
                for kind, content in operation["requestBody"]["content"].items():
                    assert content.get("example") or "json" not in kind.split("/")[1], where
            for code, response in operation["responses"].items():
                if code[0] in "45":
                    assert response == {"$ref": f"#/components/responses/Problem{code}"}
    text = json.dumps(document)
    for reference in set(re.findall(r'"\$ref": "#/([^"]+)"', text)):
        node = document
        for part in reference.split("/"):
            node = node[part]


def test_what_a_browser_reaches_from_another_site_is_refused(
    shared: Client, question: dict[str, Any]
) -> None:
    body = json.dumps(question).encode()
    for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data"):
        check(shared.post("/v1/plans", content=body, headers={"Content-Type": kind}), 415)
    preflight = shared.options("/v1/plans", headers={"Origin": "https://evil.example"})
    assert "access-control-allow-origin" not in preflight.headers


def compose() -> Any:
    return yaml.safe_load((ROOT / "docker-compose.yml").read_text())


def test_every_container_is_hardened_and_watched() -> None:
    services = compose()["services"]
    assert set(services) == {"db", "migrate", "api-1", "api-2", "proxy"}
    for name, service in services.items():
        assert service["read_only"] is True, name
        assert service["cap_drop"] == ["ALL"], name
        assert not service["user"].startswith("0"), name
        assert service["security_opt"] == ["no-new-privileges:true"], name
        assert ("healthcheck" in service) is (name != "migrate"), name
    assert services["migrate"]["command"] == ["planner", "db", "upgrade"]
    for name in ("api-1", "api-2"):
        after = services[name]["depends_on"]
        assert after == {"migrate": {"condition": "service_completed_successfully"}}
    published = [name for name, service in services.items() if "ports" in service]
    assert published == ["proxy"]
    assert services["proxy"]["ports"] == ["${PLANNER_PUBLISH:-127.0.0.1:8080}:8080"]


def test_containers_have_bounds_and_no_password_of_their_own() -> None:
    text = (ROOT / "docker-compose.yml").read_text()
    assert "change-me" not in text
    assert text.count("${POSTGRES_PASSWORD:?") == 2
    services = compose()["services"]
    assert all(service["mem_limit"] for service in services.values())
    # The image of Postgres 18 refuses a volume at the path of earlier ones.
    assert services["db"]["image"].startswith("postgres:18")
    assert services["db"]["volumes"] == ["database:/var/lib/postgresql"]
    assert "PGDATA" not in services["db"]["environment"]
    proxy = services["proxy"]["command"][2]
    assert proxy.count(" resolve ") == 2
    for status in (404, 413, 503):
        (document,) = re.findall(rf"return {status} '(.+)';", proxy)
        assert ProblemDetails.model_validate_json(document).status == status


def test_checks_reach_the_service_under_any_name(shared: Client) -> None:
    for path in ("/health/live", "/health/ready"):
        assert shared.get(path, headers={"Host": "10.0.0.7"}).status_code == 200
    assert shared.get("/v1/about", headers={"Host": "10.0.0.7"}).status_code == 400


def test_the_store_is_in_the_users_data_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PLANNER_DATABASE_URL", raising=False)
    monkeypatch.setenv("PLANNER_DATA_DIR", str(tmp_path / "mine"))
    assert Settings(_env_file=None).sqlite_file == tmp_path / "mine" / "planner.db"
    monkeypatch.setenv("PLANNER_DATABASE_URL", "sqlite:////elsewhere.db")
    assert Settings(_env_file=None).sqlite_file == Path("/elsewhere.db")


def test_the_containers_settings_are_settings() -> None:
    environment = compose()["services"]["api-1"]["environment"]
    known = {f"PLANNER_{name.upper()}" for name in Settings.model_fields}
    assert set(environment) <= known
    given = {
        k.removeprefix("PLANNER_").lower(): v
        for k, v in environment.items()
        if not v.startswith("${")
    }
    assert Settings(_env_file=None, **given).keys_required


def test_the_deployment_without_containers(
    postgres_cluster: Any, tmp_path: Path, question: dict[str, Any]
) -> None:
    """Migrations once, then two replicas with keys on one Postgres, as docker-compose.yml has."""
    from sqlalchemy import create_engine

    from tests.api.test_commands import planner

    admin = create_engine(postgres_cluster.url("postgres"), isolation_level="AUTOCOMMIT")
    with admin.connect() as connection:
        connection.exec_driver_sql("CREATE DATABASE deployed")
    admin.dispose()
    url = postgres_cluster.url("deployed")
    early = Server(url, tmp_path / "early")
    assert early.process.wait(30) == 2
    assert "run `planner db upgrade`" in early.text()
    migrated = planner(tmp_path, "db", "upgrade", PLANNER_DATABASE_URL=url)
    assert migrated.stdout == "at revision 0008\n"
    key = planner(
        tmp_path,
        "keys",
        "create",
        "--workspace",
        "team",
        "--scope",
        "write",
        PLANNER_DATABASE_URL=url,
    ).stdout.strip()
    everywhere = {"PLANNER_HOST": "0.0.0.0", "PLANNER_ALLOWED_HOSTS": "127.0.0.1"}  # noqa: S104
    with (
        serving(url, tmp_path / "one", environment=everywhere) as one,
        serving(url, tmp_path / "two", environment=everywhere) as two,
    ):
        bearer = {"Authorization": f"Bearer {key}"}
        assert httpx.post(f"{one.base}/v1/scenarios", json=question).status_code == 401
        made = httpx.post(f"{one.base}/v1/scenarios", json=question, headers=bearer)
        assert made.status_code == 201
        read = httpx.get(f"{two.base}{made.headers['location']}", headers=bearer)
        assert read.json() == made.json()
        # One replica stops; the other goes on.
        assert one.stop() == 0
        assert httpx.get(f"{two.base}/health/ready").status_code == 200
        put = httpx.put(
            f"{two.base}{made.headers['location']}",
            json={**question, "tp": 8},
            headers={**bearer, "If-Match": made.headers["etag"]},
        )
        assert put.status_code == 200
    with admin.connect() as connection:
        connection.exec_driver_sql("DROP DATABASE deployed WITH (FORCE)")
    admin.dispose()


def open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def resident() -> int:
    """Resident memory of this process [byte]."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.slow
def test_fifty_starts_and_stops_leave_no_file_or_thread(tmp_path: Path) -> None:
    settings = make_settings(f"sqlite:///{tmp_path / 'planner.db'}")

    def cycle() -> None:
        with started(settings) as client:
            assert client.get("/v1/scenarios").status_code == 200

    cycle()
    gc.collect()
    files, threads = open_files(), threading.active_count()
    for _ in range(50):
        cycle()
    gc.collect()
    assert open_files() <= files + 2
    assert threading.active_count() <= threads + 1


@pytest.mark.slow
def test_memory_stays_flat(tmp_path: Path, question: dict[str, Any]) -> None:
    with started(make_settings(f"sqlite:///{tmp_path / 'planner.db'}")) as client:
        path = client.post("/v1/scenarios", json=question).headers["location"]

        def requests(count: int) -> None:
            for _ in range(count):
                assert client.post("/v1/plans", json=question).status_code == 200
                assert client.get(f"{path}/plan?recompute=true").status_code == 200
                assert client.get("/v1/scenarios").status_code == 200

        requests(300)
        gc.collect()
        before = resident()
        requests(1_000)
        gc.collect()
        assert resident() - before < 10e6


@pytest.mark.slow
def test_refused_bodies_take_no_memory(tmp_path: Path) -> None:
    with serving(f"sqlite:///{tmp_path / 'planner.db'}", tmp_path / "log") as server:
        body = b" " * 1_200_000
        kind = {"Content-Type": "application/json"}

        def used() -> int:
            text = httpx.get(f"{server.base}/metrics").text
            line = next(x for x in text.splitlines() if x.startswith("process_resident_memory"))
            return int(float(line.split()[1]))

        def send(count: int) -> None:
            for _ in range(count):
                answer = httpx.post(f"{server.base}/v1/plans", content=body, headers=kind)
                assert answer.status_code == 413

        send(20)
        before = used()
        send(200)
        assert used() - before < 20e6
