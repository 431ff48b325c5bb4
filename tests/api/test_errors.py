"""One shape of error: every route and every code, told in the OpenAPI document too."""

from __future__ import annotations

import sqlite3
import time
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy.exc import DataError, IntegrityError, OperationalError
from structlog.testing import capture_logs

from api.openapi.examples import EXAMPLES
from api.web.problem import ProblemDetails
from planner.errors import InvalidInput
from tests.api.conftest import CARD, CONFIG, Client, Keyed, make_everything, make_settings, started
from tests.api.test_isolation import operations

LEAKS = ("Traceback", "sqlite", "psycopg", "SELECT", "INSERT", "site-packages", ".py")


def check(response: Any, status: int) -> ProblemDetails:
    """An answer is the problem it should be, and tells nothing of the inside."""
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == "application/problem+json"
    problem = ProblemDetails.model_validate_json(response.content)
    assert problem.status == status
    assert problem.instance == response.request.url.path
    assert problem.request_id == response.headers["x-request-id"]
    assert problem.type.startswith("urn:decode-planner:problem:")
    assert not [word for word in LEAKS if word in response.text]
    return problem


@pytest.fixture(scope="module")
def ids(keyed: Keyed) -> dict[str, str]:
    job = keyed.client.post("/v1/jobs", json=EXAMPLES["createJob"], headers=keyed.writer)
    return make_everything(keyed.client, keyed.writer) | {"job_id": job.json()["id"]}


def documented(keyed: Keyed) -> dict[str, set[str]]:
    document = keyed.client.get("/schema/openapi.json").json()
    return {
        operation["operationId"]: set(operation["responses"])
        for item in document["paths"].values()
        for operation in item.values()
    }


def test_every_route_and_code(keyed: Keyed, ids: dict[str, str]) -> None:
    codes = documented(keyed)
    tried = 0
    for method, template, handler in operations(keyed):
        path, name = template.format(**ids), handler.operation_id
        unknown = template.format(**dict.fromkeys(ids, "nope"))
        body = EXAMPLES.get(name)
        auth = {**keyed.writer, "If-Match": "*"}
        json_type = {"Content-Type": "application/json"}
        cases: list[tuple[int, str, dict[str, Any]]] = []
        if not handler.opt.get("public"):
            cases.append((401, path, {"json": body}))
        if "{" in template and not handler.opt.get("may_make"):
            cases.append((404, unknown, {"json": body, "headers": auth}))
        if not handler.opt.get("any_media"):
            accept = {**auth, "Accept": "image/png"}
            cases.append((406, path, {"json": body, "headers": accept}))
        if body is not None:
            big = b'{"a": "' + b"x" * 33_000_000 + b'"}'
            cases += [
                (400, path, {"content": b"{", "headers": {**auth, **json_type}}),
                (413, path, {"content": big, "headers": {**auth, **json_type}}),
                (415, path, {"content": b"{}", "headers": auth}),
                (415, path, {"content": b"{}", "headers": {**auth, "Content-Type": "text/plain"}}),
                (422, path, {"json": [], "headers": auth}),
            ]
            if name != "changeScenario":  # a patch may change nothing
                cases.append((422, path, {"json": {}, "headers": auth}))
        if "428" in codes[name]:
            wrong = {**auth, "If-Match": '"999"'}
            cases += [
                (428, path, {"json": body, "headers": keyed.writer}),
                (412, path, {"json": body, "headers": wrong}),
            ]
        for status, where, options in cases:
            check(keyed.client.request(method, where, **options), status)
            assert str(status) in codes[name], (name, status)
            tried += 1
        assert {"500", "503"} <= codes[name]
    assert tried > 120


@pytest.mark.parametrize("path", ["/nope", "/v1", "/v1/plans/x", "/v1/scenarios/a/b/c"])
def test_unknown_paths(shared: Client, path: str) -> None:
    check(shared.get(path), 404)


def test_unknown_methods(keyed: Keyed) -> None:
    paths = {template for _, template, _ in operations(keyed)}
    for template in paths:
        response = keyed.client.request("PROPFIND", template.replace("{", "").replace("}", ""))
        check(response, 405)
        methods = {m for m, t, _ in operations(keyed) if t == template}
        assert set(response.headers["allow"].split(", ")) == methods | {"OPTIONS"}


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("limit=0", "limit"),
        ("limit=201", "limit"),
        ("limit=x", "limit"),
        ("deleted=2", "deleted"),
        ("text=" + "x" * 201, "text"),
        ("tags=x", "tags"),
    ],
)
def test_parameters_are_told_by_name(shared: Client, query: str, field: str) -> None:
    problem = check(shared.get(f"/v1/scenarios?{query}"), 400)
    assert [error.field for error in problem.errors] == [field]


def test_all_faults_of_a_body_are_told(shared: Client, question: dict[str, Any]) -> None:
    body = {**question, "tp": "4", "batch": [0], "nope": 1, "prefix_hit": 2}
    problem = check(shared.post("/v1/plans", json=body), 422)
    assert {error.field for error in problem.errors} == {"tp", "batch.0", "nope", "prefix_hit"}


def test_a_refusal_of_the_planner_names_field_and_what_is_accepted(
    shared: Client, question: dict[str, Any]
) -> None:
    problem = check(shared.post("/v1/plans", json={**question, "weights": "fp5"}), 422)
    assert problem.errors[0].field == "weights"
    assert "accepted" in problem.detail
    assert "\n" not in problem.detail


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"concurrency": 4, "isl": 512}, "osl"),
        ({"isl": 512}, "concurrency"),
        ({"batch": list(range(1, 400)), "context": list(range(1, 400))}, "batch"),
    ],
)
def test_a_fault_of_the_whole_names_its_first_field(
    shared: Client, question: dict[str, Any], change: dict[str, Any], field: str
) -> None:
    problem = check(shared.post("/v1/plans", json={**question, **change}), 422)
    assert [error.field for error in problem.errors] == [field]
    assert problem.detail.startswith(field)
    nested = {"scenario": {**question, **change}, "gpu": [question["gpu"]]}
    problem = check(shared.post("/v1/sweeps", json=nested), 422)
    assert [error.field for error in problem.errors] == [f"scenario.{field}"]


def test_what_is_no_object_is_told_without_a_class(
    shared: Client, question: dict[str, Any]
) -> None:
    for name in ("speculation", "disaggregated"):
        problem = check(shared.post("/v1/plans", json={**question, name: 1}), 422)
        assert problem.detail == f"{name}: input should be an object, got 1"
    assert check(shared.post("/v1/plans", json=[]), 422).detail == "Input should be an object"


NESTED = {"model_type": "gemma3", "text_config": {**CONFIG, "num_hidden_layers": -1}}


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"model": {**CONFIG, "num_hidden_layers": -1}}, "model.num_hidden_layers"),
        ({"model": {**CONFIG, "hidden_size": None}}, "model.hidden_size"),
        ({"model": NESTED}, "model.text_config.num_hidden_layers"),
        ({"model": {**CONFIG, "quantization_config": 4}}, "model.quantization_config"),
        ({"gpu": {**CARD, "bandwidth_bytes_per_s": -1}}, "gpu.bandwidth_bytes_per_s"),
        ({"gpu": {**CARD, "peaks_flops_per_s": {"bf16": 0}}}, "gpu.peaks_flops_per_s.bf16"),
    ],
)
def test_a_field_of_an_inline_object_is_told_by_its_path(
    shared: Client, question: dict[str, Any], change: dict[str, Any], field: str
) -> None:
    problem = check(shared.post("/v1/plans", json={**question, **change}), 422)
    assert [error.field for error in problem.errors] == [field]


def test_a_field_of_an_object_to_store_is_told_by_its_path(shared: Client) -> None:
    bad = {"id": "bad-one", "config": {**CONFIG, "num_hidden_layers": -1}}
    problem = check(shared.post("/v1/models", json=bad), 422)
    assert problem.errors[0].field == "config.num_hidden_layers"
    card = {"id": "bad-one", "spec": {**CARD, "tdp_w": "hot"}}
    problem = check(shared.post("/v1/accelerators", json=card), 422)
    assert problem.errors[0].field == "spec.tdp_w"


@pytest.mark.parametrize("key", ["", " "])
def test_an_empty_idempotency_key_is_refused(
    shared: Client, question: dict[str, Any], key: str
) -> None:
    response = shared.post("/v1/scenarios", json=question, headers={"Idempotency-Key": key})
    assert "Idempotency-Key" in check(response, 400).detail


@pytest.mark.parametrize(
    "name", ["/etc/hostname", "planner", ".", "pyproject.toml", "~/x.json", "../a.gguf", "a.json"]
)
def test_a_request_opens_no_file(shared: Client, question: dict[str, Any], name: str) -> None:
    named = {"model": name, "gpu": name}
    for field, value in named.items():
        check(shared.post("/v1/plans", json={**question, field: value}), 422)
        check(shared.post("/v1/scenarios", json={**question, field: value}), 422)
    gpu = {"base": name, "source": "x"}
    check(shared.post("/v1/plans", json={**question, "gpu": gpu}), 422)
    sweep = {"scenario": question, "gpu": [name]}
    check(shared.post("/v1/sweeps", json=sweep), 422)
    check(shared.post("/v1/recommendations", json={"model": name}), 422)
    check(shared.post("/v1/recommendations", json={"model": question["model"], "gpu": [name]}), 422)
    check(shared.post("/v1/roofline", json=named), 422)
    compared = {"scenarios": [question, {**question, "model": name}]}
    check(shared.post("/v1/comparisons", json=compared), 422)


def test_a_foreign_host_name_is_refused(shared: Client) -> None:
    check(shared.get("/v1/models", headers={"Host": "evil.example"}), 400)


def test_a_refusal_is_recognised_by_its_class(
    shared: Client, question: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise InvalidInput("tp: 7 does not divide it; accepted: 1, 2, 4")

    monkeypatch.setattr("api.plans.quick.plan_json", refuse)
    problem = check(shared.post("/v1/plans", json=question), 422)
    assert problem.detail == "tp: 7 does not divide it; accepted: 1, 2, 4"
    assert [error.field for error in problem.errors] == ["tp"]


def test_a_defect_is_logged_by_request_id_and_not_told(
    shared: Client, question: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise ValueError("tp: secret; accepted: none")

    monkeypatch.setattr("api.plans.quick.plan_json", broken)
    with capture_logs() as lines:
        problem = check(shared.post("/v1/plans", json=question), 500)
    assert "secret" not in str(problem)
    logged = [line for line in lines if line["event"] == "unhandled"]
    assert [line["request_id"] for line in logged] == [problem.request_id]
    assert str(logged[0]["exc_info"]) == "tp: secret; accepted: none"


@pytest.mark.parametrize(
    ("error", "status"), [(IntegrityError, 409), (DataError, 422), (OperationalError, 503)]
)
def test_trouble_of_the_store_has_its_own_code(
    shared: Client,
    question: dict[str, Any],
    monkeypatch: pytest.MonkeyPatch,
    error: type[Exception],
    status: int,
) -> None:
    def broken(*_: object) -> None:
        raise error("INSERT secret", {}, Exception("secret"))

    monkeypatch.setattr("api.scenarios.service.write_once", broken)
    response = shared.post("/v1/scenarios", json=question)
    problem = check(response, status)
    assert "secret" not in str(problem)
    assert ("retry-after" in response.headers) is (status == 503)


def test_a_locked_file_is_503_within_the_timeout(tmp_path: Path, question: dict[str, Any]) -> None:
    file = tmp_path / "planner.db"
    settings = make_settings(f"sqlite:///{file}", busy_timeout_ms=300)
    with started(settings) as client:
        lock = sqlite3.connect(file, isolation_level=None)
        lock.execute("BEGIN IMMEDIATE")
        began = time.monotonic()
        response = client.post("/v1/scenarios", json=question)
        assert time.monotonic() - began < 3
        check(response, 503)
        assert response.headers["retry-after"] == "1"
        assert client.get("/v1/scenarios").status_code == 200
        lock.execute("ROLLBACK")
        lock.close()
        assert client.post("/v1/scenarios", json=question).status_code == 201


def test_a_lost_database_makes_ready_503_and_live_stays(
    tmp_path: Path, question: dict[str, Any]
) -> None:
    with started(make_settings(f"sqlite:///{tmp_path / 'a' / 'planner.db'}")) as client:
        assert client.get("/health/ready").json() == {"status": "ok"}
        client.app.state.services.database.close()
        (tmp_path / "a").rename(tmp_path / "b")
        check(client.get("/health/ready"), 503)
        check(client.get("/v1/scenarios"), 503)
        assert client.get("/health/live").status_code == 200
        assert client.post("/v1/plans", json=question).status_code == 200
        (tmp_path / "b").rename(tmp_path / "a")
        assert client.get("/health/ready").status_code == 200
