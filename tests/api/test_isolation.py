"""No route shows or changes what another workspace has, and a reading key changes nothing."""

from __future__ import annotations

from typing import Any

import pytest
from litestar.routes import HTTPRoute

from api.openapi.examples import EXAMPLES
from api.settings import Settings
from tests.api.conftest import Keyed, make_everything, make_settings, started


def operations(keyed: Keyed) -> list[tuple[str, str, Any]]:
    """Every method and path template with its handler."""
    return [
        (str(method), route.path_format, handler)
        for route in keyed.client.app.routes
        if isinstance(route, HTTPRoute)
        for handler in route.route_handlers
        if handler.operation_id and isinstance(handler.operation_id, str)
        for method in handler.http_methods
        if method != "OPTIONS"
    ]


@pytest.fixture(scope="module")
def ids(keyed: Keyed) -> dict[str, str]:
    job = keyed.client.post("/v1/jobs", json=EXAMPLES["createJob"], headers=keyed.writer)
    return make_everything(keyed.client, keyed.writer) | {"job_id": job.json()["id"]}


def call(keyed: Keyed, method: str, path: str, handler: Any, headers: dict[str, str]) -> Any:
    body = EXAMPLES.get(handler.operation_id)
    options: dict[str, Any] = {"headers": {**headers, "If-Match": "*"}}
    if body is not None:
        options["json"] = body
    return keyed.client.request(method, path, **options)


def test_the_ids_of_another_workspace_do_not_exist(keyed: Keyed, ids: dict[str, str]) -> None:
    tried = 0
    for method, template, handler in operations(keyed):
        # Engines are everybody's, and a name that is not there is made.
        if "{" not in template or "{engine_id" in template or "{name}" in template:
            continue
        path = template.format(**ids)
        theirs = call(keyed, method, path, handler, keyed.stranger)
        assert theirs.status_code == 404, (method, path, theirs.text)
        if method == "GET":
            waiting = handler.operation_id == "getJobResult"
            ours = call(keyed, method, path, handler, keyed.writer)
            assert ours.status_code == (409 if waiting else 200)
        tried += 1
    assert tried >= 11


def test_lists_and_exports_of_another_workspace_are_empty(
    keyed: Keyed, ids: dict[str, str]
) -> None:
    get = keyed.client.get
    for path in ("/v1/scenarios", "/v1/comparisons", "/v1/measurements"):
        assert get(path, headers=keyed.stranger).json()["items"] == []
    for path in ("/v1/models", "/v1/accelerators"):
        origins = {item["origin"] for item in get(path, headers=keyed.stranger).json()["items"]}
        assert origins == {"catalogue"}
    export = get("/v1/workspace/export", headers=keyed.stranger).json()
    kinds = ("models", "accelerators", "scenarios", "comparisons", "measurements")
    assert [export[kind] for kind in kinds] == [[]] * 5
    assert ids["scenario_id"] not in str(export)


def test_ids_of_another_workspace_inside_a_body_do_not_exist(
    keyed: Keyed, ids: dict[str, str], question: dict[str, Any]
) -> None:
    post = keyed.client.post
    for body in ({**question, "model": ids["model_id"]}, {**question, "gpu": "own/card"}):
        for path in ("/v1/plans", "/v1/scenarios"):
            assert post(path, json=body, headers=keyed.stranger).status_code == 422
    compared = {"scenarios": [ids["scenario_id"], question]}
    assert post("/v1/comparisons", json=compared, headers=keyed.stranger).status_code == 422


def test_an_idempotency_key_belongs_to_one_workspace(
    keyed: Keyed, question: dict[str, Any]
) -> None:
    answers = [
        keyed.client.post(
            "/v1/scenarios", json=question, headers={**who, "Idempotency-Key": "shared"}
        ).json()
        for who in (keyed.writer, keyed.stranger)
    ]
    assert answers[0]["id"] != answers[1]["id"]
    assert [a["workspace"] for a in answers] == ["ours", "theirs"]


COMPUTING = (
    "createPlan",
    "createSweep",
    "createRecommendation",
    "createRoofline",
    "createCheck",
    "createFleet",
)
"""Operations with a body that store nothing."""


def test_a_reading_key_cannot_write(keyed: Keyed, ids: dict[str, str]) -> None:
    computing = {*COMPUTING}
    for method, template, handler in operations(keyed):
        path = template.format(**ids)
        response = call(keyed, method, path, handler, keyed.reader)
        if handler.operation_id == "getJobResult":
            assert response.status_code == 409, response.text  # it waits
        elif method == "GET" or handler.operation_id in computing:
            assert response.status_code == 200, (method, path, response.text)
        else:
            assert response.status_code == 403, (method, path, response.text)
    body = {**EXAMPLES["createComparison"], "save": False}
    unsaved = keyed.client.post("/v1/comparisons", json=body, headers=keyed.reader)
    assert (unsaved.status_code, unsaved.json()["id"]) == (200, None)


@pytest.mark.parametrize(
    "header", [None, "", "Bearer", "Bearer ", "Bearer nope", "Basic abc", "Bearer é"]
)
def test_without_a_valid_key_every_route_but_health_is_401(
    keyed: Keyed, ids: dict[str, str], header: str | None
) -> None:
    headers = {} if header is None else {"Authorization": header.encode("latin-1")}
    for method, template, handler in operations(keyed):
        response = call(keyed, method, template.format(**ids), handler, headers)
        if handler.opt.get("public"):
            assert response.status_code == 200
        else:
            assert response.status_code == 401, (method, template)
            assert response.headers["www-authenticate"].startswith("Bearer")


def test_a_revoked_key_is_refused(keyed: Keyed) -> None:
    keys = keyed.client.app.state.api_keys
    ident, key = keys.create("ours", "", "read")
    headers = {"Authorization": f"Bearer {key}"}
    assert keyed.client.get("/v1/about", headers=headers).status_code == 200
    assert keys.revoke(ident)
    assert not keys.revoke(ident)
    assert keyed.client.get("/v1/about", headers=headers).status_code == 401
    assert all(key not in str(vars(row)) for row in keys.list())


@pytest.mark.parametrize(
    ("changes", "required"),
    [
        ({}, False),
        ({"host": "localhost"}, False),
        ({"host": "::1"}, False),
        ({"host": "127.8.9.1"}, False),
        ({"host": "192.0.2.1"}, True),
        ({"host": "::"}, True),
        ({"host": "planner.example"}, True),
        ({"auth": "required"}, True),
    ],
)
def test_keys_are_required_beyond_loopback(changes: dict[str, Any], required: bool) -> None:
    assert Settings(_env_file=None, **changes).keys_required is required


def test_a_key_counts_on_loopback_too(database_url: str, question: dict[str, Any]) -> None:
    from api.system.keys import Keys

    with started(make_settings(database_url)) as client:
        _, key = Keys(client.app.state.services.database).create("ours", "", "read")
        headers = {"Authorization": f"Bearer {key}"}
        assert client.post("/v1/scenarios", json=question, headers=headers).status_code == 403
        made = client.post("/v1/scenarios", json=question).json()
        assert made["workspace"] == "default"
        assert client.get(f"/v1/scenarios/{made['id']}", headers=headers).status_code == 404
