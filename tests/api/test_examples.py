"""The document's examples: every request works, and every answer is as the document shows it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.api.conftest import Client, make_settings, started
from tests.scripts import ROOT, script

jsonschema = pytest.importorskip("jsonschema")
tool = script("api_examples")
EXAMPLES = json.loads((ROOT / "api" / "openapi" / "answers.json").read_text("utf-8"))
NOT_JSON = {"metrics", "exportLines", "getJobResult"}
VALUES = {"content", "question", "document", "config", "spec", "limits", "result"}
"""Fields whose keys are values: another release has others."""


@pytest.fixture(scope="module")
def answered(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Status and document of every call."""
    url = f"sqlite:///{tmp_path_factory.mktemp('examples') / 'planner.db'}"
    with started(make_settings(url, lane_jobs=1)) as client:
        return {call.operation: response for call, response in tool.answers_of(client)}


@pytest.fixture(scope="module")
def document(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    from api.app import create_app

    url = f"sqlite:///{tmp_path_factory.mktemp('document') / 'planner.db'}"
    app = create_app(make_settings(url))
    return published(app)


def published(app: Any) -> dict[str, Any]:
    from litestar._openapi.plugin import OpenAPIPlugin

    result: dict[str, Any] = app.plugins.get(OpenAPIPlugin).provide_openapi_schema()
    return result


def operations(document: dict[str, Any]) -> dict[str, Any]:
    return {o["operationId"]: o for item in document["paths"].values() for o in item.values()}


def validated(document: dict[str, Any], schema: dict[str, Any], value: Any) -> None:
    whole = {**schema, "components": document["components"]}
    jsonschema.Draft202012Validator(whole).validate(value)


def test_every_example_of_a_request_works(answered: dict[str, Any]) -> None:
    assert {n: r.status_code for n, r in answered.items() if r.status_code >= 300} == {}


def test_every_answer_meets_its_schema(answered: dict[str, Any], document: dict[str, Any]) -> None:
    for name, operation in operations(document).items():
        response = answered[name]
        content = operation["responses"][str(response.status_code)].get("content", {})
        if "application/json" in content and name not in NOT_JSON:
            validated(document, content["application/json"]["schema"], response.json())


def test_every_example_of_an_answer_is_shown_and_meets_its_schema(document: dict[str, Any]) -> None:
    shown = 0
    for name, operation in operations(document).items():
        for status, response in operation["responses"].items():
            content = response.get("content", {}).get("application/json")
            if status[0] == "2" and content and name not in NOT_JSON:
                assert content["example"] == EXAMPLES[name], name
                validated(document, content["schema"], content["example"])
                shown += 1
    assert shown >= 40


def test_the_examples_are_of_this_release(answered: dict[str, Any]) -> None:
    """They have the fields that answers have today; figures may be of an earlier calibration."""
    for name, example in EXAMPLES.items():
        assert outline(answered[name].json()) == outline(example), (
            f"{name}: run tools/api_examples.py"
        )


def outline(value: Any, depth: int = 2) -> Any:
    """The names of a document's fields, and of those in them."""
    if not isinstance(value, dict) or depth == 0:
        return None
    return {k: None if k in VALUES else outline(v, depth - 1) for k, v in value.items()}


def test_every_request_has_an_example(shared: Client) -> None:
    published_document = shared.get("/schema/openapi.json").json()
    for name, operation in operations(published_document).items():
        for kind, content in operation.get("requestBody", {}).get("content", {}).items():
            if kind == "application/json":
                assert content["example"], name
