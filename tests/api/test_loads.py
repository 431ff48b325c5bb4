"""Loads that are more than a number: over REST, stored, compared, exported."""

from __future__ import annotations

from typing import Any

import pytest

from api.scenarios.differences import differences
from planner import Scenario, plan
from tests.api.conftest import Client
from tests.api.test_errors import check

LOAD: dict[str, Any] = {
    "model": "meta-llama/Llama-3.1-70B-Instruct",
    "gpu": "h200-sxm",
    "tp": 4,
    "engine": "vllm",
    "concurrency": 32,
    "isl": 1024,
    "osl": 256,
    "name": "plain",
}
LOADS: list[dict[str, Any]] = [
    {"isl": {"lognormal": {"mean": 1024, "cv": 0.6}}},
    {"osl": {"uniform": {"low": 100, "high": 412.5}}},
    {"isl": {"histogram": {"512": 3, "2560": 1}}, "osl": {"trace": [128, 384]}},
    {"speculation": {"drafts": 1, "accepted": 1.75}},
    {"disaggregated": {"tp": 2, "busy": 0.5, "transfer_bytes_per_s": 5e10}},
]


@pytest.mark.parametrize("load", LOADS)
def test_a_load_comes_back_as_asked(client: Client, load: dict[str, Any]) -> None:
    body = {**LOAD, **load, "name": "other"}
    answered = client.post("/v1/plans", json=body)
    assert answered.status_code == 200, answered.text
    assert answered.content == plan(Scenario(**body)).model_dump_json().encode()
    made = client.post("/v1/scenarios", json=body)
    assert made.status_code == 201, made.text
    read = client.get(made.headers["location"]).json()
    loads = {name: read["scenario"][name] for name in load}
    assert Scenario(**{**body, **loads}) == Scenario(**body)
    stored = client.get(f"{made.headers['location']}/plan?recompute=true").json()
    assert stored["plan"] == answered.json()
    assert (stored["stale"], stored["recomputed"]["differences"]) == (False, [])

    plain = client.post("/v1/scenarios", json=LOAD).json()["id"]
    compared = client.post("/v1/comparisons", json={"scenarios": [plain, read["id"]]})
    assert compared.status_code == 201, compared.text
    assert client.get(compared.headers["location"]).content == compared.content
    (attribution,) = compared.json()["comparison"]["attributions"]
    assert [step["fields"] for step in attribution["steps"]] == [[name] for name in load]

    document = client.get("/v1/workspace/export").json()
    taken = client.post("/v1/workspace/import", json=document)
    assert taken.status_code < 300, taken.text
    items = client.get("/v1/scenarios", params={"text": "other"}).json()["items"]
    assert [item["scenario"] for item in items] == [read["scenario"]] * 2


@pytest.mark.parametrize(
    ("load", "field"),
    [
        ({"isl": {"lognormal": {"mean": 1024}}}, "isl.lognormal.cv"),
        ({"isl": {"lognormal": {"mean": "1024", "cv": 1}}}, "isl.lognormal.mean"),
        ({"isl": {"trace": "@lengths.txt"}}, "isl.trace"),
        ({"isl": "@lengths.txt"}, "isl"),
        ({"speculation": {"drafts": 1, "accepted": 2.5}}, "speculation"),
        ({"disaggregated": {"busy": 1}}, "disaggregated.busy"),
        ({"osl": {"histogram": {"0": 1}}}, "osl.histogram.0.[key]"),
    ],
)
def test_a_bad_load_names_its_field(client: Client, load: dict[str, Any], field: str) -> None:
    problem = check(client.post("/v1/plans", json={**LOAD, **load}), 422)
    assert [error.field for error in problem.errors or []] == [field]


def test_a_plan_from_before_a_field_existed_is_no_different_without_it() -> None:
    before = {"scenario": {"tp": 4}, "serving": None}
    after = {"scenario": {"tp": 4, "speculation": None}, "serving": None}
    assert differences(before, after) == ([], 0)
    newer = {"scenario": {"tp": 4, "speculation": {"drafts": 1}}, "serving": None}
    assert [one.figure for one in differences(before, newer)[0]] == ["scenario.speculation.drafts"]
