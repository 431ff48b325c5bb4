"""Looking for text in scenarios by its trigrams, wherever in a word it stands.

On SQLite a full-text index of trigrams, kept by triggers, in the order scenarios were made; where
the library has none the list is read through. On Postgres an index over an array of trigrams, which
every server has: no extension is needed. A later revision that rebuilds `scenarios` on SQLite has
to make the triggers anew.
"""

from __future__ import annotations

import sqlite3

from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None

SQLITE = (
    """CREATE TABLE scenario_numbers (
        number INTEGER PRIMARY KEY,
        scenario_id VARCHAR(36) NOT NULL UNIQUE REFERENCES scenarios (id) ON DELETE CASCADE
    )""",
    """CREATE VIRTUAL TABLE scenario_words USING fts5(
        words, content='', columnsize=0, tokenize='trigram case_sensitive 1'
    )""",
    "INSERT INTO scenario_numbers (scenario_id) SELECT id FROM scenarios ORDER BY id",
    """INSERT INTO scenario_words (rowid, words)
        SELECT n.number, s.words FROM scenario_numbers n JOIN scenarios s ON s.id = n.scenario_id
        ORDER BY n.number""",
    """CREATE TRIGGER scenario_words_added AFTER INSERT ON scenarios BEGIN
        INSERT INTO scenario_numbers (scenario_id) VALUES (new.id);
        INSERT INTO scenario_words (rowid, words)
            SELECT number, new.words FROM scenario_numbers WHERE scenario_id = new.id;
    END""",
    """CREATE TRIGGER scenario_words_changed AFTER UPDATE OF words ON scenarios
    WHEN old.words <> new.words BEGIN
        INSERT INTO scenario_words (scenario_words, rowid, words)
            SELECT 'delete', number, old.words FROM scenario_numbers WHERE scenario_id = old.id;
        INSERT INTO scenario_words (rowid, words)
            SELECT number, new.words FROM scenario_numbers WHERE scenario_id = new.id;
    END""",
    """CREATE TRIGGER scenario_words_removed BEFORE DELETE ON scenarios BEGIN
        INSERT INTO scenario_words (scenario_words, rowid, words)
            SELECT 'delete', number, old.words FROM scenario_numbers WHERE scenario_id = old.id;
    END""",
)
SQLITE_BACK = (
    "DROP TRIGGER IF EXISTS scenario_words_removed",
    "DROP TRIGGER IF EXISTS scenario_words_changed",
    "DROP TRIGGER IF EXISTS scenario_words_added",
    "DROP TABLE IF EXISTS scenario_words",
    "DROP TABLE IF EXISTS scenario_numbers",
)
POSTGRES = (
    """CREATE FUNCTION planner_trigrams(workspace text, words text) RETURNS text[]
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE COST 1000 AS $$
        SELECT array_agg(DISTINCT substr(words, i, 3)) || ('=' || workspace)
        FROM generate_series(1, greatest(length(words) - 2, 1)) AS i
    $$""",
    """CREATE INDEX ix_scenarios_trigrams ON scenarios
        USING gin (planner_trigrams(workspace::text, words))""",
)
POSTGRES_BACK = ("DROP INDEX ix_scenarios_trigrams", "DROP FUNCTION planner_trigrams(text, text)")


def upgrade() -> None:
    """Go one revision forward."""
    if op.get_bind().dialect.name == "postgresql":
        _execute(POSTGRES)
    elif _has_trigrams():
        _execute(SQLITE)


def downgrade() -> None:
    """Go one revision back."""
    postgres = op.get_bind().dialect.name == "postgresql"
    _execute(POSTGRES_BACK if postgres else SQLITE_BACK)


def _execute(statements: tuple[str, ...]) -> None:
    for statement in statements:
        op.get_bind().exec_driver_sql(statement)


def _has_trigrams() -> bool:
    """Return whether the SQLite library has full-text search by trigrams."""
    options = op.get_bind().exec_driver_sql("PRAGMA compile_options").scalars().all()
    return sqlite3.sqlite_version_info >= (3, 34) and "ENABLE_FTS5" in options
