"""What is answered without a thread: equal questions, warm deployments, single rows."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from contextlib import nullcontext
from typing import Any

import pytest
from sqlalchemy import Engine, text
from sqlalchemy.exc import OperationalError

from api.lanes import AnswerCache, QuickWork
from api.lanes.quick import QUICK_S
from api.plans.quick import kind_of
from api.scenarios.reading import WITH_PLAN
from api.store import Database, PointReads
from api.store import points as points_module
from api.system.keys import Keys
from planner.plans.planning import plan
from planner.scenario import Scenario
from tests.api.conftest import CARD, RAN, RESULTS, Client, Keyed, make_settings


def test_a_cache_holds_its_bytes_and_forgets_the_longest_unused() -> None:
    cache = AnswerCache(100)
    for name in "abcdefghij":
        cache.put(name, b"0123456789")
    assert (len(cache), cache.bytes) == (10, 100)
    assert cache.get("a") == b"0123456789"  # used now, so `b` is the oldest
    cache.put("k", b"01234")
    assert cache.get("b") is None
    assert cache.get("a") is not None
    assert cache.bytes == 95
    cache.put("a", b"01")
    assert (cache.get("a"), cache.bytes) == (b"01", 87)
    assert (cache.hits, cache.misses) == (3, 1)


def test_what_takes_a_tenth_of_a_cache_is_not_kept() -> None:
    cache = AnswerCache(100)
    cache.put("large", b"0" * 11)
    cache.put("nothing", b"")
    assert (cache.get("large"), cache.get("nothing")) == (None, b"")
    none = AnswerCache(0)
    none.put("x", b"1")
    assert none.get("x") is None


def test_work_is_quick_once_it_was() -> None:
    quick = QuickWork()
    assert not quick.is_quick("a")
    assert quick.timed("a", lambda: 7) == 7
    assert quick.is_quick("a")
    assert not quick.is_quick("b")


def test_one_slow_piece_among_quick_ones_is_forgiven(monkeypatch: pytest.MonkeyPatch) -> None:
    quick, clock = QuickWork(), iter([0.0, 2e-3, 1.0, 1.02, 2.0, 2.02, 3.0, 3.02])
    monkeypatch.setattr("api.lanes.quick.time.thread_time", lambda: next(clock))
    verdicts = []
    for _ in range(3):
        quick.timed("a", lambda: None)
        verdicts.append(quick.is_quick("a"))
    # 2 ms, then 20 ms count as 4 ms, then as 8 ms.
    assert verdicts == [True, True, False]
    assert 2 * 2e-3 < QUICK_S < 2 * 2 * 2e-3


QUICK = {"model": "meta-llama/Llama-3.1-8B-Instruct", "gpu": "h100-sxm5", "batch": [1]}


@pytest.mark.parametrize(
    ("changes", "may_be"),
    [
        ({}, True),
        ({"batch": list(range(1, 17))}, True),
        ({"batch": list(range(1, 18))}, False),
        ({"batch": [1, 2, 3, 4], "context": [1, 2, 3, 4, 5]}, False),
        ({"batch": None}, False),
        ({"tpot_ms": 30.0}, False),
        ({"isl": 1024, "osl": 256, "concurrency": 8}, False),
        ({"gpu": CARD}, False),
        ({"gpu": "own/card"}, False),
        ({"speculation": {"drafts": 1}}, True),
        ({"lora": {"adapters": 2, "rank": 16}, "engine": "vllm"}, True),
    ],
)
def test_which_plans_may_be_quick(changes: dict[str, Any], may_be: bool) -> None:
    assert (kind_of(Scenario.model_validate({**QUICK, **changes})) is not None) is may_be


def test_what_a_deployment_is_known_by_is_not_the_question() -> None:
    kinds = {
        kind_of(Scenario.model_validate({**QUICK, **changes}))
        for changes in ({}, {"batch": [64]}, {"context": [100]}, {"name": "n", "tags": ["t"]})
    }
    assert len(kinds) == 1
    for changes in ({"tp": 2}, {"weights": "fp8"}, {"max_sequences": 8}, {"engine": "vllm"}):
        assert kind_of(Scenario.model_validate({**QUICK, **changes})) not in kinds


def test_the_same_question_has_the_same_answer_until_the_calibration_changes(
    client: Client, question: dict[str, Any]
) -> None:
    cache = client.app.state.services.answers

    def ask(**query: str) -> tuple[bytes, int]:
        before = cache.hits
        answer = client.post("/v1/plans", json=question, params=query)
        assert answer.status_code == 200
        return answer.content, cache.hits - before

    first, again = ask(), ask()
    assert (first[1], again) == (0, (first[0], 1))
    assert ask(advice="true")[1] == 0
    with_levers = ask(advice="true")
    assert with_levers[1] == 1
    assert with_levers[0] != first[0]
    assert client.post("/v1/measurements", json=RESULTS, params=RAN).status_code == 201
    measured, hits = ask()
    assert hits == 0
    assert b"+own.1." in measured
    assert b"+own.1." not in first[0]


def test_a_new_question_about_a_warm_deployment_needs_no_thread(
    shared: Client, question: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first takes a thread; from then on none of its kind does, and the answer is the same."""
    monkeypatch.setattr("api.lanes.quick.QUICK_S", 10.0)  # however busy the machine is
    threads, to_thread = [], asyncio.to_thread

    async def count(work: Any, *given: Any) -> Any:
        threads.append(work)
        return await to_thread(work, *given)

    monkeypatch.setattr("api.plans.service.asyncio.to_thread", count)
    asked = {**question, "tp": 8, "max_sequences": 300}
    for batch in (3, 5, 7):
        answer = shared.post("/v1/plans", json={**asked, "batch": batch})
        wanted = plan(Scenario.model_validate({**asked, "batch": batch}))
        assert answer.content == wanted.model_dump_json().encode()
    assert len(threads) == 1
    levers = shared.post("/v1/plans?advice=true", json={**asked, "batch": 9})
    assert levers.json()["advice"]
    assert len(threads) == 2


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"{", 400),
        (b"[]", 422),
        (b"[" * 5000, 400),
        (b'{"model": "meta-llama/Llama-3.1-70B-Instruct"}', 422),
        (b'{"model": "meta-llama/Llama-3.1-70B-Instruct", "gpu": "h100-sxm5", "batch": 1.5}', 422),
        (b'{"model": "nobody/nothing", "gpu": "h100-sxm5", "batch": 1}', 422),
    ],
)
def test_what_is_no_question_is_refused_by_its_route(
    shared: Client, body: bytes, status: int
) -> None:
    answer = shared.post("/v1/plans", content=body, headers={"Content-Type": "application/json"})
    assert answer.status_code == status
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json()["detail"]


def test_answers_about_own_objects_are_not_kept(client: Client, question: dict[str, Any]) -> None:
    """The same id, deleted and made anew with half the bandwidth, is answered anew."""
    tpot_s = []
    for bandwidth in (3.0e12, 1.5e12):
        spec = {**CARD, "bandwidth_bytes_per_s": bandwidth}
        made = client.post("/v1/accelerators", json={"id": "card", "spec": spec})
        assert made.status_code == 201
        plan = client.post("/v1/plans", json={**question, "gpu": "own/card"})
        tpot_s.append(plan.json()["points"][0]["tpot_s"]["p50"])
        assert client.delete("/v1/accelerators/own/card").status_code == 204
        gone = client.post("/v1/plans", json={**question, "gpu": "own/card"})
        assert gone.status_code == 422
    assert 1.5 < tpot_s[1] / tpot_s[0] < 2.0


def test_a_refused_question_is_refused_again(client: Client, question: dict[str, Any]) -> None:
    for _ in range(2):
        assert client.post("/v1/plans", json={**question, "tp": 3}).status_code == 422


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
def test_a_locked_file_is_waited_for_in_a_thread(
    client: Client, question: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = client.post("/v1/scenarios", json=question).headers["location"]
    points: PointReads = client.app.state.services.points
    read, threads = points_module._one, []

    def refuse_loop(engine: Engine, *query: Any) -> Any:
        threads.append(threading.current_thread().name)
        if engine is points.at_once:
            raise OperationalError("SELECT", {}, sqlite3.OperationalError("database is locked"))
        return read(engine, *query)

    assert client.get(path).status_code == 200
    monkeypatch.setattr(points_module, "_one", refuse_loop)
    assert client.get(path).status_code == 200
    assert len(threads) == 2
    assert threads[1].startswith("lane-store")


def test_points_read_what_a_transaction_reads(
    database_url: str, client: Client, question: dict[str, Any]
) -> None:
    """One row or none: documents as dictionaries and times in UTC, whatever zone a server is in."""
    made = client.post("/v1/scenarios", json=question)
    settings = make_settings(database_url)
    database = Database(settings)
    with database.engine.begin() as connection:
        if database.engine.dialect.name == "postgresql":
            name = connection.scalar(text("SELECT current_database()"))
            connection.execute(text(f"ALTER DATABASE \"{name}\" SET TimeZone = 'Asia/Kolkata'"))
    points, spans = PointReads(settings, database), []
    points.span = lambda name, **_: nullcontext(spans.append(name))
    values = {"workspace": "default", "ident": made.json()["id"]}

    async def read() -> tuple[Any, Any]:
        missing = {**values, "workspace": "another"}
        return await points.one(WITH_PLAN, values), await points.one(WITH_PLAN, missing)

    row, missing = asyncio.run(read())
    with database.reading() as session:
        assert tuple(row) == tuple(session.execute(WITH_PLAN, values).one())
    assert missing is None
    # What no engine sees is traced by the reader itself.
    assert spans == ["store SELECT"] * (2 if database.engine.dialect.name == "postgresql" else 0)
    assert row.question["batch"] == question["batch"]
    assert row.created_at.isoformat() == made.json()["created_at"]
    assert client.get(made.headers["location"]).json()["created_at"] == made.json()["created_at"]
    points.close()
    database.close()


def test_a_key_is_looked_up_once_a_while(keyed: Keyed) -> None:
    database = keyed.client.app.state.services.database
    keys = Keys(database, cached_s=60.0)
    ident, key = keys.create("ours", "", "read")
    assert keys.cached(key) is None
    caller = keys.find(key)
    assert caller is not None
    assert (caller.workspace, caller.scope, caller.key_id) == ("ours", "read", ident)
    assert keys.cached(key) == caller
    assert keys.cached(key + "x") is None
    assert keys.revoke(ident)
    assert keys.cached(key) is None
    assert keys.find(key) is None


def test_a_revoked_key_is_known_no_longer_than_it_is_cached(keyed: Keyed) -> None:
    database = keyed.client.app.state.services.database
    keys, elsewhere = Keys(database, cached_s=0.0), Keys(database)
    ident, key = keys.create("ours", "", "read")
    assert keys.find(key) is not None
    assert keys.cached(key) is None  # nothing is cached for no time
    assert elsewhere.revoke(ident)
    assert keys.find(key) is None
