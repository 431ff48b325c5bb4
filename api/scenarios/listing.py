"""Lists of scenarios: what they are narrowed to, and in which order they come."""

from __future__ import annotations

from dataclasses import astuple, dataclass
from datetime import datetime
from typing import Any, Literal

from sqlalchemy import ColumnElement, Select, String, and_, literal_column, or_, select
from sqlalchemy.orm import InstrumentedAttribute

from api.store.tables import ScenarioRow, TagRow

Sort = Literal["created", "-created", "name", "-name", "updated", "-updated"]
SEPARATOR = "\0"
"""Between the parts of a position; no stored text has it."""


@dataclass(frozen=True, slots=True)
class Filters:
    """What a list is narrowed to, and its order."""

    tag: str | None = None
    model: str | None = None
    gpu: str | None = None
    text: str | None = None
    deleted: bool = False
    name: str | None = None
    engine: str | None = None
    created_from: datetime | None = None
    created_before: datetime | None = None
    updated_from: datetime | None = None
    stale: bool | None = None
    sort: Sort = "created"

    def fingerprint(self) -> str:
        """Return what a cursor is bound to."""
        return repr(astuple(self))


def page_query(query: Select[Any], filters: Filters, after: str | None, size: int) -> Select[Any]:
    """Return the query of a page after a position, from one that `filtered` returns."""
    if filters.text is not None:
        query = query.where(ScenarioRow.words.contains(filters.text.lower(), autoescape=True))
    descending, key = filters.sort.startswith("-"), _key(filters)
    # The same ids either way: named after the table to begin with, the tag's few rows are read in
    # order instead of all scenarios.
    by_tag = filters.tag is not None and key is None
    ident = TagRow.scenario_id if by_tag else ScenarioRow.id
    columns = [ident] if key is None else [key, ScenarioRow.id]
    query = query.order_by(*(column.desc() if descending else column for column in columns))
    if after is not None:
        query = query.where(_beyond(columns, _values(after, key), descending))
    return query.limit(size)


def position(row: ScenarioRow, sort: Sort) -> str:
    """Return where a row stands in a list, for a cursor."""
    keys = {"created": [], "name": [row.name], "updated": [row.updated_at.isoformat()]}
    return SEPARATOR.join([*keys[sort.removeprefix("-")], row.id])


def _key(filters: Filters) -> InstrumentedAttribute[Any] | None:
    """Return the column that a list is in the order of; None is the id, which is by time."""
    columns = {"name": ScenarioRow.name, "updated": ScenarioRow.updated_at}
    return columns.get(filters.sort.removeprefix("-"))


def _values(after: str, key: InstrumentedAttribute[Any] | None) -> list[Any]:
    parts: list[Any] = after.split(SEPARATOR)
    if key is ScenarioRow.updated_at:
        parts[0] = datetime.fromisoformat(parts[0])
    return parts


def _beyond(columns: list[Any], values: list[Any], descending: bool) -> Any:
    """Return the condition of a row that comes after a position."""
    pairs = list(zip(columns, values, strict=True))
    alternatives = [
        and_(
            *(column == value for column, value in pairs[:n]),
            pairs[n][0] < pairs[n][1] if descending else pairs[n][0] > pairs[n][1],
        )
        for n in range(len(pairs))
    ]
    first, value = pairs[0]
    # Said once more for the index: databases do not find it in the alternatives.
    return and_(first <= value if descending else first >= value, or_(*alternatives))


def filtered(workspace: str, filters: Filters, current: str, dialect: str) -> Select[Any]:
    """Return the query of what a list is narrowed to, but for its text, in no order.

    `current` are the editions in use.
    """
    by_tag = filters.tag is not None and dialect == "sqlite"
    # Without statistics SQLite would read every scenario and look for the tag at each: a column
    # with a sign is in none of its indexes.
    column: ColumnElement[str] = literal_column("+scenarios.workspace", String)
    query = select(ScenarioRow).where((column if by_tag else ScenarioRow.workspace) == workspace)
    deleted = ScenarioRow.deleted_at
    query = query.where(deleted.is_not(None) if filters.deleted else deleted.is_(None))
    if filters.tag is not None:
        query = query.join(TagRow, TagRow.scenario_id == ScenarioRow.id)
        query = query.where(TagRow.tag == filters.tag)
    if filters.stale is not None:
        same = ScenarioRow.computed_with == current
        query = query.where(~same if filters.stale else same)
    conditions = (
        (filters.model, ScenarioRow.model.__eq__),
        (filters.gpu, ScenarioRow.gpu.__eq__),
        (filters.name, ScenarioRow.name.__eq__),
        (filters.engine, ScenarioRow.engine.__eq__),
        (filters.created_from, ScenarioRow.created_at.__ge__),
        (filters.created_before, ScenarioRow.created_at.__lt__),
        (filters.updated_from, ScenarioRow.updated_at.__ge__),
    )
    return query.where(*(compare(value) for value, compare in conditions if value is not None))
