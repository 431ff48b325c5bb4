"""Alembic revisions of the store, one tree for SQLite and Postgres."""
