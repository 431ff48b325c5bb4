"""Stored scenarios: revisions, tags of entities, lists, deletion, staleness, idempotency."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import update

from api.store.tables import RevisionRow
from tests.api.conftest import Client

PATH = "/v1/scenarios"


def made(client: Client, question: dict[str, Any], **changes: Any) -> Any:
    response = client.post(PATH, json={**question, **changes})
    assert response.status_code == 201, response.text
    return response.json()


def test_a_scenario_is_told_as_asked(client: Client, question: dict[str, Any]) -> None:
    response = client.post(PATH, json=question)
    assert response.headers["location"] == f"{PATH}/{response.json()['id']}"
    assert response.headers["etag"] == '"1"'
    document = response.json()
    assert {k: document["scenario"][k] for k in question} == question
    assert document["scenario"]["weights"] is None
    assert (document["name"], document["tags"], document["workspace"]) == (
        "four H100",
        ["chat", "prod"],
        "default",
    )
    assert client.get(f"{PATH}/{document['id']}").json() == document


def test_a_scenario_without_name_gets_one(client: Client, question: dict[str, Any]) -> None:
    response = made(client, question, name=None)
    assert response["name"] == "meta-llama/Llama-3.1-70B-Instruct on 4×h100-sxm5"


def test_what_cannot_be_answered_is_not_stored(client: Client, question: dict[str, Any]) -> None:
    assert client.post(PATH, json={**question, "gpu": "no such"}).status_code == 422
    assert client.post(PATH, json={**question, "tp": 3}).status_code == 422
    assert client.get(PATH).json() == {"items": [], "next_cursor": None}


def test_every_change_keeps_the_revision_before(client: Client, question: dict[str, Any]) -> None:
    path = f"{PATH}/{made(client, question)['id']}"
    changed = client.put(path, json={**question, "tp": 8}, headers={"If-Match": '"1"'})
    assert (changed.status_code, changed.headers["etag"]) == (200, '"2"')
    assert client.delete(path, headers={"If-Match": '"2"'}).status_code == 204
    assert client.get(path).json()["deleted_at"] is not None
    gone = client.put(path, json=question, headers={"If-Match": '"3"'})
    assert gone.status_code == 409
    back = client.post(f"{path}/restore", headers={"If-Match": '"3"'})
    assert (back.status_code, back.json()["deleted_at"]) == (200, None)
    twice = client.post(f"{path}/restore", headers={"If-Match": '"4"'})
    assert twice.status_code == 409
    items = client.get(f"{path}/revisions").json()["items"]
    assert [(i["revision"], i["action"], i["scenario"]["tp"]) for i in items] == [
        (1, "created", 4),
        (2, "updated", 8),
        (3, "deleted", 8),
        (4, "restored", 8),
    ]
    first, newest = (client.get(f"{path}/plan?revision={n}").json() for n in (1, 0))
    assert first["plan"]["scenario"]["tp"] == 4
    assert newest["plan"]["scenario"]["tp"] == 8
    assert client.get(f"{path}/plan?revision=9").status_code == 404


def test_entity_tags(client: Client, question: dict[str, Any]) -> None:
    path = f"{PATH}/{made(client, question)['id']}"
    assert client.put(path, json=question).status_code == 428
    stale = client.put(path, json=question, headers={"If-Match": '"7"'})
    assert (stale.status_code, stale.headers["etag"]) == (412, '"1"')
    unread = client.get(path, headers={"If-None-Match": '"7"'})
    assert unread.status_code == 200
    known = client.get(path, headers={"If-None-Match": 'W/"1", "9"'})
    assert (known.status_code, known.content, known.headers["etag"]) == (304, b"", '"1"')
    assert client.put(path, json=question, headers={"If-Match": "*"}).status_code == 200


def test_a_refused_change_changes_nothing(client: Client, question: dict[str, Any]) -> None:
    before = made(client, question)
    path = f"{PATH}/{before['id']}"
    for body, tag in (({**question, "tp": 8}, '"5"'), ({**question, "gpu": "nope"}, '"1"')):
        client.put(path, json=body, headers={"If-Match": tag})
    assert client.get(path).json() == before


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("", ["a", "b", "c"]),
        ("tag=prod", ["a", "b"]),
        ("tag=prod&gpu=H200%20SXM", ["b"]),
        ("gpu=h100-sxm5", ["a", "c"]),
        ("model=LLAMA-3.1-8B-instruct", ["c"]),
        ("text=NIGHTLY", ["b"]),
        ("text=100%25", ["c"]),
        ("text=1_0", []),
        ("deleted=true", []),
        ("tag=none", []),
    ],
)
def test_filters(shared: Client, question: dict[str, Any], query: str, names: list[str]) -> None:
    if not shared.get(PATH).json()["items"]:
        made(shared, question, name="a", tags=["prod"])
        made(shared, question, name="b", tags=["prod", "x"], gpu="h200-sxm", notes="the Nightly")
        made(
            shared,
            question,
            name="c",
            tags=[],
            tp=1,
            model="meta-llama/Llama-3.1-8B-Instruct",
            notes="100% sure",
        )
    response = shared.get(f"{PATH}?{query}")
    assert [item["name"] for item in response.json()["items"]] == names


def test_pages_hold_while_others_write(client: Client, question: dict[str, Any]) -> None:
    before = {made(client, question, name=f"n{i}")["id"] for i in range(7)}
    seen, cursor = [], None
    while True:
        page = client.get(PATH, params={"limit": 2, **({"cursor": cursor} if cursor else {})})
        seen += [item["id"] for item in page.json()["items"]]
        cursor = page.json()["next_cursor"]
        if cursor is None:
            break
        if len(seen) == 4:
            made(client, question, name="late")
    assert len(seen) == len(set(seen))
    assert before <= set(seen)
    assert seen == sorted(seen)


def test_a_mangled_cursor_is_refused(client: Client, question: dict[str, Any]) -> None:
    for i in range(3):
        made(client, question, name=f"n{i}")
    cursor = client.get(f"{PATH}?limit=1").json()["next_cursor"]
    mangled = [cursor[:-1], cursor + "A", "A" + cursor[1:], cursor.swapcase(), "é", "="]
    for bad in mangled:
        assert client.get(PATH, params={"limit": 1, "cursor": bad}).status_code == 400
    assert client.get(PATH, params={"tag": "x", "cursor": cursor}).status_code == 400
    assert client.get(PATH, params={"limit": 2, "cursor": cursor}).status_code == 200


def test_a_stale_plan_is_marked_and_explained(client: Client, question: dict[str, Any]) -> None:
    ident = made(client, question)["id"]
    path = f"{PATH}/{ident}/plan"
    fresh = client.get(path).json()
    assert (fresh["stale"], fresh["because"], fresh["recomputed"]) == (False, [], None)
    same = client.get(f"{path}?recompute=true").json()["recomputed"]
    assert (same["differences"], same["plan"]) == ([], fresh["plan"])

    old = fresh["plan"]["editions"] | {"hardware": "2020-01-01"}
    point = fresh["plan"]["points"][-1]["tpot_s"]["p50"]
    import json

    plan = json.loads(json.dumps(fresh["plan"]))
    plan["points"][-1]["tpot_s"]["p50"] = point / 2
    plan["retired_figure"] = 1
    with client.app.state.services.database.writing() as session:
        session.execute(update(RevisionRow).values(editions=old, plan=json.dumps(plan)))
    response = client.get(f"{path}?recompute=true").json()
    current = fresh["plan"]["editions"]["hardware"]
    assert response["stale"] is True
    assert response["because"] == [
        {"what": "hardware", "computed_with": "2020-01-01", "current": current}
    ]
    document = {d["figure"]: d for d in response["recomputed"]["differences"]}
    assert set(document) == {"points[1].tpot_s.p50", "retired_figure"}
    changed = document["points[1].tpot_s.p50"]
    assert (changed["difference"], changed["ratio"]) == (point - point / 2, 2.0)
    again = client.post(f"{PATH}/{ident}/recompute", headers={"If-Match": '"1"'})
    assert again.json()["revision"] == 2
    assert client.get(path).json()["stale"] is False


def test_a_plan_stored_before_engine_data_had_an_edition_is_stale(
    client: Client, question: dict[str, Any]
) -> None:
    ident = made(client, question)["id"]
    path = f"{PATH}/{ident}/plan"
    current = client.get(path).json()["plan"]["editions"]
    before = {name: value for name, value in current.items() if name != "engines"}
    with client.app.state.services.database.writing() as session:
        session.execute(update(RevisionRow).values(editions=before))
    assert client.get(path).json()["because"] == [
        {"what": "engines", "computed_with": "", "current": current["engines"]}
    ]
    assert client.get(f"{PATH}/{ident}").json()["editions"]["engines"] == ""


def test_a_repeated_request_answers_the_same(client: Client, question: dict[str, Any]) -> None:
    key = {"Idempotency-Key": "one"}
    first = client.post(PATH, json=question, headers=key)
    second = client.post(PATH, json=question, headers=key)
    assert second.json() == first.json()
    assert second.status_code == 201
    assert second.headers["location"] == first.headers["location"]
    assert second.headers["idempotency-replayed"] == "true"
    other = client.post(PATH, json={**question, "tp": 8}, headers=key)
    assert other.status_code == 422
    assert len(client.get(PATH).json()["items"]) == 1


def test_limits_are_named(client: Client, question: dict[str, Any]) -> None:
    body = {**question, "batch": list(range(1, 2002))}
    response = client.post(PATH, json=body)
    assert response.status_code == 422
    assert "PLANNER_MAX_STORED_POINTS" in response.json()["detail"]
