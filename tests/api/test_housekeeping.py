"""What a service does with time."""

from __future__ import annotations

import threading
from datetime import timedelta

import pytest
from sqlalchemy import update
from sqlalchemy.exc import OperationalError

from api.housekeeping import Housekeeper, tidy
from api.store.tables import ImportedRow, now
from tests.api.conftest import Client, make_everything
from tests.api.test_lines import KIND, PATH


def test_each_task_is_done_when_it_is_due() -> None:
    """Rounds every 5 s: the second task is due at the first and from the 12th second on."""
    done: list[str] = []
    housekeeper = Housekeeper(
        (5.0, lambda: done.append("often")), (12.0, lambda: done.append("seldom"))
    )
    for second in (100.0, 105.0, 110.0, 115.0):
        housekeeper.round(second)
    assert done == ["often", "seldom", "often", "often", "often", "seldom"]


@pytest.mark.parametrize("trouble", [OSError(28, "no space"), OperationalError("", {}, OSError())])
def test_what_the_store_refuses_is_due_again(trouble: Exception) -> None:
    tried: list[int] = []
    done: list[int] = []

    def fails_once() -> None:
        tried.append(1)
        if len(tried) == 1:
            raise trouble

    housekeeper = Housekeeper((3600.0, fails_once), (3600.0, lambda: done.append(1)))
    for second in (0.0, 5.0, 10.0):
        housekeeper.round(second)
    assert (len(tried), len(done)) == (2, 1), "and what comes after it is done all the same"


def test_a_defect_is_not_hidden() -> None:
    housekeeper = Housekeeper((1.0, lambda: {}["no such key"]))
    with pytest.raises(KeyError):
        housekeeper.round(0.0)


def test_it_ends_with_the_service() -> None:
    begun = threading.Event()
    housekeeper = Housekeeper((0.0, begun.set))
    housekeeper.start()
    assert begun.wait(10), "everything is due at the start"
    housekeeper.stop()
    assert "housekeeper" not in {thread.name for thread in threading.enumerate()}
    Housekeeper().stop()  # one that was never started


def test_a_service_has_one(client: Client) -> None:
    assert client.get("/health/live").status_code == 200
    names = [thread.name for thread in threading.enumerate()]
    assert names.count("housekeeper") == 1


def test_what_an_import_came_to_is_forgotten(client: Client) -> None:
    """As long as an answer to an Idempotency-Key counts, it is resumed: nothing is stored twice."""
    make_everything(client)
    lines = client.get(PATH).content

    def again() -> tuple[int, int]:
        answer = client.post(f"{PATH}?name=n", content=lines, headers=KIND).json()
        return answer["scenarios"], answer["skipped"]

    assert again()[0] == 2
    database = client.app.state.services.database
    tidy(database, changes_days=7)
    assert again()[0] == 0
    old = now() - database.idempotency - timedelta(seconds=1)
    with database.writing() as session:
        session.execute(update(ImportedRow).values(created_at=old))
    tidy(database, changes_days=7)
    assert again()[0] == 2
