"""The tables of the queue on Postgres: in a schema of their own, and made anew when they change.

They hold ids of jobs that wait, which the store knows too: whatever is lost with them is put again.
"""

from __future__ import annotations

from importlib.metadata import version
from importlib.util import find_spec

from sqlalchemy import text

from api.settings import Settings
from api.store.database import make_engine

NAME = "planner_queue"
LOCK = 0x706C6171
"""Postgres advisory lock held while they are made."""
WRITTEN = "SELECT obj_description(to_regnamespace(:name)::oid, 'pg_namespace')"


def prepare(settings: Settings) -> None:
    """Make the tables that the installed procrastinate wants, unless they are there."""
    if settings.sqlite_file is not None or find_spec("procrastinate") is None:
        return
    from procrastinate.schema import SchemaManager

    wanted = f"procrastinate {version('procrastinate')}"
    engine = make_engine(settings, patient=True)
    try:
        with engine.begin() as connection:
            if connection.scalar(text(WRITTEN), {"name": NAME}) == wanted:
                return
            connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({LOCK})")
            if connection.scalar(text(WRITTEN), {"name": NAME}) == wanted:
                return
            connection.exec_driver_sql(f"DROP SCHEMA IF EXISTS {NAME} CASCADE")
            connection.exec_driver_sql(f"CREATE SCHEMA {NAME}")
            connection.exec_driver_sql(f"SET LOCAL search_path TO {NAME}")
            raw = connection.connection.driver_connection
            assert raw is not None  # noqa: S101 - a connection that is open
            raw.execute(SchemaManager.get_schema())
            connection.exec_driver_sql(f"COMMENT ON SCHEMA {NAME} IS '{wanted}'")
    finally:
        engine.dispose()
