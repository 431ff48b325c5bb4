"""Writing scenarios: parts of one, several at once, by name, and who did it."""

from __future__ import annotations

import threading
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import update

from api.housekeeping import tidy
from api.scenarios.writing import merged
from api.store.tables import ChangeRow, IdempotencyRow, now
from tests.api.conftest import CARD, CONFIG, Client, Keyed
from tests.api.test_errors import check

PATH = "/v1/scenarios"
MERGE = {"Content-Type": "application/merge-patch+json"}


@pytest.mark.parametrize(
    ("target", "changes", "result"),
    [  # The examples of RFC 7396, appendix A
        ({"a": "b"}, {"a": "c"}, {"a": "c"}),
        ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
        ({"a": "b"}, {"a": None}, {}),
        ({"a": "b", "b": "c"}, {"a": None}, {"b": "c"}),
        ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
        ({"a": "c"}, {"a": ["b"]}, {"a": ["b"]}),
        ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
        ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
        (["a", "b"], ["c", "d"], ["c", "d"]),
        ({"a": "b"}, ["c"], ["c"]),
        ({"a": "foo"}, None, None),
        ({"a": "foo"}, "bar", "bar"),
        ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
        ([1, 2], {"a": "b", "c": None}, {"a": "b"}),
        ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
    ],
)
def test_merge_patches(target: Any, changes: Any, result: Any) -> None:
    assert merged(target, changes) == result


def test_a_part_of_a_question_is_changed(client: Client, question: dict[str, Any]) -> None:
    path = client.post(PATH, json={**question, "notes": "n"}).headers["location"]
    body = '{"tp": 8, "notes": null, "tags": ["new"]}'
    answer = client.patch(path, content=body, headers={**MERGE, "If-Match": '"1"'})
    assert (answer.status_code, answer.headers["etag"]) == (200, '"2"')
    scenario = answer.json()["scenario"]
    expected = {**question, "tp": 8, "tags": ["new"], "notes": None}
    assert {key: scenario[key] for key in expected} == expected
    plain = client.patch(path, json={"tp": 4}, headers={"If-Match": "*"})
    assert plain.json()["scenario"]["tp"] == 4
    assert client.get(f"{path}/plan").json()["plan"]["scenario"]["tp"] == 4


@pytest.mark.parametrize(
    ("body", "tag", "status"),
    [
        ('{"tp": 8}', None, 428),
        ('{"tp": 8}', '"9"', 412),
        ('{"tp": 0}', '"1"', 422),
        ('{"nope": 1}', '"1"', 422),
        ('{"model": null}', '"1"', 422),
        ("[1]", '"1"', 422),
        ("{", '"1"', 400),
        ('{"tp": NaN}', '"1"', 400),
        ("[" * 5000, '"1"', 400),
    ],
)
def test_a_refused_part_changes_nothing(
    shared: Client, question: dict[str, Any], body: str, tag: str | None, status: int
) -> None:
    before = shared.post(PATH, json=question)
    path = before.headers["location"]
    headers = MERGE if tag is None else {**MERGE, "If-Match": tag}
    check(shared.patch(path, content=body, headers=headers), status)
    assert shared.get(path).json() == before.json()


def test_several_are_stored_all_or_none(client: Client, question: dict[str, Any]) -> None:
    three = [{**question, "name": name} for name in "abc"]
    made = client.post(f"{PATH}/batch", json={"scenarios": three})
    assert made.status_code == 201
    assert [item["name"] for item in made.json()["items"]] == ["a", "b", "c"]
    listed = client.get(PATH).json()["items"]
    assert listed == made.json()["items"]
    three[1]["gpu"] = "nope"
    problem = check(client.post(f"{PATH}/batch", json={"scenarios": three}), 422)
    assert [error.field for error in problem.errors] == ["scenarios.1.gpu"]
    assert len(client.get(PATH).json()["items"]) == 3
    for count in (0, 101):
        check(client.post(f"{PATH}/batch", json={"scenarios": [question] * count}), 422)


def test_a_batch_is_stored_once(client: Client, question: dict[str, Any]) -> None:
    key = {"Idempotency-Key": "batch"}
    body = {"scenarios": [question, question]}
    first, second = (client.post(f"{PATH}/batch", json=body, headers=key) for _ in range(2))
    assert first.json() == second.json()
    assert second.headers["idempotency-replayed"] == "true"
    assert len(client.get(PATH).json()["items"]) == 2


def test_a_name_is_unique_on_request(client: Client, question: dict[str, Any]) -> None:
    unique = {"unique": "true"}
    first = client.post(PATH, json=question, params=unique)
    assert first.status_code == 201
    problem = check(client.post(PATH, json=question, params=unique), 409)
    assert problem.type.endswith(":name-taken")
    assert first.json()["id"] in problem.detail
    assert client.post(PATH, json={**question, "name": "other"}, params=unique).status_code == 201
    assert client.post(PATH, json=question).status_code == 201  # not asked for
    unnamed = {**question, "name": None}
    assert client.post(PATH, json=unnamed, params=unique).status_code == 201
    check(client.post(PATH, json=unnamed, params=unique), 409)


def test_the_name_of_a_deleted_one_is_free(client: Client, question: dict[str, Any]) -> None:
    path = client.post(PATH, json=question).headers["location"]
    client.delete(path, headers={"If-Match": "*"})
    assert client.post(PATH, json=question, params={"unique": "true"}).status_code == 201


def test_a_name_is_made_then_changed_then_left(client: Client, question: dict[str, Any]) -> None:
    path = f"{PATH}/by-name/nightly%20run"
    unnamed = {key: value for key, value in question.items() if key != "name"}
    first = client.put(path, json=unnamed)
    assert (first.status_code, first.headers["etag"]) == (201, '"1"')
    assert first.json()["name"] == "nightly run"
    same = client.put(path, json={**unnamed, "name": "nightly run"})
    assert (same.status_code, same.headers["etag"]) == (200, '"1"')
    changed = client.put(path, json={**unnamed, "tp": 8})
    assert (changed.status_code, changed.headers["etag"]) == (200, '"2"')
    assert changed.headers["location"] == first.headers["location"]
    stale = client.put(path, json=unnamed, headers={"If-Match": '"1"'})
    check(stale, 412)
    check(client.put(path, json={**unnamed, "name": "other"}), 422)
    check(client.put(f"{PATH}/by-name/new", json=unnamed, headers={"If-Match": "*"}), 412)
    client.post(PATH, json={**unnamed, "name": "nightly run"})
    check(client.put(path, json=unnamed), 409)


def test_one_name_at_once_makes_one_scenario(client: Client, question: dict[str, Any]) -> None:
    statuses: list[int] = []

    def put(n: int) -> None:
        body = {**question, "name": None, "tp": 4, "batch": [n]}
        statuses.append(client.put(f"{PATH}/by-name/one", json=body).status_code)

    threads = [threading.Thread(target=put, args=(n,)) for n in range(1, 7)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(statuses) == [200] * 5 + [201]
    items = client.get(PATH).json()["items"]
    assert [(item["name"], item["revision"]) for item in items] == [("one", 6)]


def test_a_scenario_with_its_plan_is_one_read(client: Client, question: dict[str, Any]) -> None:
    made = client.post(PATH, json=question)
    path = made.headers["location"]
    assert client.get(path).json()["plan"] is None
    both = client.get(path, params={"include": "plan"})
    assert both.json() == {**made.json(), "plan": client.get(f"{path}/plan").json()["plan"]}
    check(client.get(path, params={"include": "everything"}), 400)


def test_keys_of_requests_expire_on_time(client: Client, question: dict[str, Any]) -> None:
    headers = {"Idempotency-Key": "k"}
    database = client.app.state.services.database

    def age(hours: float) -> None:
        with database.writing() as session:
            then = now() - timedelta(hours=hours)
            session.execute(update(IdempotencyRow).values(created_at=then))

    first = client.post(PATH, json=question, headers=headers).json()["id"]
    age(47.9)
    assert client.post(PATH, json=question, headers=headers).json()["id"] == first
    age(48.1)
    other = {**question, "tp": 8}
    second = client.post(PATH, json=other, headers=headers)
    assert second.status_code == 201
    assert second.json()["id"] != first
    assert client.post(PATH, json=other, headers=headers).json() == second.json()


def test_what_is_too_old_is_deleted(client: Client, question: dict[str, Any]) -> None:
    database = client.app.state.services.database
    for key in ("old", "new"):
        client.post(PATH, json=question, headers={"Idempotency-Key": key})
    old = now() - timedelta(days=8)
    with database.writing() as session:
        mine = IdempotencyRow.key == "old"
        session.execute(update(IdempotencyRow).where(mine).values(created_at=old))
        oldest = client.get("/v1/changes").json()["items"][-1]["id"]
        session.execute(update(ChangeRow).where(ChangeRow.id == oldest).values(changed_at=old))
    tidy(database, changes_days=7)
    with database.reading() as session:
        assert [row.key for row in session.query(IdempotencyRow)] == ["new"]
    assert len(client.get("/v1/changes").json()["items"]) == 1


def test_who_changed_what(keyed: Keyed, question: dict[str, Any]) -> None:
    send = keyed.client.request
    writer = keyed.writer
    made = send("POST", PATH, json=question, headers=writer)
    path, ident = made.headers["location"], made.json()["id"]
    send("PATCH", path, json={"tp": 8}, headers={**writer, "If-Match": "*"})
    send("DELETE", path, headers={**writer, "If-Match": "*"})
    send("POST", f"{path}/restore", headers={**writer, "If-Match": "*"})
    send("PUT", path, json={"tp": 0}, headers={**writer, "If-Match": "*"})  # refused
    items = send("GET", "/v1/changes", params={"object": ident}, headers=writer).json()["items"]
    assert [(item["action"], item["revision"]) for item in items] == [
        ("restored", 4),
        ("deleted", 3),
        ("updated", 2),
        ("created", 1),
    ]
    assert {item["kind"] for item in items} == {"scenario"}
    keys = {item["key_id"] for item in items}
    assert len(keys) == 1
    assert None not in keys
    assert {item["client"] for item in items} == {"testclient"}
    assert items[-1]["request_id"] == made.headers["x-request-id"]
    others = send("GET", "/v1/changes", headers=keyed.stranger).json()["items"]
    assert {item["kind"] for item in others} <= {"key"}


def test_own_objects_and_keys_leave_a_trail(keyed: Keyed) -> None:
    send, writer = keyed.client.request, keyed.writer
    send("POST", "/v1/accelerators", json={"id": "trail", "spec": CARD}, headers=writer)
    send("POST", "/v1/models", json={"id": "trail", "config": CONFIG}, headers=writer)
    send("DELETE", "/v1/accelerators/own/trail", headers=writer)
    keys = keyed.client.app.state.api_keys
    ident, key = keys.create("ours", "of a test", "read")
    keys.revoke(ident)
    page = send("GET", "/v1/changes", params={"limit": 5}, headers=writer).json()
    assert [(item["kind"], item["object"], item["action"]) for item in page["items"]] == [
        ("key", ident, "revoked"),
        ("key", ident, "created"),
        ("own", "trail", "deleted"),
        ("own", "trail", "created"),
        ("own", "trail", "created"),
    ]
    assert page["items"][0]["client"] is None  # made on the store itself
    assert key not in str(page)
    cursor = page["next_cursor"]
    more = send("GET", "/v1/changes", params={"limit": 5, "cursor": cursor}, headers=writer)
    assert more.status_code == 200
    assert not {item["id"] for item in more.json()["items"]} & {i["id"] for i in page["items"]}
    other = send("GET", "/v1/changes", params={"cursor": cursor, "object": ident}, headers=writer)
    assert other.status_code == 400
