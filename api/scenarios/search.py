"""Looking for text in the scenarios of a workspace, a page at a time.

The text stands anywhere in what lists show of a scenario. Both databases know scenarios by their
trigrams; what those propose is compared with the text itself.
"""

from __future__ import annotations

import re
from math import ceil
from typing import Any

from sqlalchemy import Select, cast, column, func, literal_column, select, table, text
from sqlalchemy.dialects.postgresql import ARRAY, array
from sqlalchemy.orm import Session, scoped_session
from sqlalchemy.types import Text

from api.scenarios.listing import Filters
from api.store.tables import ScenarioRow

AnySession = Session | scoped_session[Session]

SHORTEST = 3
"""Characters of a text that has trigrams [-]."""
WINDOW = 2_000
"""Scenarios that are read through at least, where many hold a text or nothing tells [-]."""
MOST = 20_000
"""Scenarios that are read through at most, where the index's statistics promise a page [-]."""
LAST = "~"
"""Comes after every id."""
SELDOM = 0.002
"""Share of scenarios taken to have a key that the statistics of the index do not know [-]."""
USEFUL = 10.0
"""Times as frequent as a text's rarest trigram that others of it may be to be looked up [-]."""
HALF = 0.5
"""Share of scenarios that may have a key of another filter for it to be looked up too [-]."""

NUMBERS = table("scenario_numbers", column("number"), column("scenario_id"))
FREQUENCIES = text(
    "SELECT known.key, known.share FROM pg_stats AS s, "
    "unnest(s.most_common_elems::text::text[], s.most_common_elem_freqs) AS known (key, share) "
    "WHERE s.schemaname = current_schema() AND s.tablename = 'ix_scenarios_trigrams' "
    "AND known.key = ANY(:keys)"
)
WORDS = table("scenario_words", column("rowid"), column("scenario_words"))
HAS_INDEX: Select[tuple[Any]] = (
    select(literal_column("1"))
    .select_from(table("sqlite_master"))
    .where(literal_column("name") == WORDS.name)
)


def page_with_text(
    session: AnySession,
    query: Select[Any],
    filters: Filters,
    workspace: str,
    after: str | None,
    size: int,
) -> list[ScenarioRow]:
    """Return up to `size` scenarios of a query that hold a text, after an id, oldest first.

    `query` has all filters but the text, and no order. What a scenario holds begins with its name,
    its model and its accelerator, so that their trigrams narrow what the index proposes.
    """
    words = (filters.text or "").lower()
    others = [value.lower() for value in (filters.model, filters.gpu) if value]
    matching = query.where(ScenarioRow.words.contains(words, autoescape=True))
    if len(words) >= SHORTEST:
        if session.get_bind().dialect.name == "postgresql":
            keys = [[f"={workspace}"], *map(_grams, others)]
            return _postgres(session, matching, _grams(words), keys, workspace, after, size)
        if session.scalar(HAS_INDEX):
            phrases = [words, *(part for value in others for part in _telling(value))]
            return list(session.scalars(_sqlite(matching, phrases, after).limit(size)))
    return list(session.scalars(_ordered(matching, after).limit(size)))


def _ordered(query: Select[Any], after: str | None) -> Select[Any]:
    if after is not None:
        query = query.where(ScenarioRow.id > after)
    return query.order_by(ScenarioRow.id)


def _telling(value: str) -> list[str]:
    """Return trigrams that tell a model or an accelerator from others: names differ by digits.

    Two at most, for the index reads each of them through.
    """
    return re.findall(r"\d..", value)[:2]


def _sqlite(query: Select[Any], phrases: list[str], after: str | None) -> Select[Any]:
    """Return the query over the index, which is in the order scenarios were made."""
    wanted = " AND ".join('"' + phrase.replace('"', '""') + '"' for phrase in phrases)
    query = (
        query.join(NUMBERS, NUMBERS.c.scenario_id == ScenarioRow.id)
        .join(WORDS, WORDS.c.rowid == NUMBERS.c.number)
        .where(WORDS.c.scenario_words.op("MATCH")(wanted))
    )
    if after is not None:
        last = select(NUMBERS.c.number).where(NUMBERS.c.scenario_id == after).scalar_subquery()
        query = query.where(WORDS.c.rowid > last)
    return query.order_by(WORDS.c.rowid)


def _postgres(
    session: AnySession,
    query: Select[Any],
    grams: list[str],
    others: list[list[str]],
    workspace: str,
    after: str | None,
    size: int,
) -> list[ScenarioRow]:
    """Read scenarios through in order, or look them up: the index has no order.

    A text that many hold fills the page from the first ones; what few hold is looked up, as is what
    such a window did not fill. Neither reads or sorts many.
    """
    keys = [*grams, *(key for some in others for key in some)]
    known = dict(session.execute(FREQUENCIES, {"keys": keys}).tuples().all())
    rows: list[ScenarioRow] = []
    if length := _window(known, grams, size):
        within = select(ScenarioRow.id).where(ScenarioRow.workspace == workspace)
        last = _ordered(within, after).offset(length - 1).limit(1).scalar_subquery()
        window = query.where(ScenarioRow.id <= func.coalesce(last, LAST))
        rows += session.scalars(_ordered(window, after).limit(size))
        after = rows[-1].id if rows else after
    if len(rows) < size:
        useful = _useful(known, grams, others)
        rows += session.scalars(_proposed(query, useful, after, size - len(rows)))
    return rows


def _window(known: dict[str, float], grams: list[str], size: int) -> int:
    """Return how many scenarios to read through, 0 where looking them up takes less.

    `known` has the shares of scenarios that have a key. Half as many again are read as should fill
    the page, were the text the only filter: what others leave of it, nothing tells beforehand.
    """
    if not known:
        return WINDOW
    share = min(known.get(gram, 0.0) for gram in grams)
    return max(WINDOW, ceil(1.5 * size / share)) if share * MOST >= 1.5 * size else 0


def _grams(words: str) -> list[str]:
    return [*dict.fromkeys(words[i : i + SHORTEST] for i in range(len(words) - SHORTEST + 1))]


def _useful(known: dict[str, float], grams: list[str], others: list[list[str]]) -> list[str]:
    """Return the keys that are worth looking up: of a text, and the rarest of each other filter.

    The index seeks every further key for each scenario that the rarest one proposes, which takes
    longer than reading the scenario where most of them have the key.
    """
    keys = [*grams, *(key for some in others for key in some)]
    shares = {key: max(known.get(key, 0.0), SELDOM) for key in keys}
    most = USEFUL * min(shares[gram] for gram in grams)
    rarest = [min(some, key=shares.__getitem__) for some in others if some]
    return [
        *(gram for gram in grams if shares[gram] <= most),
        *(key for key in rarest if shares[key] <= HALF),
    ]


def _proposed(query: Select[Any], keys: list[str], after: str | None, size: int) -> Select[Any]:
    """Return the query over what the index proposes."""
    known = func.planner_trigrams(
        ScenarioRow.workspace.cast(Text), ScenarioRow.words, type_=ARRAY(Text)
    )
    wanted = cast(array(keys), ARRAY(Text))
    matching = query.with_only_columns(ScenarioRow.id).where(known.contains(wanted))
    if after is not None:
        matching = matching.where(ScenarioRow.id > after)
    # Looked up as a whole: with order and limit the planner would rather read all of the table.
    proposed = matching.cte("proposed").prefix_with("MATERIALIZED")
    first = select(proposed.c.id).order_by(proposed.c.id).limit(size)
    return _ordered(select(ScenarioRow).where(ScenarioRow.id.in_(first)), None)
