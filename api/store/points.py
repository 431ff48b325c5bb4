"""Reading one row by its key: one statement, no transaction around it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any

from sqlalchemy import Engine, Executable, Row, StaticPool, create_engine, event
from sqlalchemy.exc import OperationalError

from api.settings import Settings
from api.store.database import Database, NoConnection

if TYPE_CHECKING:
    from api.store.postgres_reads import PostgresReads

OneRow = Row[Any] | None


def _untraced(_name: str, **_attributes: Any) -> AbstractContextManager[Any]:
    return nullcontext()


class PointReads:
    """Reads single rows.

    SQLite finds a row by its key in less time than a thread takes to be woken: the event loop reads
    it itself, on a connection that waits for no lock. Postgres is sent the statement by the event
    loop, on connections that are its own. Where SQLite would have to wait, and where Postgres gives
    no more connections, the row is read in the lane of the request.
    """

    def __init__(self, settings: Settings, database: Database) -> None:
        on_postgres = settings.sqlite_file is None
        options = {"isolation_level": "AUTOCOMMIT"} if on_postgres else {}
        self.engine = database.engine.execution_options(**options)
        self.at_once = None if on_postgres else _impatient(settings)
        self.postgres = _postgres(settings, database) if on_postgres else None

        self.span: Callable[..., AbstractContextManager[Any]] = _untraced
        """Opens the span of a trace around what no engine sees, by name and attributes."""

    async def one(self, query: Executable, parameters: Mapping[str, Any]) -> OneRow:
        """Return the row of a query, None where there is none."""
        if self.postgres is not None:
            try:
                with self.span("store SELECT", **{"db.system": "postgresql"}):
                    row: OneRow = await self.postgres.one(query, parameters)
                return row
            except NoConnection:
                pass
        elif self.at_once is not None:
            try:
                return _one(self.at_once, query, parameters)
            except OperationalError:  # locked: whoever waits for it has a thread
                pass
        return await asyncio.to_thread(_one, self.engine, query, parameters)

    def close(self) -> None:
        """Close the connections of the event loop."""
        if self.at_once is not None:
            self.at_once.dispose()
        if self.postgres is not None:
            self.postgres.close()


def _one(engine: Engine, query: Executable, parameters: Mapping[str, Any]) -> OneRow:
    with engine.connect() as connection:
        row: OneRow = connection.execute(query, parameters).one_or_none()
    return row


def _postgres(settings: Settings, database: Database) -> PostgresReads:
    from api.store.postgres_reads import PostgresReads  # psycopg is an extra

    return PostgresReads(settings, database.engine)


def _impatient(settings: Settings) -> Engine:
    """Return an engine of one connection, which only reads and waits for nobody."""
    arguments = {"check_same_thread": False, "isolation_level": None, "timeout": 0}
    engine = create_engine(settings.url, connect_args=arguments, poolclass=StaticPool)

    @event.listens_for(engine, "connect")
    def _connect(connection: Any, _record: Any) -> None:
        connection.execute("PRAGMA query_only=ON")

    return engine
