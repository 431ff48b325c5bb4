"""The store: one schema on SQLite and Postgres."""

from __future__ import annotations

from api.store.database import Database
from api.store.points import Points

__all__ = ["Database", "Points"]
