"""Comparisons over REST: stored and inline scenarios, three forms, saved for good."""

from __future__ import annotations

from typing import Any

import pytest

from planner.plans.compare import Comparison, ComparisonRequest, compare, to_csv, to_markdown
from planner.scenario import Scenario
from tests.api.conftest import Client
from tests.api.test_errors import check

PATH = "/v1/comparisons"


@pytest.fixture
def ids(shared: Client, question: dict[str, Any]) -> list[str]:
    pair = (
        {**question, "name": "BF16", "weights": "bf16"},
        {**question, "name": "FP8", "weights": "fp8"},
    )
    return [shared.post("/v1/scenarios", json=one).json()["id"] for one in pair]


def test_a_comparison_is_the_librarys(
    shared: Client, ids: list[str], question: dict[str, Any]
) -> None:
    third = {**question, "name": "B200", "gpu": "b200-sxm", "tp": 1}
    response = shared.post(PATH, json={"scenarios": [*ids, third], "baseline": 1, "name": "three"})
    assert response.status_code == 201, response.text
    document = response.json()
    scenarios = [
        Scenario(**{**question, "name": "BF16", "weights": "bf16"}),
        Scenario(**{**question, "name": "FP8", "weights": "fp8"}),
        Scenario(**third),
    ]
    expected = compare(ComparisonRequest(scenarios=scenarios, baseline=1))
    assert Comparison.model_validate(document["comparison"]) == expected
    assert document["name"] == "three"
    assert [s["scenario_id"] for s in document["sources"]] == [*ids, None]
    assert [s["revision"] for s in document["sources"]] == [1, 1, None]
    path = response.headers["location"]
    assert path == f"{PATH}/{document['id']}"
    assert shared.get(path).content == response.content
    for accept, text in (("text/markdown", to_markdown(expected)), ("text/csv", to_csv(expected))):
        read = shared.get(path, headers={"Accept": accept})
        assert read.headers["content-type"] == f"{accept}; charset=utf-8"
        assert read.text == text


def test_a_saved_comparison_does_not_change_with_its_scenarios(
    shared: Client, ids: list[str], question: dict[str, Any]
) -> None:
    response = shared.post(PATH, json={"scenarios": ids})
    put = {**question, "tp": 8}
    path = f"/v1/scenarios/{ids[0]}"
    assert shared.put(path, json=put, headers={"If-Match": "*"}).status_code == 200
    shared.delete(f"/v1/scenarios/{ids[1]}", headers={"If-Match": "*"})
    assert shared.get(response.headers["location"]).content == response.content
    check(shared.post(PATH, json={"scenarios": ids}), 422)


def test_a_comparison_need_not_be_saved(shared: Client, ids: list[str]) -> None:
    before = len(shared.get(f"{PATH}?limit=200").json()["items"])
    body = {"scenarios": ids, "save": False}
    response = shared.post(PATH, json=body, headers={"Accept": "text/markdown"})
    assert (response.status_code, "location" in response.headers) == (200, False)
    assert response.text.startswith("# Comparison against BF16")
    assert len(shared.get(f"{PATH}?limit=200").json()["items"]) == before


def test_lists_pages_and_deletion(client: Client, question: dict[str, Any]) -> None:
    pair = [question, {**question, "tp": 8}]
    made = [
        client.post(PATH, json={"scenarios": pair, "name": f"n{n}"}).json()["id"] for n in range(3)
    ]
    first = client.get(f"{PATH}?limit=2").json()
    second = client.get(PATH, params={"limit": 2, "cursor": first["next_cursor"]}).json()
    assert [item["id"] for item in first["items"] + second["items"]] == made
    assert second["next_cursor"] is None
    check(client.get(PATH, params={"cursor": first["next_cursor"][:-2]}), 400)
    assert client.delete(f"{PATH}/{made[0]}").status_code == 204
    check(client.get(f"{PATH}/{made[0]}"), 404)


def test_a_repeated_request_saves_one(client: Client, question: dict[str, Any]) -> None:
    body = {"scenarios": [question, {**question, "tp": 8}]}
    key = {"Idempotency-Key": "one"}
    first, second = (client.post(PATH, json=body, headers=key) for _ in range(2))
    assert first.content == second.content
    assert len(client.get(PATH).json()["items"]) == 1


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"scenarios": ["nope", "nope"]}, "scenarios"),
        ({"baseline": 2}, "baseline"),
        ({"labels": ["one"]}, "labels"),
        ({"scenarios": []}, "scenarios"),
        ({"usd_per_gpu_hour": {"h100-sxm5": 0}}, "usd_per_gpu_hour"),
        ({"x": 1}, "x"),
    ],
)
def test_impossible_comparisons_name_the_field(
    shared: Client, question: dict[str, Any], changes: dict[str, Any], word: str
) -> None:
    body = {"scenarios": [question, {**question, "tp": 8}], **changes}
    problem = check(shared.post(PATH, json=body), 422)
    assert word in problem.detail
