"""Reading one row from Postgres without a thread: the event loop waits for the answer itself.

Handing a statement to a thread and back takes longer than Postgres takes to find a row by its key;
so does asking before every statement whether the connection still lives.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, cast

import psycopg
from psycopg.rows import namedtuple_row
from sqlalchemy import Dialect, Engine, Executable
from sqlalchemy.exc import DBAPIError
from sqlalchemy.sql import ClauseElement

from api.settings import Settings
from api.store.database import NoConnection, timeouts

Connection = psycopg.AsyncConnection[Any]
CONNECT_S = 5
"""Time that Postgres may take to let a connection in [s]."""


class PostgresReads:
    """A few connections of one event loop, each in use by one read at a time."""

    def __init__(self, settings: Settings, engine: Engine) -> None:
        self.dialect = engine.dialect
        self.arguments: dict[str, Any] = {
            **self.dialect.create_connect_args(engine.url)[1],
            "connect_timeout": CONNECT_S,
            "options": f"{timeouts(settings)} -c TimeZone=UTC",
        }
        self.most = settings.lane_store
        self.idle: list[Connection] = []
        self.opened = 0
        """Connections that are open or being opened."""
        self.most_waiting = settings.lane_store * settings.lane_waiting
        self.waiting: deque[asyncio.Future[Connection | None]] = deque()
        """Reads that wait for a connection, or for the place of one that was lost."""

    async def one(self, query: Executable, parameters: Mapping[str, Any]) -> Any:
        """Return the row of a query with its columns as attributes, None where there is none.

        Raises NoConnection, and what SQLAlchemy makes of an error of Postgres.
        """
        statement, given = compiled(query, self.dialect)
        connection = self.idle.pop() if self.idle else await self._next()
        try:
            cursor = await connection.execute(statement, {**given, **parameters})
            return await cursor.fetchone()
        except psycopg.Error as error:
            if connection.closed:
                raise NoConnection from None
            raise DBAPIError.instance(statement, None, error, psycopg.Error) from None
        finally:
            self._give_back(connection)

    async def _next(self) -> Connection:
        if self.opened < self.most:
            return await self._another()
        if len(self.waiting) >= self.most_waiting:
            raise NoConnection
        turn: asyncio.Future[Connection | None] = asyncio.get_running_loop().create_future()
        self.waiting.append(turn)
        try:
            return await turn or await self._another()
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():  # it was handed over, but to no one now
                unused = turn.result()
                self._give_back(unused) if unused else self._handed(None)
            raise

    async def _another(self) -> Connection:
        self.opened += 1
        try:
            return await psycopg.AsyncConnection.connect(
                autocommit=True, row_factory=namedtuple_row, **self.arguments
            )
        except BaseException as error:
            self._lost()
            if isinstance(error, psycopg.Error):
                raise NoConnection from None
            raise

    def _give_back(self, connection: Connection) -> None:
        """Use a connection again, unless it is lost, or its reader left before the answer."""
        if connection.info.transaction_status == psycopg.pq.TransactionStatus.IDLE:
            if not self._handed(connection):
                self.idle.append(connection)
        else:
            connection.pgconn.finish()
            self._lost()

    def _lost(self) -> None:
        self.opened -= 1
        self._handed(None)

    def _handed(self, connection: Connection | None) -> bool:
        """Hand a connection, or the place of one, to the read that has waited longest."""
        while self.waiting:
            turn = self.waiting.popleft()
            if not turn.done():
                turn.set_result(connection)
                return True
        return False

    def close(self) -> None:
        """Close the connections, whether the event loop still runs or not."""
        for connection in self.idle:
            connection.pgconn.finish()
        self.opened -= len(self.idle)
        self.idle.clear()


@lru_cache(maxsize=64)
def compiled(query: Executable, dialect: Dialect) -> tuple[str, dict[str, Any]]:
    """Return a query as psycopg takes it, and the values that stand in it."""
    statement = cast("ClauseElement", query).compile(dialect=dialect)
    return str(statement), dict(statement.params)
