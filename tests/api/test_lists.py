"""Lists of scenarios: every order and filter, walked in pages."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import update

from api.scenarios.listing import Filters, position
from api.store.tables import ScenarioRow, now
from tests.api.conftest import Client
from tests.api.test_errors import check

PATH = "/v1/scenarios"
NAMES = ("cedar", "alder", "elm", "birch", "alder", "doum")


@pytest.fixture(scope="module")
def filled(shared: Client) -> Client:
    """Six scenarios, two of one name; the second is changed last, the third is stale."""
    question = {
        "model": "meta-llama/Llama-3.1-8B-Instruct",
        "gpu": "h100-sxm5",
        "batch": [1],
        "context": [1024],
    }
    paths = []
    for n, name in enumerate(NAMES):
        engine = ("vllm", "sglang", None)[n % 3]
        body = {**question, "name": name, "engine": engine}
        answer = shared.post(PATH, json=body)
        assert answer.status_code == 201, answer.text
        paths.append(answer.headers["location"])
    shared.patch(paths[1], json={"context": [2048]}, headers={"If-Match": "*"})
    with shared.app.state.services.database.writing() as session:
        stale = ScenarioRow.id == paths[2].rpartition("/")[2]
        session.execute(update(ScenarioRow).where(stale).values(computed_with="older editions"))
    return shared


def walk(client: Client, limit: int, **query: Any) -> list[str]:
    names, cursor = [], None
    while True:
        more = {} if cursor is None else {"cursor": cursor}
        page = client.get(PATH, params={**query, **more, "limit": limit})
        assert page.status_code == 200, page.text
        names += [item["name"] for item in page.json()["items"]]
        cursor = page.json()["next_cursor"]
        if cursor is None:
            return names


@pytest.mark.parametrize("limit", [1, 2, 5, 6])
@pytest.mark.parametrize(
    ("sort", "names"),
    [
        ("created", [*NAMES]),
        ("-created", [*NAMES][::-1]),
        ("name", ["alder", "alder", "birch", "cedar", "doum", "elm"]),
        ("-name", ["elm", "doum", "cedar", "birch", "alder", "alder"]),
        ("updated", ["cedar", "elm", "birch", "alder", "doum", "alder"]),
        ("-updated", ["alder", "doum", "alder", "birch", "elm", "cedar"]),
    ],
)
def test_every_order_in_pages(filled: Client, sort: str, names: list[str], limit: int) -> None:
    assert walk(filled, limit, sort=sort) == names


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ({"name": "alder"}, ["alder", "alder"]),
        ({"name": "Alder"}, []),
        ({"engine": "vllm"}, ["cedar", "birch"]),
        ({"engine": "vllm", "sort": "-name"}, ["cedar", "birch"]),
        ({"engine": "sglang", "name": "alder"}, ["alder", "alder"]),
        ({"stale": "true"}, ["elm"]),
        ({"stale": "false", "sort": "name"}, ["alder", "alder", "birch", "cedar", "doum"]),
        ({"created_from": "2020-01-01T00:00:00Z"}, [*NAMES]),
        ({"created_from": "2100-01-01T00:00:00Z"}, []),
        ({"created_before": "2020-01-01T00:00:00+05:00"}, []),
        ({"updated_from": "2100-01-01T00:00:00Z"}, []),
        ({"text": "der", "sort": "-name"}, ["alder", "alder"]),
    ],
)
def test_filters_in_any_order(filled: Client, query: dict[str, str], names: list[str]) -> None:
    for limit in (1, 50):
        assert sorted(walk(filled, limit, **query)) == sorted(names)
    if "sort" in query:
        assert walk(filled, 1, **query) == names


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("sort=size", "sort"),
        ("created_from=yesterday", "created_from"),
        ("created_from=0.5", "created_from"),
        ("created_from=2026-12-01T00:00:00", "created_from"),
        ("created_from=null", "created_from"),
        ("limit=null", "limit"),
        ("limit=2&limit=3", "limit"),
        ("stale=maybe", "stale"),
    ],
)
def test_what_is_no_filter_is_refused(filled: Client, query: str, field: str) -> None:
    problem = check(filled.get(f"{PATH}?{query}"), 400)
    assert [error.field for error in problem.errors] == [field]


def test_a_cursor_belongs_to_its_order(filled: Client) -> None:
    cursor = filled.get(PATH, params={"sort": "name", "limit": 1}).json()["next_cursor"]
    for query in ({}, {"sort": "-name"}, {"sort": "name", "stale": "true"}):
        check(filled.get(PATH, params={**query, "cursor": cursor}), 400)


def test_a_plan_is_stale_when_editions_change(client: Client, question: dict[str, Any]) -> None:
    """The filter and the plan itself agree."""
    path = client.post(PATH, json=question).headers["location"]
    assert client.get(f"{path}/plan").json()["stale"] is False
    assert client.get(PATH, params={"stale": "true"}).json()["items"] == []
    from tests.api.conftest import RAN, RESULTS

    assert client.post("/v1/measurements", json=RESULTS, params=RAN).status_code == 201
    assert client.get(f"{path}/plan").json()["stale"] is True
    assert len(client.get(PATH, params={"stale": "true"}).json()["items"]) == 1
    client.post(f"{path}/recompute", headers={"If-Match": "*"})
    assert client.get(PATH, params={"stale": "true"}).json()["items"] == []


@given(name=st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=60))
@settings(max_examples=50, deadline=None)
def test_a_position_keeps_its_parts(name: str) -> None:
    row = ScenarioRow(id="0190", workspace="w", name=name, updated_at=now())
    assert position(row, "created") == "0190"
    assert position(row, "-name").split("\0") == [name, "0190"]
    assert position(row, "updated").split("\0") == [row.updated_at.isoformat(), "0190"]


def test_equal_lists_have_equal_fingerprints() -> None:
    assert Filters().fingerprint() == Filters(sort="created").fingerprint()
    lists = [Filters(), Filters(sort="name"), Filters(stale=True), Filters(name="a"), Filters("a")]
    assert len({each.fingerprint() for each in lists}) == len(lists)
