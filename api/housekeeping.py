"""What is deleted with time: answers to Idempotency-Keys, and the oldest of the audit trail."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from datetime import timedelta

import structlog
from sqlalchemy import delete
from sqlalchemy.exc import SQLAlchemyError

from api.services import Services
from api.store import Database
from api.store.tables import ChangeRow, IdempotencyRow, now

log = structlog.get_logger("api")

EVERY_S = 3600.0
"""Time between two rounds [s]."""


def tidy(database: Database, changes_days: int) -> None:
    """Delete what does not count any more."""
    with database.writing() as session:
        keys = IdempotencyRow.created_at < now() - database.idempotency
        session.execute(delete(IdempotencyRow).where(keys))
        changes = ChangeRow.changed_at < now() - timedelta(days=changes_days)
        session.execute(delete(ChangeRow).where(changes))


async def keep_tidy(services: Services) -> None:
    """Tidy every hour; a store that does not answer is tidied the next time."""
    loop = asyncio.get_running_loop()
    while True:
        with suppress(SQLAlchemyError, OSError):
            days = services.settings.changes_days
            await loop.run_in_executor(services.lanes["probe"], tidy, services.database, days)
        await asyncio.sleep(EVERY_S)
