"""The store: one schema on SQLite and Postgres."""

from __future__ import annotations

from api.store.database import Database
from api.store.points import PointReads

__all__ = ["Database", "PointReads"]
