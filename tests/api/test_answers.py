"""Answers that are not stored: plans, sweeps in three forms, recommendations, rooflines."""

from __future__ import annotations

import csv
import io
from typing import Any

import pytest

from planner import Scenario, plan
from planner.plans.sweep import SweepRequest, sweep
from tests.api.conftest import CARD, CONFIG, Client
from tests.api.test_errors import check


def test_a_plan_is_the_librarys(shared: Client, question: dict[str, Any]) -> None:
    response = shared.post("/v1/plans", json=question)
    assert response.status_code == 200
    assert response.content == plan(Scenario(**question)).model_dump_json().encode()
    advised = shared.post("/v1/plans?advice=true", json=question)
    wanted = plan(Scenario(**question), advice=True)
    assert advised.content == wanted.model_dump_json().encode()
    assert wanted.advice


def test_a_scalar_is_a_list_of_one(shared: Client, question: dict[str, Any]) -> None:
    response = shared.post("/v1/plans", json={**question, "batch": 4, "context": 1024}).json()
    assert [(p["batch"], p["context"]) for p in response["points"]] == [(4, 1024)]


SWEEP = {"gpu": ["h100-sxm5", "h200-sxm"], "tp": [2, 4, 5], "batch": [1, 64]}


def test_a_sweep_is_the_librarys(shared: Client, question: dict[str, Any]) -> None:
    body = {"scenario": question, **SWEEP}
    response = shared.post("/v1/sweeps", json=body).json()
    assert response == sweep(SweepRequest.model_validate(body)).model_dump(mode="json")
    assert response["rows"] == 12
    refused = [e for e in response["columns"]["error"] if e]
    assert len(refused) == 4
    assert "tp" in refused[0]


def test_a_sweep_as_csv(shared: Client, question: dict[str, Any]) -> None:
    body = {"scenario": question, **SWEEP}
    columns = shared.post("/v1/sweeps", json=body).json()["columns"]
    response = shared.post("/v1/sweeps", json=body, headers={"Accept": "text/csv"})
    assert response.headers["content-type"].startswith("text/csv")
    rows = list(csv.DictReader(io.StringIO(response.text)))
    assert list(rows[0]) == list(columns)
    answer = [float(row["tokens_per_s"]) if row["tokens_per_s"] else None for row in rows]
    assert answer == columns["tokens_per_s"]


def test_a_sweep_as_parquet(shared: Client, question: dict[str, Any]) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    body = {"scenario": question, **SWEEP}
    columns = shared.post("/v1/sweeps", json=body).json()["columns"]
    accept = {"Accept": "text/csv;q=0.1, application/vnd.apache.parquet"}
    response = shared.post("/v1/sweeps", json=body, headers=accept)
    assert response.headers["content-type"] == "application/vnd.apache.parquet"
    written = parquet.read_table(io.BytesIO(response.content))
    assert written.to_pydict() == columns
    impossible = {"scenario": question, "tp": [3]}
    refused = shared.post("/v1/sweeps", json=impossible, headers=accept)
    assert parquet.read_table(io.BytesIO(refused.content)).schema == written.schema


def test_without_a_writer_parquet_is_406(
    shared: Client, question: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("api.plans.tables.find_spec", lambda _: None)
    accept = {"Accept": "application/vnd.apache.parquet"}
    body = {"scenario": question, "tp": [4]}
    check(shared.post("/v1/sweeps", json=body, headers=accept), 406)


@pytest.mark.parametrize(
    ("accept", "kind"),
    [
        ("*/*", "application/json"),
        ("text/*", "text/csv"),
        ("", "application/json"),
        ("text/csv, application/json;q=0.9", "text/csv"),
        ("text/csv;q=0.5, application/json", "application/json"),
        ("application/json;q=0, text/csv", "text/csv"),
        ("text/csv;q=x, */*", "application/json"),
    ],
)
def test_accept_chooses_the_form(
    shared: Client, question: dict[str, Any], accept: str, kind: str
) -> None:
    body = {"scenario": question, "tp": [4], "batch": [1]}
    response = shared.post("/v1/sweeps", json=body, headers={"Accept": accept})
    assert response.headers["content-type"].split(";")[0] == kind


def test_recommendations_name_a_batch_and_what_binds_it(shared: Client) -> None:
    body = {
        "model": "meta-llama/Llama-3.1-8B-Instruct",
        "gpu": ["h100-sxm5", "b200-sxm"],
        "context": 4096,
        "tpot_ms": 20,
    }
    response = shared.post("/v1/recommendations", json=body).json()
    assert {c["gpu"] for c in response["choices"]} == {"h100-sxm5", "b200-sxm"}
    for choice in response["choices"]:
        assert choice["batch"] >= 1
        assert choice["tpot_s"]["p50"] <= 0.020
    assert response["request"]["tpot_ms"] == 20


@pytest.mark.parametrize("phase", ["decode", "prefill"])
def test_a_roofline_places_kernels(shared: Client, phase: str) -> None:
    body = {"model": "meta-llama/Llama-3.1-8B-Instruct", "gpu": "h100-sxm5", "phase": phase}
    response = shared.post("/v1/roofline", json=body).json()
    bounds = {k["name"]: k["bound"] for k in response["kernels"]}
    assert bounds["attention"] == ("memory" if phase == "decode" else "compute")


def own(client: Client) -> None:
    client.post("/v1/models", json={"id": "mine", "config": CONFIG})
    client.post("/v1/accelerators", json={"id": "card", "spec": CARD})


def test_own_objects_are_usable_by_id_everywhere(shared: Client, question: dict[str, Any]) -> None:
    own(shared)
    own_scenario = {**question, "model": "own/mine", "gpu": "own/card", "tp": 1}
    answer = shared.post("/v1/plans", json=own_scenario).json()
    inline = shared.post("/v1/plans", json={**own_scenario, "model": CONFIG, "gpu": CARD}).json()
    assert (answer["scenario"]["model"], answer["scenario"]["gpu"]) == ("own/mine", "own/card")
    assert answer["points"] == inline["points"]
    stored = shared.post("/v1/scenarios", json=own_scenario).json()
    assert stored["scenario"]["model"] == "own/mine"
    listed = shared.get("/v1/scenarios?model=own/mine&gpu=own/card").json()["items"]
    assert [item["id"] for item in listed] == [stored["id"]]
    rows = shared.post(
        "/v1/sweeps", json={"scenario": own_scenario, "gpu": ["own/card", "h200-sxm"]}
    )
    assert set(rows.json()["columns"]["gpu"]) == {"own/card", "h200-sxm"}
    for body in ({"model": "own/mine", "gpu": ["own/card"]}, {"model": "own/mine", "gpu": [CARD]}):
        choices = shared.post("/v1/recommendations", json=body).json()["choices"]
        assert [c["gpu"] for c in choices] == [
            "own/card" if body["gpu"] == ["own/card"] else "h100-sxm5"
        ]
    place = {"model": "own/mine", "gpu": "own/card"}
    assert shared.post("/v1/roofline", json=place).json()["model"] == "own/mine"
    compared = shared.post(
        "/v1/comparisons", json={"scenarios": [stored["id"], {**own_scenario, "gpu": "h200-sxm"}]}
    )
    steps = compared.json()["comparison"]["attributions"][0]["steps"]
    assert steps == [
        {"fields": ["gpu"], "before": {"gpu": "own/card"}, "after": {"gpu": "h200-sxm"}}
    ]
    assert "hidden_size" not in compared.text


def test_an_unknown_own_id_names_those_there_are(shared: Client, question: dict[str, Any]) -> None:
    own(shared)
    problem = check(shared.post("/v1/plans", json={**question, "model": "own/nope"}), 422)
    assert problem.errors[0].field == "model"
    assert "own/mine" in problem.detail


def test_catalogues_are_listed_with_sources(shared: Client) -> None:
    models = shared.get("/v1/models?text=llama-3.1-70b").json()
    names = {name for m in models["items"] for name in (m["id"], *m["aliases"])}
    assert "meta-llama/Llama-3.1-70B-Instruct" in names
    assert all(m["source"] for m in models["items"])
    cards = shared.get("/v1/accelerators?vendor=amd&min_memory_bytes=1e11").json()["items"]
    assert cards
    assert {c["vendor"] for c in cards} == {"AMD"}
    assert all(c["memory_bytes"] >= 1e11 and c["sources"] for c in cards)
    one = shared.get("/v1/models/LLAMA-3.1-70b-instruct").json()
    assert one["id"] == "meta-llama/Llama-3.1-70B-Instruct"
    assert shared.get("/v1/accelerators/H100%20SXM5").json()["id"] == "h100-sxm5"


def test_own_objects_come_first_match_filters_and_never_change(client: Client) -> None:
    own(client)
    again = client.post("/v1/models", json={"id": "mine", "config": CONFIG})
    assert again.status_code == 201
    other = {"id": "mine", "config": {**CONFIG, "num_hidden_layers": 16}}
    check(client.post("/v1/models", json=other), 409)
    assert client.get("/v1/models").json()["items"][0]["id"] == "own/mine"
    assert client.get("/v1/accelerators?format=fp8").json()["items"][0]["id"] == "own/card"
    for query in ("family=mamba", "kind=moe", "text=zzz"):
        origins = {m["origin"] for m in client.get(f"/v1/models?{query}").json()["items"]}
        assert "own" not in origins
    for query in (
        "vendor=amd",
        "kind=cpu",
        "format=nvfp4",
        "status=x",
        "text=zz",
        "min_memory_bytes=1e13",
    ):
        listed = client.get(f"/v1/accelerators?{query}").json()["items"]
        assert "own" not in {c["origin"] for c in listed}


def test_an_own_object_in_use_stays(client: Client, question: dict[str, Any]) -> None:
    own(client)
    own_scenario = {**question, "model": "own/mine", "tp": 1}
    path = client.post("/v1/scenarios", json=own_scenario).headers["location"]
    check(client.delete("/v1/models/own/mine"), 409)
    client.delete(path, headers={"If-Match": "*"})
    check(client.delete("/v1/models/own/mine"), 409)
    client.post(f"{path}/restore", headers={"If-Match": "*"})
    client.put(path, json=question, headers={"If-Match": "*"})
    assert client.delete("/v1/models/own/mine").status_code == 204
    assert client.delete("/v1/accelerators/own/card").status_code == 204
    check(client.get("/v1/models/own/mine"), 404)
    # The first revision still has its answer, and says that what it rests on is gone.
    old = client.get(f"{path}/plan?revision=1").json()
    assert [(c["what"], c["current"]) for c in old["because"]] == [("own model", "deleted")]
    assert old["plan"]["scenario"]["model"] == "own/mine"
    check(client.get(f"{path}/plan?revision=1&recompute=true"), 422)


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/models", {"id": "Bad Id", "config": CONFIG}),
        ("/v1/models", {"id": "x\n", "config": CONFIG}),
        ("/v1/models", {"id": "x", "config": {}}),
        ("/v1/models", {"id": "x", "config": {"model_type": "llama"}}),
        ("/v1/accelerators", {"id": "x", "spec": {"base": "nope", "source": "s"}}),
        ("/v1/accelerators", {"id": "x", "spec": {"memory_bytes": -1, "source": "s"}}),
    ],
)
def test_what_the_planner_cannot_use_is_not_stored(
    shared: Client, path: str, body: dict[str, Any]
) -> None:
    check(shared.post(path, json=body), 422)


def test_a_catalogue_entry_is_not_deleted(shared: Client) -> None:
    check(shared.delete("/v1/accelerators/h100-sxm5"), 404)
    check(shared.delete("/v1/models/meta-llama/Llama-3.1-70B-Instruct"), 404)
    assert shared.get("/v1/accelerators/h100-sxm5").status_code == 200
