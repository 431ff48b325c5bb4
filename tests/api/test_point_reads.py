"""Rows of Postgres that the event loop reads itself: what is done where a connection is not had."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from typing import Any, TypeVar

import pytest
from sqlalchemy import bindparam, create_engine, func, literal, select, text
from sqlalchemy.exc import OperationalError

pytest.importorskip("psycopg", reason="Postgres is an extra")

from api.store import Database, PointReads
from api.store.database import NoConnection
from api.store.postgres_reads import PostgresReads
from tests.api.conftest import make_settings

T = TypeVar("T")
pytestmark = pytest.mark.parametrize("shared_url", ["postgres"], indirect=True)
ECHO = select(bindparam("n", type_=None).label("n"), literal("ä").label("letter"))
SLEEP = select(func.pg_sleep(bindparam("seconds")))
PID = select(func.pg_backend_pid().label("pid"))


@pytest.fixture
def database(shared_url: str) -> Iterator[Database]:
    opened = Database(make_settings(shared_url, lane_store=2, lane_waiting=2))
    yield opened
    opened.close()


@pytest.fixture
def run(shared_url: str, database: Database) -> Callable[..., Any]:
    """Run a test's coroutine with reads of two connections and four places to wait."""

    def runs(test: Callable[[PostgresReads], Awaitable[T]], **changes: Any) -> T:
        settings = make_settings(shared_url, lane_store=2, lane_waiting=2, **changes)

        async def main() -> T:
            reads = PostgresReads(settings, database.engine)
            try:
                return await test(reads)
            finally:
                reads.close()
                assert reads.opened == 0

        return asyncio.run(main())

    return runs


def test_a_row_has_its_columns_as_attributes(run: Callable[..., Any]) -> None:
    async def test(reads: PostgresReads) -> tuple[Any, Any]:
        query = ECHO.where(text(":n > 0"))
        return await reads.one(query, {"n": 7}), await reads.one(query, {"n": -7})

    row, missing = run(test)
    assert (row.n, row.letter, missing) == (7, "ä", None)


def test_reads_take_turns_and_more_than_may_wait_go_elsewhere(run: Callable[..., Any]) -> None:
    """Two connections and four places: of eight reads at once, six are answered."""

    async def test(reads: PostgresReads) -> tuple[list[Any], int]:
        answers = await asyncio.gather(
            *(reads.one(SLEEP, {"seconds": 0.02}) for _ in range(8)), return_exceptions=True
        )
        return answers, len(reads.idle)

    answers, idle = run(test)
    refused = [isinstance(each, NoConnection) for each in answers]
    assert refused == [False] * 6 + [True] * 2
    assert idle == 2


def test_a_reader_that_leaves_takes_its_connection_along(run: Callable[..., Any]) -> None:
    async def test(reads: PostgresReads) -> tuple[Any, int]:
        leaving = [asyncio.create_task(reads.one(SLEEP, {"seconds": 20.0})) for _ in range(3)]
        await asyncio.sleep(0.1)  # two of them run, and one waits
        for task in leaving:
            task.cancel()
        await asyncio.gather(*leaving, return_exceptions=True)
        row = await asyncio.wait_for(reads.one(ECHO, {"n": 1}), 5)
        return row.n, len(reads.waiting)

    assert run(test) == (1, 0)


def test_a_statement_that_takes_too_long_is_the_stores_trouble(run: Callable[..., Any]) -> None:
    """As through SQLAlchemy: its OperationalError, which is answered with 503."""

    async def test(reads: PostgresReads) -> int:
        with pytest.raises(OperationalError, match="statement timeout"):
            await reads.one(SLEEP, {"seconds": 20.0})
        return int((await reads.one(ECHO, {"n": 2})).n)

    assert run(test, statement_timeout_ms=100) == 2


def test_a_lost_connection_is_replaced(run: Callable[..., Any], database: Database) -> None:
    async def test(reads: PostgresReads) -> tuple[int, int]:
        first = (await reads.one(PID, {})).pid
        with database.engine.begin() as other:
            other.execute(text("SELECT pg_terminate_backend(:pid)"), {"pid": first})
        with pytest.raises(NoConnection):
            await reads.one(PID, {})
        return first, (await reads.one(PID, {})).pid

    first, second = run(test)
    assert first != second


def test_without_a_server_a_thread_finds_out(shared_url: str) -> None:
    url = create_engine(shared_url).url.set(database="not_there")
    settings = make_settings(url.render_as_string(hide_password=False))
    database = Database(settings)
    points = PointReads(settings, database)

    async def read() -> Any:
        return await points.one(ECHO, {"n": 1})

    with pytest.raises(OperationalError, match="not_there"):
        asyncio.run(read())
    points.close()
    database.close()
