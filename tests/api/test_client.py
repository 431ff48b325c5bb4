"""A client generated from the published document, without a hand edit, calls every operation."""

from __future__ import annotations

import importlib
import inspect
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx
import pytest

from api.openapi.examples import EXAMPLES
from tests.api.conftest import HOST, Client, make_everything, make_settings, started
from tests.api.server import serving

ANSWERED_WITHOUT_A_MODEL = {"metrics", "exportWorkspace"}


@pytest.fixture(scope="module")
def document(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    url = f"sqlite:///{tmp_path_factory.mktemp('document') / 'planner.db'}"
    with started(make_settings(url)) as client:
        published: dict[str, Any] = client.get("/schema/openapi.json").json()
    return published


def operations(document: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        operation
        for item in document["paths"].values()
        for operation in item.values()
        if "operationId" in operation
    ]


def test_titles_are_unique_and_maps_are_maps(document: dict[str, Any]) -> None:
    schemas = document["components"]["schemas"]
    titles = [schema["title"] for schema in schemas.values()]
    assert len(titles) == len(set(titles))
    assert "patternProperties" not in json.dumps(schemas)
    histogram = schemas["Histogram"]["properties"]["histogram"]
    assert histogram["additionalProperties"]["type"] == "number"


def test_every_property_is_described_and_quantities_have_a_unit(document: dict[str, Any]) -> None:
    for name, schema in document["components"]["schemas"].items():
        for field, property_ in schema.get("properties", {}).items():
            assert property_["description"].strip(), f"{name}.{field}"
            if field.endswith(("_s", "_bytes", "_ms", "_tokens", "_bytes_per_gpu")):
                assert re.search(r"\[.+\]", property_["description"]), f"{name}.{field}"


def test_if_match_is_required_where_it_is(client: Client, document: dict[str, Any]) -> None:
    guarded = {
        operation["operationId"]: parameter["required"]
        for operation in operations(document)
        for parameter in operation.get("parameters", ())
        if parameter["name"] == "If-Match"
    }
    assert {"replaceScenario", "deleteScenario", "restoreScenario"} <= set(guarded)
    assert [name for name, required in guarded.items() if not required] == ["putScenario"]
    ids = make_everything(client)
    answer = client.put(f"/v1/scenarios/{ids['scenario_id']}", json=EXAMPLES["replaceScenario"])
    assert answer.status_code == 428


@pytest.mark.slow
def test_a_generated_client_calls_every_operation(tmp_path: Path, document: dict[str, Any]) -> None:
    pytest.importorskip("openapi_python_client")
    (tmp_path / "openapi.json").write_text(json.dumps(document))
    made = subprocess.run(
        [
            *(sys.executable, "-m", "openapi_python_client", "generate", "--meta", "none"),
            *("--path", "openapi.json", "--output-path", "planner_client"),
        ],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert "WARNING" not in made.stdout, made.stdout
    assert "Unable to process" not in made.stdout, made.stdout
    sys.path.insert(0, str(tmp_path))
    url = f"sqlite:///{tmp_path / 'planner.db'}"
    environment = {"PLANNER_ALLOWED_HOSTS": f"{HOST},127.0.0.1"}
    try:
        with serving(url, tmp_path / "log", environment=environment) as server:
            _call_all(document, server.base)
    finally:
        sys.path.remove(str(tmp_path))


def _call_all(document: dict[str, Any], base: str) -> None:
    with httpx.Client(base_url=base, timeout=60) as plain:
        ids = make_everything(plain)  # type: ignore[arg-type]  # the same methods
    with importlib.import_module("planner_client").Client(
        base_url=base, timeout=httpx.Timeout(60)
    ) as client:
        called = [
            _call(operation, client, ids) for operation in sorted(operations(document), key=_order)
        ]
    assert len(called) == len(set(called)) >= 35


def _call(operation: dict[str, Any], client: Any, ids: dict[str, str]) -> str:
    """Call an operation; return its name. What it makes and no scenario uses may be deleted."""
    name: str = operation["operationId"]
    module = importlib.import_module(f"planner_client.api.{operation['tags'][0]}.{_snake(name)}")
    answer = module.sync_detailed(client=client, **_arguments(module, name, ids))
    assert 200 <= answer.status_code < 300, (name, answer.content)
    body = operation["responses"].get(str(int(answer.status_code)), {}).get("content", {})
    if "application/json" in body:
        assert answer.parsed is not None, name
    if name in {"createModel", "createAccelerator"}:
        ids[f"{name.removeprefix('create').lower()}_id"] = answer.parsed.id
    return name


def _order(operation: dict[str, Any]) -> tuple[bool, bool, str]:
    """What is read comes before what is deleted, and restoring comes last."""
    name = operation["operationId"]
    return (name == "restoreScenario", name.startswith("delete"), name)


def _arguments(module: Any, name: str, ids: dict[str, str]) -> dict[str, Any]:
    given: dict[str, Any] = {"gpu": "h100-sxm5", "tp": 1} if name == "createMeasurement" else {}
    for parameter in inspect.signature(module.sync_detailed).parameters.values():
        if parameter.name in ids:
            given[parameter.name] = ids[parameter.name]
        elif parameter.name == "if_match":
            given["if_match"] = "*"
        elif parameter.name == "body":
            given["body"] = _body(module, name)
    return given


def _body(module: Any, name: str) -> Any:
    example = EXAMPLES[name]
    kinds = [v for k, v in vars(module).items() if hasattr(v, "from_dict") and "Problem" not in k]
    for kind in kinds:
        try:
            return kind.from_dict(example)
        except (KeyError, TypeError, ValueError):
            continue
    raise AssertionError(f"{name}: no model of the client takes its example")


def _snake(name: str) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()
