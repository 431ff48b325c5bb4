"""Export and import of a workspace."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.api.conftest import CONFIG, Client, Keyed, make_everything
from tests.api.test_errors import check


def without_ids(export: dict[str, Any]) -> str:
    """An export without what an import gives anew."""
    text = json.dumps({k: v for k, v in export.items() if k not in {"workspace", "exported_at"}})
    exported = [scenario["id"] for scenario in export["scenarios"]]
    exported += [comparison["answer"]["id"] for comparison in export["comparisons"]]
    for number, ident in enumerate(exported):
        text = text.replace(ident, f"id{number}")
    return text


def test_an_export_comes_back_the_same_elsewhere(keyed: Keyed, question: dict[str, Any]) -> None:
    client, ours, theirs = keyed.client, {"headers": keyed.writer}, {"headers": keyed.stranger}
    ids = make_everything(client, keyed.writer)
    path = f"/v1/scenarios/{ids['scenario_id']}"
    match = {"headers": {**keyed.writer, "If-Match": "*"}}
    client.put(path, json={**question, "tags": ["second"]}, **match)
    client.delete(path, **match)
    export = client.get("/v1/workspace/export", **ours).json()
    kinds = ("models", "accelerators", "scenarios", "comparisons", "measurements")
    assert [len(export[kind]) for kind in kinds] == [1, 1, 2, 1, 1]
    actions = [r["action"] for r in export["scenarios"][0]["revisions"]]
    assert actions == ["created", "updated", "deleted"]
    response = client.post("/v1/workspace/import", json=export, **theirs)
    assert response.status_code == 201, response.text
    new = response.json()["scenarios"]
    assert set(new) == {scenario["id"] for scenario in export["scenarios"]}
    assert not set(new) & set(new.values())
    again = client.get("/v1/workspace/export", **theirs).json()
    assert without_ids(again) == without_ids(export)
    assert again["comparisons"][0]["answer"]["sources"][0]["scenario_id"] == new[ids["scenario_id"]]
    deleted = client.get("/v1/scenarios?deleted=true&tag=second", **theirs).json()["items"]
    assert [item["id"] for item in deleted] == [new[ids["scenario_id"]]]
    plan = client.get(f"/v1/scenarios/{deleted[0]['id']}/plan?revision=1", **theirs).json()
    assert plan["stale"] is False
    assert plan["plan"] == client.get(f"{path}/plan?revision=1", **ours).json()["plan"]


def test_an_import_is_all_or_nothing(client: Client) -> None:
    make_everything(client)
    export = client.get("/v1/workspace/export").json()
    before = len(client.get("/v1/scenarios").json()["items"])
    export["models"][0]["config"] = {**CONFIG, "num_hidden_layers": 16}
    check(client.post("/v1/workspace/import", json=export), 409)
    assert len(client.get("/v1/scenarios").json()["items"]) == before


def test_a_repeated_import_is_one(client: Client) -> None:
    make_everything(client)
    export = client.get("/v1/workspace/export").json()
    key = {"Idempotency-Key": "import"}
    for _ in range(2):
        assert client.post("/v1/workspace/import", json=export, headers=key).status_code == 201
    assert len(client.get("/v1/scenarios").json()["items"]) == 4


@pytest.mark.parametrize(
    "change",
    [
        {"format": "other/1"},
        {"exported_at": "yesterday"},
        {"exported_at": "0001-01-01T00:00Z"},
        {"exported_at": "2026-01-01T00:00:00"},
        {"scenarios": [{}]},
        {"nope": 1},
        {"models": [{"id": "x", "config": {"model_type": "llama"}}]},
    ],
)
def test_what_is_no_export_is_refused(shared: Client, change: dict[str, Any]) -> None:
    export = shared.get("/v1/workspace/export").json()
    check(shared.post("/v1/workspace/import", json={**export, **change}), 422)


def test_revisions_of_an_import_rise(client: Client) -> None:
    make_everything(client)
    export = client.get("/v1/workspace/export").json()
    revisions = export["scenarios"][0]["revisions"]
    export["scenarios"][0]["revisions"] = revisions * 2
    check(client.post("/v1/workspace/import", json=export), 422)


def test_an_import_may_be_larger_than_other_bodies(client: Client) -> None:
    make_everything(client)
    export = client.get("/v1/workspace/export").json()
    body = json.dumps(export).encode() + b" " * 2_000_000
    kind = {"Content-Type": "application/json"}
    assert client.post("/v1/workspace/import", content=body, headers=kind).status_code == 201
