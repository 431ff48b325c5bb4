"""Routes of the audit trail."""

from __future__ import annotations

from typing import Annotated, Any

from litestar import Controller, Request, get
from litestar.params import QueryParameter
from sqlalchemy import select

from api.changes.schemas import ChangeEntry, ChangePage
from api.services import services
from api.store import Database
from api.store.tables import ChangeRow
from api.web import cursor as cursors
from api.web.context import caller
from api.web.parameters import Cursor, Limit

ObjectId = Annotated[
    str | None, QueryParameter(name="object", max_length=200, description="id of what was changed")
]


class ChangeController(Controller):
    """Who changed what."""

    path = "/v1/changes"
    tags = ["changes"]  # noqa: RUF012 - the framework's own protocol

    @get(operation_id="listChanges", sync_to_thread=True)
    def page(
        self,
        request: Request[Any, Any, Any],
        object_: ObjectId = None,
        limit: Limit = 50,
        cursor: Cursor = None,
    ) -> ChangePage:
        """List who changed what in this workspace, newest first, all or of one object."""
        workspace = caller(request).workspace
        return changes_of(services(request).database, workspace, object_, limit, cursor)


def changes_of(
    database: Database, workspace: str, ident: str | None, limit: int, cursor: str | None
) -> ChangePage:
    """Return a page of the changes of a workspace."""
    bound = f"{workspace} changes {ident}"
    query = select(ChangeRow).where(ChangeRow.workspace == workspace)
    if ident is not None:
        query = query.where(ChangeRow.object == ident)
    if cursor is not None:
        query = query.where(ChangeRow.id < cursors.decode(cursor, bound))
    with database.reading() as session:
        rows = list(session.scalars(query.order_by(ChangeRow.id.desc()).limit(limit + 1)))
    items = [_entry(row) for row in rows[:limit]]
    following = cursors.encode(items[-1].id, bound) if len(rows) > limit else None
    return ChangePage(items=items, next_cursor=following)


def _entry(row: ChangeRow) -> ChangeEntry:
    return ChangeEntry(
        id=row.id,
        kind=row.kind,
        object=row.object,
        action=row.action,
        revision=row.revision,
        key_id=row.key_id,
        client=row.client,
        request_id=row.request_id,
        changed_at=row.changed_at.isoformat(),
    )
