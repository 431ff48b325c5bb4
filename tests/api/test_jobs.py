"""Long work as jobs: every kind, on both databases, with the answers of the routes beside them."""

from __future__ import annotations

import io
import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from sqlalchemy import select, update

from api.jobs.kinds import KINDS, JobKind
from api.jobs.reports import Progress
from api.jobs.rows import LEASE_S
from api.store.tables import CalibrationRow, JobRow, PieceRow, now
from tests.api.conftest import QUESTION, RAN, RESULTS, Client, Keyed, make_settings, started
from tests.api.test_errors import check

SWEEP: dict[str, Any] = {"scenario": QUESTION, "gpu": ["h100-sxm5", "h200-sxm"], "tp": [4, 8]}


@pytest.fixture(scope="module")
def working(shared_url: str) -> Iterator[Client]:
    """A service that does jobs."""
    with started(make_settings(shared_url, lane_jobs=1)) as client:
        yield client


def ask(client: Client, **job: Any) -> str:
    answer = client.post("/v1/jobs", json=job)
    assert answer.status_code == 202, answer.text
    assert answer.json()["state"] == "queued"
    assert answer.headers["location"] == f"/v1/jobs/{answer.json()['id']}"
    return str(answer.json()["id"])


def ended(client: Client, ident: str, seconds: float = 60) -> dict[str, Any]:
    """A job once it has ended."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        job: dict[str, Any] = client.get(f"/v1/jobs/{ident}").json()
        if job["finished_at"]:
            return job
        time.sleep(0.05)
    raise AssertionError(f"not ended: {job}")


def result(client: Client, ident: str) -> Any:
    job = ended(client, ident)
    assert (job["state"], job["error"]) == ("done", None)
    answer = client.get(f"/v1/jobs/{ident}/result")
    assert answer.status_code == 200
    assert answer.headers["content-type"] == job["media_type"]
    assert len(answer.content) == job["result_bytes"] == int(answer.headers["content-length"])
    return answer


def test_a_sweep_answers_as_its_route_does(working: Client) -> None:
    ident = ask(working, kind="sweep", question=SWEEP)
    assert result(working, ident).json() == working.post("/v1/sweeps", json=SWEEP).json()
    job = working.get(f"/v1/jobs/{ident}").json()
    assert (job["done"], job["total"], job["attempts"]) == (4, 4, 1)  # 2 accelerators, 2 splits


def test_a_sweep_comes_as_parquet(working: Client) -> None:
    polars = pytest.importorskip("polars")
    ident = ask(working, kind="sweep", question=SWEEP, result="parquet")
    table = polars.read_parquet(io.BytesIO(result(working, ident).content))
    columns = working.post("/v1/sweeps", json=SWEEP).json()["columns"]
    assert table["tpot_p50_s"].to_list() == columns["tpot_p50_s"]
    assert table["gpu"].to_list() == columns["gpu"]


def test_a_search_answers_as_its_route_does(working: Client) -> None:
    question = {"model": "meta-llama/Llama-3.1-8B-Instruct", "gpu": ["l40s", "h100-sxm5"]}
    ident = ask(working, kind="recommendation", question=question)
    expected = working.post("/v1/recommendations", json=question).json()
    assert result(working, ident).json() == expected


def test_a_fleet_is_that_of_the_library(working: Client) -> None:
    from planner.plans.fleet import fleet
    from planner.plans.fleet_request import FleetRequest

    question = {
        "pools": [{"model": "meta-llama/Llama-3.1-8B-Instruct", "gpu": "h100-sxm5"}],
        "requests_per_s_by_window": [1.0, 4.0, 2.0],
        "isl": 1000.0,
        "osl": 100.0,
    }
    ident = ask(working, kind="fleet", question=question)
    expected = fleet(FleetRequest.model_validate(question)).model_dump(mode="json")
    assert result(working, ident).json() == expected


def test_a_simulation_is_that_of_the_library(working: Client) -> None:
    from planner import Scenario
    from planner.deployment import deployment_of
    from planner.plans.confirm import answer_simulated, simulated

    serving = {"isl": 512, "osl": 64, "concurrency": 8, "engine": "vllm"}
    question = {"model": "meta-llama/Llama-3.1-8B-Instruct", "gpu": "h100-sxm5", **serving}
    ident = ask(working, kind="simulation", question=question)
    scenario = Scenario(**question)
    seen, rate = simulated(scenario, deployment_of(scenario))
    expected = answer_simulated(seen, rate, scenario).model_dump(mode="json")
    assert result(working, ident).json()["simulated"] == expected


@pytest.mark.slow
def test_refits_that_wait_are_fitted_once(database_url: str) -> None:
    """Three are asked for while nobody works; the service that starts then fits all at once."""
    with started(make_settings(database_url)) as idle:
        runs = [{**RESULTS, "mean_tpot_ms": ms} for ms in (11.0, 12.0, 13.0)]
        asked = [ask(idle, kind="refit", question={"results": run, "ran": RAN}) for run in runs]
    with started(make_settings(database_url, lane_jobs=1)) as client:
        added = [result(client, ident).json() for ident in asked]
        editions = {one["calibration"]["edition"] for one in added}
        assert len(client.get("/v1/measurements").json()["items"]) == 3
        assert {client.get("/v1/about").json()["editions"]["calibration"]} == editions
        assert editions.pop().partition("+own.")[2].startswith("3.")
        with client.app.state.services.database.reading() as session:
            assert session.scalar(select(CalibrationRow.number)) == 1, "one change, one fit"


def test_an_export_is_that_of_its_route(working: Client) -> None:
    working.post("/v1/scenarios", json=QUESTION)
    lines = result(working, ask(working, kind="export")).text.splitlines()
    expected = working.get("/v1/workspace/lines").text.splitlines()
    assert lines[1:] == expected[1:]
    assert lines[0].startswith('{"format": "decode-planner-lines/1"')


REFUSED: tuple[tuple[dict[str, Any], str], ...] = (
    ({"kind": "nothing"}, "kind"),
    ({"kind": "sweep"}, "question"),
    ({"kind": "sweep", "question": {**SWEEP, "gpu": ["none-such"]}}, "none-such"),
    ({"kind": "sweep", "question": SWEEP, "result": "xlsx"}, "result"),
    ({"kind": "simulation", "question": QUESTION}, "isl, osl"),
    (
        {
            "kind": "fleet",
            "question": {
                "pools": [{"model": "meta-llama/Llama-3.1-8B-Instruct", "gpu": "h100-sxm5"}],
                "trace": "/etc/passwd",
            },
        },
        "opens no files",
    ),
    ({"kind": "refit", "question": {"results": {"a": 1}}}, ""),
    ({"kind": "export", "more": 1}, "more"),
)


@pytest.mark.parametrize(("job", "named"), REFUSED)
def test_what_is_refused_is_refused_at_once(
    shared: Client, job: dict[str, Any], named: str
) -> None:
    problem = check(shared.post("/v1/jobs", json=job), 422)
    assert named in problem.detail


def test_a_job_that_waits_is_cancelled_at_once(client: Client) -> None:
    ident = ask(client, kind="sweep", question=SWEEP)
    check(client.get(f"/v1/jobs/{ident}/result"), 409)
    cancelled = client.post(f"/v1/jobs/{ident}/cancel").json()
    assert cancelled["state"] == "cancelled"
    assert cancelled["expires_at"] > cancelled["finished_at"]
    check(client.get(f"/v1/jobs/{ident}/result"), 409)
    assert client.post(f"/v1/jobs/{ident}/cancel").json() == cancelled
    assert client.delete(f"/v1/jobs/{ident}").status_code == 204
    check(client.get(f"/v1/jobs/{ident}"), 404)


def test_the_list_is_paged_and_filtered(client: Client) -> None:
    made = [ask(client, kind="export") for _ in range(3)]
    client.post(f"/v1/jobs/{made[0]}/cancel")
    first = client.get("/v1/jobs?limit=2").json()
    rest = client.get(f"/v1/jobs?limit=2&cursor={first['next_cursor']}").json()
    assert [item["id"] for item in (*first["items"], *rest["items"])] == made
    assert rest["next_cursor"] is None
    queued = client.get("/v1/jobs?state=queued").json()["items"]
    assert [item["id"] for item in queued] == made[1:]
    check(client.get("/v1/jobs?state=lost"), 400)


def test_a_repeated_request_is_one_job(client: Client) -> None:
    key = {"Idempotency-Key": "job"}
    first, second = (
        client.post("/v1/jobs", json={"kind": "export"}, headers=key) for _ in range(2)
    )
    assert first.json() == second.json()
    assert second.headers["idempotency-replayed"] == "true"
    assert len(client.get("/v1/jobs").json()["items"]) == 1


def test_a_workspace_has_so_many_jobs(database_url: str) -> None:
    few = make_settings(database_url, max_jobs_unfinished=2, max_jobs_kept=3)
    with started(few) as client:
        made = [ask(client, kind="export") for _ in range(2)]
        problem = check(client.post("/v1/jobs", json={"kind": "export"}), 409)
        assert "PLANNER_MAX_JOBS_UNFINISHED" in problem.detail
        for _ in range(3):  # each cancelled one makes room, and the oldest ended one is dropped
            client.post(f"/v1/jobs/{made[-2]}/cancel")
            made.append(ask(client, kind="export"))
        listed = [item["id"] for item in client.get("/v1/jobs").json()["items"]]
        assert listed == made[-3:]


def test_jobs_of_another_workspace_do_not_exist(keyed: Keyed) -> None:
    ours, theirs = {"headers": keyed.writer}, {"headers": keyed.stranger}
    made = keyed.client.post("/v1/jobs", json={"kind": "export"}, **ours).json()["id"]
    for path in (f"/v1/jobs/{made}", f"/v1/jobs/{made}/result"):
        check(keyed.client.get(path, **theirs), 404)
    check(keyed.client.post(f"/v1/jobs/{made}/cancel", **theirs), 404)
    check(keyed.client.delete(f"/v1/jobs/{made}", **theirs), 404)
    assert keyed.client.get("/v1/jobs", **theirs).json()["items"] == []
    check(keyed.client.post("/v1/jobs", json={"kind": "export"}, headers=keyed.reader), 403)
    assert keyed.client.delete(f"/v1/jobs/{made}", **ours).status_code == 204  # others would do it


def test_an_expired_job_is_forgotten(client: Client) -> None:
    ident = ask(client, kind="export")
    client.post(f"/v1/jobs/{ident}/cancel")
    workshop = client.app.state.workshop
    workshop.keep()
    assert client.get(f"/v1/jobs/{ident}").status_code == 200
    with client.app.state.services.database.writing() as session:
        session.execute(update(JobRow).values(expires_at=now()))
    workshop.keep()
    check(client.get(f"/v1/jobs/{ident}"), 404)


@pytest.mark.parametrize(
    ("attempts", "cancelled", "state"),
    [(1, False, "queued"), (2, False, "failed"), (1, True, "cancelled")],
)
def test_a_job_of_a_dead_worker_is_begun_anew_or_fails(
    client: Client, attempts: int, cancelled: bool, state: str
) -> None:
    ident = ask(client, kind="export")
    rows = client.app.state.workshop.rows
    claimed = rows.claim(ident)
    assert claimed is not None
    assert rows.claim(ident) is None, "one service has it"
    assert rows.recover() == [], "it is being worked on"
    with rows.database.writing() as session:
        silent = now().timestamp() - LEASE_S - 1
        heard = now().fromtimestamp(silent, tz=now().tzinfo)
        values = {"heard_at": heard, "attempts": attempts, "cancelled": cancelled}
        session.execute(update(JobRow).values(**values))
    assert rows.recover() == ([ident] if state == "queued" else [])
    job = client.get(f"/v1/jobs/{ident}").json()
    assert job["state"] == state
    assert (job["error"] is not None) == (state == "failed")
    assert not rows.finish(ident, 0), "what was given up writes nothing any more"
    assert not rows.add_piece(ident, 1, b"late")


def _slow_work(send: Any) -> None:
    """Work of a test: a little of a result, then more than a minute of nothing."""
    send(Progress(1, 100))
    send(b"begun")
    time.sleep(100)


def _ending_work(send: Any) -> None:
    send(b"half")
    os.kill(os.getpid(), signal.SIGKILL)


def _broken_work(send: Any) -> None:
    send(1 // 0)


def _large_work(send: Any) -> None:
    for _ in range(3):
        send(bytes(500))


@contextmanager
def doing(monkeypatch: pytest.MonkeyPatch, work: Any) -> Iterator[None]:
    """Exports are other work for a while."""
    with monkeypatch.context() as patch:
        patch.setitem(KINDS, "export", JobKind(lambda *_: (work, ()), lambda _: "text/plain"))
        yield


def test_a_running_job_is_cancelled(working: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    with doing(monkeypatch, _slow_work):
        ident = ask(working, kind="export")
        while working.get(f"/v1/jobs/{ident}").json()["done"] == 0:
            time.sleep(0.05)
        assert working.post(f"/v1/jobs/{ident}/cancel").json()["state"] == "running"
        job = ended(working, ident)
    assert (job["state"], job["done"], job["total"]) == ("cancelled", 1, 100)
    check(working.get(f"/v1/jobs/{ident}/result"), 409)
    assert working.app.state.workshop.runner.processes.running == set()


@pytest.mark.slow
def test_a_job_that_is_deleted_while_it_runs_ends(
    working: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    with doing(monkeypatch, _slow_work):
        ident = ask(working, kind="export")
        while working.get(f"/v1/jobs/{ident}").json()["done"] == 0:
            time.sleep(0.05)
        assert working.delete(f"/v1/jobs/{ident}").status_code == 204
        check(working.get(f"/v1/jobs/{ident}"), 404)
        processes = working.app.state.workshop.runner.processes
        while processes.running:
            time.sleep(0.05)


@pytest.mark.parametrize(
    ("work", "status", "detail", "attempts"),
    [
        (_ending_work, 503, "its worker ended 2 times", 2),
        (_broken_work, 500, "the work failed", 1),
        (_large_work, 422, "PLANNER_MAX_JOB_RESULT_BYTES", 1),
    ],
)
def test_a_job_fails_cleanly(
    database_url: str,
    monkeypatch: pytest.MonkeyPatch,
    work: Any,
    status: int,
    detail: str,
    attempts: int,
) -> None:
    settings = make_settings(database_url, lane_jobs=1, max_job_result_bytes=1000)
    with doing(monkeypatch, work), started(settings) as client:
        ident = ask(client, kind="export")
        job = ended(client, ident)
        assert (job["state"], job["attempts"], job["error"]["status"]) == (
            "failed",
            attempts,
            status,
        )
        assert detail in job["error"]["detail"]
        check(client.get(f"/v1/jobs/{ident}/result"), 409)
        with client.app.state.services.database.reading() as session:
            assert session.scalars(select(PieceRow).where(PieceRow.job_id == ident)).all() == []


@pytest.mark.slow
def test_a_service_that_stops_gives_its_job_back(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = make_settings(database_url, lane_jobs=1)
    with doing(monkeypatch, _slow_work), started(settings) as client:
        ident = ask(client, kind="export")
        while client.get(f"/v1/jobs/{ident}").json()["done"] == 0:
            time.sleep(0.05)
    with started(settings) as again:
        assert result(again, ident).text.endswith('{"end": true}\n')
        assert again.get(f"/v1/jobs/{ident}").json()["attempts"] == 1
