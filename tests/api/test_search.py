"""Looking for text: the same on both databases as reading all names, page by page."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import inspect, update
from sqlalchemy.orm import Session

from api.scenarios import search
from api.scenarios.repository import Filters, ScenarioRepository
from api.store import Database, migrate
from api.store.tables import ScenarioRow, TagRow, new_id, now
from tests.api.conftest import Client, make_settings

NAMES = (
    "Zürich 70B",
    "a 100% guess",
    "a_b c\\d",
    'says "FP8" twice',
    "naïve 東京 推論",
    "ababab",
    "x" * 50,
    "h100 and h200",
    "'; DROP TABLE scenarios; --",
    "OR NEAR(a b)",
)


def fill(session: Session, workspace: str, names: tuple[str, ...]) -> list[str]:
    rows = [
        ScenarioRow(
            id=new_id(),
            workspace=workspace,
            revision=1,
            name=name,
            model="m" if number % 2 else "other",
            gpu="g",
            words=f"{name}\n{number}".lower(),
            created_at=now(),
            updated_at=now(),
            deleted_at=None,
        )
        for number, name in enumerate(names)
    ]
    session.add_all(rows)
    session.flush()
    session.add_all(TagRow(scenario_id=row.id, tag="t") for row in rows[::3])
    return [row.id for row in rows]


@pytest.fixture(scope="module")
def stored(shared_url: str) -> Iterator[Database]:
    """Forty scenarios of a workspace, and those of another."""
    configuration = make_settings(shared_url)
    migrate.upgrade(configuration)
    database = Database(configuration)
    with database.writing() as session:
        for workspace in ("w", "v"):
            fill(session, workspace, NAMES * 4)
    yield database
    database.close()


def pages(database: Database, filters: Filters, size: int) -> list[str]:
    """The words of all scenarios that match, a page at a time."""
    words: list[str] = []
    after: str | None = None
    with database.reading() as session:
        while page := ScenarioRepository.of(session).page("w", filters, "", after, size):
            words += [row.words for row in page]
            after = page[-1].id
    return words


def expected(database: Database, text: str) -> list[str]:
    return [words for words in pages(database, Filters(), 200) if text.lower() in words]


@pytest.mark.parametrize("window", [2, 7, 5_000])
@pytest.mark.parametrize(
    "text",
    [
        "zürich",
        "70B",
        "100%",
        "a_b",
        "c\\d",
        '"fp8"',
        "東京 推",
        "bab",
        "xxxx",
        "h1",
        "z",
        "none",
        "drop table",
        "near(a",
        "naïve 東京 推論\n4",
        "x" * 50,
    ],
)
def test_all_that_hold_a_text_are_listed_in_order(
    stored: Database, text: str, window: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search, "WINDOW", window)
    wanted = expected(stored, text)
    assert bool(wanted) == (text != "none")
    for size in (1, 3, 200):
        assert pages(stored, Filters(text=text), size) == wanted


@settings(max_examples=60, deadline=None)
@given(name=st.sampled_from(NAMES), start=st.integers(0, 20), length=st.integers(1, 12))
def test_any_part_of_a_name_finds_it(stored: Database, name: str, start: int, length: int) -> None:
    text = name[start : start + length]
    if text:
        assert pages(stored, Filters(text=text), 200) == expected(stored, text) != []


def test_other_filters_hold_beside_it(stored: Database) -> None:
    for filters in (
        Filters(text="h100", model="m"),
        Filters(text="h100", model="none"),
        Filters(text="h100", tag="t"),
        Filters(text="h100", tag="t", gpu="g"),
        Filters(text="h100", deleted=True),
    ):
        found = pages(stored, filters, 2)
        other = Filters(filters.tag, filters.model, filters.gpu, None, filters.deleted)
        assert found == [words for words in pages(stored, other, 200) if "h100" in words]


def test_changes_count_at_once(client: Client, question: dict[str, Any]) -> None:
    def named(text: str) -> list[str]:
        items = client.get("/v1/scenarios", params={"text": text}).json()["items"]
        return [item["name"] for item in items]

    made = client.post("/v1/scenarios", json={**question, "name": "before the change"})
    assert named("fore the") == ["before the change"]
    path = made.headers["location"]
    client.put(path, json={**question, "name": "after it"}, headers={"If-Match": "*"})
    assert (named("fore the"), named("fter i")) == ([], ["after it"])
    client.delete(path, headers={"If-Match": "*"})
    assert named("fter i") == []
    client.post(f"{path}/restore", headers={"If-Match": "*"})
    assert named("FTER I") == ["after it"]


def test_scenarios_of_before_are_known(database_url: str) -> None:
    configuration = make_settings(database_url)
    migrate.upgrade(configuration, "0007")
    database = Database(configuration)
    with database.writing() as session:
        fill(session, "w", NAMES)
    migrate.upgrade(configuration)
    assert len(pages(database, Filters(text="near(a"), 10)) == 1
    with database.writing() as session:
        session.execute(update(ScenarioRow).values(words="all the same"))
    assert len(pages(database, Filters(text="the same"), 3)) == len(NAMES)
    assert pages(database, Filters(text="near(a"), 10) == []
    assert migrate.differences(configuration) == []
    database.close()


def test_without_full_text_search_the_list_is_read_through(tmp_path: Any) -> None:
    configuration = make_settings(f"sqlite:///{tmp_path / 'planner.db'}")
    migrate.upgrade(configuration)
    database = Database(configuration)
    with database.writing() as session:
        for trigger in ("added", "changed", "removed"):
            session.connection().exec_driver_sql(f"DROP TRIGGER scenario_words_{trigger}")
        session.connection().exec_driver_sql("DROP TABLE scenario_words")
        fill(session, "w", NAMES)
    assert len(pages(database, Filters(text="near(a"), 10)) == 1
    assert "scenario_words" not in inspect(database.engine).get_table_names()
    database.close()
