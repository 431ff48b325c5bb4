"""A backup of the whole store as one file, from either database and back into either.

The file is gzipped lines of JSON: the revision of the schema, every row of every table in the order
in which they refer to each other, and how many there are. A few rows are held at a time. Jobs are
left out: they expire by themselves.
"""

from __future__ import annotations

import gzip
import json
from collections import Counter
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Table, func, insert, select

from api.settings import Settings
from api.store import migrate
from api.store.database import make_engine
from api.store.tables import TRANSIENT, Base
from planner.errors import InvalidInput

FORMAT = "decode-planner-backup/1"
BATCH = 200
"""Rows held at a time."""


class BadBackup(InvalidInput):
    """A file that is no backup, or a store that cannot take it; one line."""


def backup(settings: Settings, path: Path) -> Counter[str]:
    """Write the store as it is at one moment; return the rows of each table."""
    migrate.require(settings)
    engine = make_engine(settings, patient=True)
    counts: Counter[str] = Counter()
    partial = path.with_name(f"{path.name}.partial")
    try:
        with (
            engine.connect().execution_options(**_snapshot(settings)) as connection,
            gzip.open(partial, "wt", encoding="utf-8") as file,
        ):
            _write(file, {"format": FORMAT, "revision": migrate.head()})
            for table in _tables():
                for row in _rows(connection, table):
                    _write(file, {"table": table.name, "row": row})
                    counts[table.name] += 1
            _write(file, {"rows": counts})
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)
        engine.dispose()
    return counts


def restore(settings: Settings, path: Path) -> Counter[str]:
    """Fill an empty store from a backup, all of it or nothing; return the rows of each table.

    Raises BadBackup where the file is no whole backup, is of another revision, or the store is not
    empty.
    """
    engine = make_engine(settings, patient=True)
    counts: Counter[str] = Counter()
    try:
        lines = _lines(path)
        _check_head(next(lines, {}))
        migrate.upgrade(settings)
        with engine.begin() as connection:
            for table in _tables():
                if connection.scalar(select(func.count()).select_from(table)):
                    raise BadBackup(f"the store is not empty: {table.name} has rows")
            _fill(connection, lines, counts)
    finally:
        engine.dispose()
    return counts


def _tables() -> list[Table]:
    return [table for table in Base.metadata.sorted_tables if table.name not in TRANSIENT]


def _fill(connection: Connection, lines: Iterator[dict[str, Any]], counts: Counter[str]) -> None:
    tables = Base.metadata.tables
    waiting: list[dict[str, Any]] = []
    name, stated = "", None
    for line in lines:
        if "rows" in line:
            stated = line["rows"]
            break
        if line["table"] not in tables or line["table"] in TRANSIENT:
            raise BadBackup(f"not a table of a backup: {str(line['table'])[:60]!r}")
        if line["table"] != name or len(waiting) == BATCH:
            _insert(connection, name, waiting)
            name, waiting = line["table"], []
        waiting.append(_typed(tables[name], line["row"]))
        counts[name] += 1
    _insert(connection, name, waiting)
    if stated != counts:
        raise BadBackup("the backup is not whole: its end is missing or rows are")


def _insert(connection: Connection, name: str, rows: list[dict[str, Any]]) -> None:
    if rows:
        connection.execute(insert(Base.metadata.tables[name]), rows)


def _rows(connection: Connection, table: Table) -> Iterator[dict[str, Any]]:
    query = select(table).order_by(*table.primary_key.columns)
    for row in connection.execute(query.execution_options(yield_per=BATCH)).mappings():
        yield {
            name: value.isoformat() if isinstance(value, datetime) else value
            for name, value in row.items()
        }


def _typed(table: Table, row: dict[str, Any]) -> dict[str, Any]:
    times = {column.name for column in table.columns if column.name.endswith("_at")}
    return {
        name: datetime.fromisoformat(value) if name in times and value else value
        for name, value in row.items()
    }


def _snapshot(settings: Settings) -> dict[str, Any]:
    """Options of a transaction that sees one state of the database; SQLite has no other."""
    return {} if settings.sqlite_file else {"isolation_level": "REPEATABLE READ"}


def _write(file: Any, line: dict[str, Any]) -> None:
    file.write(json.dumps(line, ensure_ascii=False, allow_nan=False) + "\n")


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    try:
        with gzip.open(path, "rt", encoding="utf-8") as file:
            for text in file:
                line = json.loads(text)
                if not isinstance(line, dict):
                    raise BadBackup(f"{path}: not a backup")
                yield line
    except (OSError, EOFError, ValueError) as error:
        raise BadBackup(f"{path}: not a whole backup: {str(error)[:200]}") from None


def _check_head(head: dict[str, Any]) -> None:
    if head.get("format") != FORMAT:
        raise BadBackup(f"not a backup of this program; accepted: {FORMAT}")
    if head["revision"] != migrate.head():
        raise BadBackup(
            f"the backup is of revision {head['revision']}, this release needs {migrate.head()}: "
            f"restore it with its own release, then upgrade"
        )
