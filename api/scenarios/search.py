"""Looking for text in the scenarios of a workspace, a page at a time.

The text stands anywhere in what lists show of a scenario. Both databases know scenarios by their
trigrams; what those propose is compared with the text itself.
"""

from __future__ import annotations

from math import ceil
from typing import Any

from sqlalchemy import Select, cast, column, func, literal_column, select, table
from sqlalchemy.dialects.postgresql import ARRAY, array
from sqlalchemy.orm import Session, scoped_session
from sqlalchemy.types import Text

from api.store.tables import ScenarioRow

AnySession = Session | scoped_session[Session]

SHORTEST = 3
"""Characters of a text that has trigrams [-]."""
WINDOW = 2_000
"""Scenarios that are read through first on Postgres: where many match, these are a page [-]."""

FURTHER = 20_000
"""Scenarios that are read through after that at most, where they promise to fill the page [-]."""

NUMBERS = table("scenario_numbers", column("number"), column("scenario_id"))
WORDS = table("scenario_words", column("rowid"), column("scenario_words"))
HAS_INDEX: Select[tuple[Any]] = (
    select(literal_column("1"))
    .select_from(table("sqlite_master"))
    .where(literal_column("name") == WORDS.name)
)


def page_with_text(
    session: AnySession,
    query: Select[Any],
    words: str,
    workspace: str,
    after: str | None,
    size: int,
) -> list[ScenarioRow]:
    """Return up to `size` scenarios of a query that hold a text, after an id, oldest first.

    `query` has all other filters and no order.
    """
    words = words.lower()
    matching = query.where(ScenarioRow.words.contains(words, autoescape=True))
    if len(words) >= SHORTEST:
        if session.get_bind().dialect.name == "postgresql":
            return _postgres(session, matching, words, workspace, after, size)
        if session.scalar(HAS_INDEX):
            return list(session.scalars(_sqlite(matching, words, after).limit(size)))
    return list(session.scalars(_ordered(matching, after).limit(size)))


def _ordered(query: Select[Any], after: str | None) -> Select[Any]:
    if after is not None:
        query = query.where(ScenarioRow.id > after)
    return query.order_by(ScenarioRow.id)


def _sqlite(query: Select[Any], words: str, after: str | None) -> Select[Any]:
    """Return the query over the index, which is in the order scenarios were made."""
    phrase = '"' + words.replace('"', '""') + '"'
    query = (
        query.join(NUMBERS, NUMBERS.c.scenario_id == ScenarioRow.id)
        .join(WORDS, WORDS.c.rowid == NUMBERS.c.number)
        .where(WORDS.c.scenario_words.op("MATCH")(phrase))
    )
    if after is not None:
        last = select(NUMBERS.c.number).where(NUMBERS.c.scenario_id == after).scalar_subquery()
        query = query.where(WORDS.c.rowid > last)
    return query.order_by(WORDS.c.rowid)


def _postgres(
    session: AnySession,
    query: Select[Any],
    words: str,
    workspace: str,
    after: str | None,
    size: int,
) -> list[ScenarioRow]:
    """Read a window through, and look the rest up: the index has no order.

    A text that many scenarios hold fills the page from the window, or from a second one as long as
    the first one promises; what few hold is looked up. Neither reads or sorts many.
    """
    within = select(ScenarioRow.id).where(ScenarioRow.workspace == workspace)
    rows, last = _window(session, query, within, after, WINDOW, size)
    if last is not None and 0 < len(rows) < size:
        promised = ceil(1.5 * WINDOW * (size - len(rows)) / len(rows))
        if promised <= FURTHER:
            more, last = _window(session, query, within, last, promised, size - len(rows))
            rows += more
    if last is not None and len(rows) < size:
        rows += session.scalars(_proposed(query, words, workspace, last, size - len(rows)))
    return rows


def _window(
    session: AnySession,
    query: Select[Any],
    within: Select[Any],
    after: str | None,
    length: int,
    size: int,
) -> tuple[list[ScenarioRow], str | None]:
    """Return up to `size` of a query's rows among the next `length` of all, and the last of those.

    None is last where there are no more.
    """
    last = session.scalar(_ordered(within, after).offset(length - 1).limit(1))
    window = query if last is None else query.where(ScenarioRow.id <= last)
    return list(session.scalars(_ordered(window, after).limit(size))), last


def _proposed(query: Select[Any], words: str, workspace: str, after: str, size: int) -> Select[Any]:
    """Return the query over what the index proposes."""
    grams = dict.fromkeys(words[i : i + SHORTEST] for i in range(len(words) - SHORTEST + 1))
    known = func.planner_trigrams(
        ScenarioRow.workspace.cast(Text), ScenarioRow.words, type_=ARRAY(Text)
    )
    wanted = cast(array([*grams, f"={workspace}"]), ARRAY(Text))
    matching = query.with_only_columns(ScenarioRow.id).where(
        known.contains(wanted), ScenarioRow.id > after
    )
    # Looked up as a whole: with order and limit the planner would rather read all of the table.
    proposed = matching.cte("proposed").prefix_with("MATERIALIZED")
    return _ordered(
        select(ScenarioRow).where(ScenarioRow.id.in_(select(proposed.c.id))), None
    ).limit(size)
