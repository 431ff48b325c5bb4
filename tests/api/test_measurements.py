"""Measurements of one's own: read, fitted, used by every answer of the workspace and no other."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import update

from api.store.tables import CalibrationRow
from planner.calibration import shipped
from tests.api.conftest import RAN, RESULTS, Client, Keyed, make_settings, started
from tests.api.test_errors import check

PATH = "/v1/measurements"
SAMPLES = Path(__file__).parents[1] / "benchmarks" / "samples"
LINES = {"Content-Type": "application/x-ndjson"}
CSV = {"Content-Type": "text/csv"}
ASKED: dict[str, Any] = {
    "model": RESULTS["model_id"],
    "gpu": "h100-sxm5",
    "engine": "vllm",
    "batch": [32],
    "context": [1280],
}
SLOW = {**RESULTS, "mean_tpot_ms": 3 * RESULTS["mean_tpot_ms"]}


def add(client: Client, results: Any = RESULTS, **options: Any) -> Any:
    response = client.post(PATH, json=results, params=RAN, **options)
    assert response.status_code == 201, response.text
    return response.json()


def plan(client: Client, **options: Any) -> tuple[float, str]:
    response = client.post("/v1/plans", json=ASKED, **options).json()
    return response["points"][0]["tpot_s"]["p50"], response["editions"]["calibration"]


def test_results_are_read_fitted_and_told(client: Client) -> None:
    response = client.post(PATH, json=RESULTS, params=RAN)
    assert response.status_code == 201, response.text
    measurement, calibration = response.json()["measurement"], response.json()["calibration"]
    assert (measurement["format"], measurement["runs"]) == ("vLLM bench serve", 1)
    assert measurement["rows"][0]["measured"] == {"ttft_ms": 182.4, "tpot_ms": 11.86}
    assert calibration["edition"].startswith(f"{shipped().edition}+own.1.")
    groups = {(e["gpu"], e["engine"], e["quantity"]): e for e in calibration["errors"]}
    assert set(groups) == {("h100-sxm5", "vllm", q) for q in ("ttft_ms", "tpot_ms")}
    assert all(0 <= e["after"] < e["before"] and e["runs"] == 1 for e in groups.values())
    assert response.headers["location"] == f"{PATH}/{measurement['id']}"
    assert client.get(response.headers["location"]).json() == measurement
    page = client.get(PATH).json()
    assert page["items"] == [{k: v for k, v in measurement.items() if k != "rows"}]
    assert page["calibration"] == calibration


@pytest.mark.parametrize(
    ("name", "headers", "query"),
    [
        ("vllm_append.jsonl", LINES, RAN),
        ("sglang_bench_serving.jsonl", LINES, RAN),
        ("vllm_append.jsonl", {"Content-Type": "application/json"}, RAN),
        ("llama_bench.csv", CSV, {"model": "Llama-3.1-8B-Instruct"}),
        ("rows.csv", CSV, {}),
        ("guidellm.json", {"Content-Type": "application/json"}, {**RAN, "engine": "vllm"}),
    ],
)
def test_all_formats_are_told_by_content(
    client: Client, name: str, headers: dict[str, str], query: dict[str, Any]
) -> None:
    body = (SAMPLES / name).read_bytes()
    response = client.post(PATH, content=body, headers=headers, params=query)
    assert response.status_code == 201, response.text
    assert response.json()["calibration"]["runs"] == response.json()["measurement"]["runs"] > 0


def test_every_later_answer_uses_the_factors_and_says_so(client: Client) -> None:
    before, edition = plan(client)
    assert edition == shipped().edition
    made = add(client, SLOW)
    edition = made["calibration"]["edition"]
    slower, used = plan(client)
    assert (slower > 1.2 * before, used) == (True, edition)
    swept = client.post("/v1/sweeps", json={"scenario": ASKED}).json()
    assert swept["columns"]["tpot_p50_s"][0] == pytest.approx(slower)
    chosen = client.post(
        "/v1/recommendations",
        json={"model": ASKED["model"], "gpu": ["h100-sxm5"], "engine": "vllm"},
    ).json()
    compared = client.post(
        "/v1/comparisons", json={"scenarios": [ASKED, {**ASKED, "gpu": "h200-sxm"}]}
    ).json()["comparison"]
    scenario = client.post("/v1/scenarios", json=ASKED).json()
    about = client.get("/v1/about").json()
    for response in (swept, chosen, compared, scenario, about):
        assert response["editions"]["calibration"] == edition


def test_a_stored_plan_is_stale_when_the_calibration_changes(client: Client) -> None:
    ident = client.post("/v1/scenarios", json=ASKED).json()["id"]
    path = f"/v1/scenarios/{ident}/plan"
    stored = client.get(path).json()
    assert stored["stale"] is False
    made = add(client)
    stale = client.get(path, params={"recompute": True}).json()
    assert (stale["stale"], stale["plan"]) == (True, stored["plan"])
    assert stale["because"] == [
        {
            "what": "calibration",
            "computed_with": shipped().edition,
            "current": made["calibration"]["edition"],
        }
    ]
    assert stale["recomputed"]["differences"]
    again = client.post(f"/v1/scenarios/{ident}/recompute", headers={"If-Match": "*"})
    assert again.json()["editions"]["calibration"] == made["calibration"]["edition"]
    assert client.get(path).json()["stale"] is False
    assert client.delete(f"{PATH}/{made['measurement']['id']}").status_code == 204
    assert client.get(path).json()["stale"] is True
    assert client.get(path, params={"revision": 1}).json()["stale"] is False


def test_deleting_refits_without_it(client: Client) -> None:
    shipped_plan = plan(client)
    first = add(client)
    with_first = plan(client)
    second = add(client, SLOW)
    assert len({shipped_plan, with_first, plan(client)}) == 3
    assert second["calibration"]["runs"] == 2
    for made, then in ((second, with_first), (first, shipped_plan)):
        path = f"{PATH}/{made['measurement']['id']}"
        assert client.delete(path).status_code == 204
        assert plan(client) == then
        check(client.get(path), 404)
        check(client.delete(path), 404)
    assert client.get(PATH).json() == {"items": [], "next_cursor": None, "calibration": None}


def test_a_run_added_twice_counts_once(client: Client) -> None:
    first, second = add(client), add(client)
    assert second["calibration"]["runs"] == 1
    assert second["calibration"]["factors"] == first["calibration"]["factors"]


def test_pages_of_measurements(client: Client) -> None:
    ids = [add(client)["measurement"]["id"] for _ in range(3)]
    page = client.get(PATH, params={"limit": 2}).json()
    rest = client.get(PATH, params={"limit": 2, "cursor": page["next_cursor"]}).json()
    assert [item["id"] for item in (*page["items"], *rest["items"])] == ids
    assert rest["next_cursor"] is None
    check(client.get(PATH, params={"cursor": "nope"}), 400)


def test_a_key_makes_one_measurement(client: Client) -> None:
    key = {"Idempotency-Key": "k"}
    first = client.post(PATH, json=RESULTS, params=RAN, headers=key)
    again = client.post(PATH, json=RESULTS, params=RAN, headers=key)
    assert again.json() == first.json()
    assert again.headers["idempotency-replayed"] == "true"
    check(client.post(PATH, json=RESULTS, params={**RAN, "tp": 2}, headers=key), 422)
    assert len(client.get(PATH).json()["items"]) == 1


def test_other_workspaces_answer_as_before(keyed: Keyed) -> None:
    client = keyed.client
    before = plan(client, headers=keyed.stranger)
    made = add(client, SLOW, headers=keyed.writer)
    assert plan(client, headers=keyed.stranger) == before
    assert plan(client, headers=keyed.writer)[1] == made["calibration"]["edition"]
    assert plan(client, headers=keyed.reader) == plan(client, headers=keyed.writer)
    assert plan(client, headers=keyed.stranger) == before
    theirs = add(client, RESULTS, headers=keyed.stranger)["calibration"]["edition"]
    assert plan(client, headers=keyed.stranger)[1] == theirs
    assert plan(client, headers=keyed.writer)[1] == made["calibration"]["edition"]


def test_workspaces_at_once_do_not_mix(keyed: Keyed) -> None:
    client = keyed.client
    add(client, SLOW, headers=keyed.writer)
    add(client, RESULTS, headers=keyed.stranger)
    alone = {
        who["Authorization"]: plan(client, headers=who) for who in (keyed.writer, keyed.stranger)
    }

    def ask(number: int) -> bool:
        who = (keyed.writer, keyed.stranger)[number % 2]
        return plan(client, headers=who) == alone[who["Authorization"]]

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(ask, range(40)))


def test_measurements_added_at_once_all_count(client: Client) -> None:
    bodies = [{**RESULTS, "mean_tpot_ms": 11.0 + n / 10} for n in range(4)]

    def send(body: dict[str, Any]) -> int:
        while (response := client.post(PATH, json=body, params=RAN)).status_code == 503:
            assert response.headers["retry-after"] == "1"
        return int(response.status_code)

    with ThreadPoolExecutor(4) as pool:
        assert set(pool.map(send, bodies)) == {201}
    page = client.get(PATH).json()
    assert (len(page["items"]), page["calibration"]["runs"]) == (4, 4)


@pytest.mark.parametrize(
    "body",
    [
        {"a": 1},
        [],
        [1],
        1,
        "x",
        [{}],
        {**RESULTS, "mean_tpot_ms": "no"},
        {**RESULTS, "mean_tpot_ms": -1.0},
        {**RESULTS, "model_id": "nope/none"},
        {**RESULTS, "backend": "a\u0007b"},
    ],
)
def test_results_that_are_none_are_refused(shared: Client, body: Any) -> None:
    check(shared.post(PATH, json=body, params=RAN), 422)
    assert shared.get(PATH).json()["items"] == []


def test_a_refusal_names_what_is_accepted(shared: Client) -> None:
    problem = check(shared.post(PATH, json={"a": 1}, params=RAN), 422)
    assert "vLLM bench serve JSON" in problem.detail
    assert "SGLang" in problem.detail
    missing = check(shared.post(PATH, json=RESULTS), 422)
    assert missing.errors[0].field == "gpu"
    assert "?gpu=" in missing.detail
    check(shared.post(PATH, json=RESULTS, params={**RAN, "gpu": "nope"}), 422)
    odd = check(shared.post(PATH, json=RESULTS, params={**RAN, "weights": "foo"}), 422)
    assert odd.errors[0].field == "weights"
    assert "accepted: fp32, bf16" in odd.detail
    check(shared.post(PATH, json=RESULTS, params={**RAN, "tp": "x"}), 400)


ROWS = (SAMPLES / "rows.csv").read_text()


@pytest.mark.parametrize(
    ("old", "new", "status"),
    [
        ("14.2", "x", 422),
        ("14.2", "nan", 422),
        ("14.2", "-1", 422),
        ("1024,512,16", "1024,512,x", 422),
        ("1024,512,16", "inf,512,16", 422),
        ("1024,512,16", "1024,512,0", 422),
        ("h100-sxm5", "nope", 422),
        ("0.18.0", "0\0", 422),
        ("0.18.0", "\ud800", 400),
        ("isl", "other", 422),
        ("X1", '"' + "x" * 200_000 + '"', 422),
    ],
)
def test_rows_that_are_none_are_refused(shared: Client, old: str, new: str, status: int) -> None:
    body = ROWS.replace(old, new).encode("utf-8", "surrogatepass")
    check(shared.post(PATH, content=body, headers=CSV), status)
    assert shared.get(PATH).json()["items"] == []


@pytest.mark.parametrize("field", ["model", "gpu"])
@pytest.mark.parametrize("name", ["/etc/hostname", "pyproject.toml", "config.json", "x.gguf", "."])
def test_results_open_no_file(
    shared: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, field: str, name: str
) -> None:
    from tests.api.conftest import CONFIG

    (tmp_path / "config.json").write_text(json.dumps(CONFIG))
    monkeypatch.chdir(tmp_path)
    check(shared.post(PATH, json=RESULTS, params={**RAN, field: name}), 422)
    key = {"model": "Qwen/Qwen3-32B", "gpu": "h100-sxm5"}[field]
    check(shared.post(PATH, content=ROWS.replace(key, name), headers=CSV), 422)


def test_a_row_names_no_config_file(
    client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tests.api.conftest import CONFIG

    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "config.json").write_text(json.dumps(CONFIG))
    monkeypatch.chdir(tmp_path)
    rows = (
        "row,model,config_file,gpu,n_gpus,engine,batch,context,metric,value\n"
        "1,Qwen/Qwen3-8B,a--config.json.json,h100-sxm5,1,vllm,1,1024,decode_tokens_per_s,100\n"
    )
    response = client.post(PATH, content=rows, headers=CSV)
    assert response.status_code == 201, response.text
    assert "config_file" not in response.json()["measurement"]["rows"][0]["inputs"]
    assert any(
        "qwen" in key for level in response.json()["calibration"]["factors"] for key in level
    )


def test_a_body_that_is_not_what_it_says_is_400(shared: Client) -> None:
    kind = {"Content-Type": "application/json"}
    check(shared.post(PATH, content=ROWS, headers=kind), 400)
    check(shared.post(PATH, content=b"\xff\xfe", headers=CSV), 400)
    check(shared.post(PATH, content=ROWS, headers={"Content-Type": "text/plain"}), 415)


def test_more_runs_than_the_limit_are_refused(tmp_path: Path) -> None:
    settings = make_settings(f"sqlite:///{tmp_path / 'planner.db'}", max_measured_runs=1)
    with started(settings) as client:
        problem = check(client.post(PATH, content=ROWS, headers=CSV), 422)
        assert "PLANNER_MAX_MEASURED_RUNS" in problem.detail
        check(client.post(PATH, content=ROWS * 3, headers=CSV), 422)
        add(client)
        check(client.post(PATH, json=SLOW, params=RAN), 422)
        assert client.get("/v1/about").json()["limits"]["max_measured_runs"] == 1


def test_results_may_be_larger_than_other_bodies(client: Client) -> None:
    add(client, {**RESULTS, "itls": [0.0123456] * 200_000})


def test_an_export_brings_the_calibration_along(keyed: Keyed, client: Client) -> None:
    for item in keyed.client.get(PATH, headers=keyed.writer).json()["items"]:
        keyed.client.delete(f"{PATH}/{item['id']}", headers=keyed.writer)
    made = add(keyed.client, SLOW, headers=keyed.writer)
    export = keyed.client.get("/v1/workspace/export", headers=keyed.writer).json()
    response = client.post("/v1/workspace/import", json=export)
    assert (response.status_code, response.json()["measurements"]) == (201, 1)
    assert client.get(PATH).json()["calibration"] == made["calibration"]
    assert plan(client) == plan(keyed.client, headers=keyed.writer)
    export["measurements"][0]["rows"][0]["inputs"]["model"] = "/etc/hostname"
    check(client.post("/v1/workspace/import", json=export), 422)
    assert len(client.get(PATH).json()["items"]) == 1


def test_another_release_refits_once(client: Client) -> None:
    made = add(client)["calibration"]
    old = {**made, "shipped": "2020-01-01", "edition": "2020-01-01+own.1.x", "factors": [{}] * 3}
    database = client.app.state.services.database
    with database.writing() as session:
        session.execute(update(CalibrationRow).values(document=json.dumps(old)))
    assert plan(client)[1] == made["edition"]
    assert client.get(PATH).json()["calibration"] == made


def test_without_the_store_the_last_calibration_counts(tmp_path: Path) -> None:
    settings = make_settings(f"sqlite:///{tmp_path / 'a' / 'planner.db'}")
    with started(settings) as client:
        edition = add(client)["calibration"]["edition"]
    with started(settings) as client:
        client.app.state.services.database.close()
        (tmp_path / "a").rename(tmp_path / "b")
        assert plan(client)[1] == edition
