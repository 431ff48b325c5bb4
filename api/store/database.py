"""Connections and transactions."""

from __future__ import annotations

import functools
import json
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

from sqlalchemy import Connection, Engine, create_engine, event, text
from sqlalchemy.orm import Session, sessionmaker

from api.settings import Settings
from api.store.changes import record_changes


class NoConnection(Exception):
    """No connection is free, or none can be had: a thread waits for one."""


class Database:
    """A database and its two kinds of transaction."""

    def __init__(self, settings: Settings) -> None:
        self.engine = make_engine(settings)
        self.idempotency = timedelta(hours=settings.idempotency_hours)
        """How long the answer to a request with an Idempotency-Key counts."""
        info = {"idempotency": self.idempotency}
        make = functools.partial(sessionmaker, expire_on_commit=False, info=info)
        self._readers = make(self.engine.execution_options(planner_write=False))
        self._writers = make(self.engine.execution_options(planner_write=True))
        record_changes(self._writers)

    @contextmanager
    def reading(self) -> Iterator[Session]:
        """Open a transaction that sees one state of the database."""
        with self._readers() as session, session.begin():
            yield session

    @contextmanager
    def writing(self) -> Iterator[Session]:
        """Open a transaction that commits as a whole when the block ends, or not at all."""
        with self._writers() as session, session.begin():
            yield session

    def revision(self) -> str:
        """Return the revision of the schema; raises unless the database answers."""
        with self.reading() as session:
            return str(session.scalar(text("SELECT version_num FROM alembic_version")))

    def close(self) -> None:
        """Close all connections."""
        self.engine.dispose()


def make_engine(settings: Settings, *, patient: bool = False) -> Engine:
    """Return the engine of the configured database; JSON columns refuse NaN and Infinity.

    A `patient` one has no timeouts on Postgres: migrations and backups take as long as they take.
    """
    options: dict[str, Any] = {
        "json_serializer": functools.partial(json.dumps, allow_nan=False, ensure_ascii=False),
        "pool_size": settings.pool_size,
        "max_overflow": 2 * settings.pool_size,
        "pool_timeout": 10,
    }
    file = settings.sqlite_file
    if file is None:
        arguments: dict[str, Any] = {"connect_timeout": 5}
        if not patient:
            arguments["options"] = timeouts(settings)
        return create_engine(settings.url, pool_pre_ping=True, connect_args=arguments, **options)
    file.parent.mkdir(parents=True, exist_ok=True)
    engine = create_engine(settings.url, connect_args={"check_same_thread": False}, **options)
    prepare_sqlite(engine, settings.busy_timeout_ms)
    return engine


def timeouts(settings: Settings) -> str:
    """Return Postgres' own limits on statements, locks and idle transactions [ms].

    None starts parallel workers: that takes longer than a page takes to read.
    """
    values = {
        "max_parallel_workers_per_gather": 0,
        "statement_timeout": settings.statement_timeout_ms,
        "lock_timeout": settings.lock_timeout_ms,
        "idle_in_transaction_session_timeout": settings.idle_transaction_timeout_ms,
    }
    return " ".join(f"-c {name}={value}" for name, value in values.items())


def prepare_sqlite(engine: Engine, busy_timeout_ms: int) -> None:
    """Make SQLite durable and let SQLAlchemy say when a transaction begins.

    A writer takes its lock at BEGIN: taken later, a stale snapshot would fail at once instead of
    waiting for the busy timeout.
    """

    @event.listens_for(engine, "connect")
    def _connect(connection: Any, _record: Any) -> None:
        connection.isolation_level = None
        cursor = connection.cursor()
        cursor.execute(f"PRAGMA busy_timeout={busy_timeout_ms}")
        cursor.execute("PRAGMA journal_mode=WAL")
        cursor.execute("PRAGMA synchronous=FULL")
        cursor.execute("PRAGMA foreign_keys=ON")
        cursor.close()

    @event.listens_for(engine, "begin")
    def _begin(connection: Connection) -> None:
        write = connection.get_execution_options().get("planner_write", False)
        connection.exec_driver_sql("BEGIN IMMEDIATE" if write else "BEGIN")
