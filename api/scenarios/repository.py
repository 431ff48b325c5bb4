"""Rows of scenarios: reading, filtering, and adding a revision."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from advanced_alchemy.repository import SQLAlchemySyncRepository
from sqlalchemy import ColumnElement, Select, String, delete, literal_column, select
from sqlalchemy.orm import Session, defer

from api.scenarios.search import page_with_text
from api.store.tables import RevisionRow, ScenarioRow, TagRow


@dataclass(frozen=True, slots=True)
class Filters:
    """What a list is narrowed to."""

    tag: str | None = None
    model: str | None = None
    gpu: str | None = None
    text: str | None = None
    deleted: bool = False

    def fingerprint(self) -> str:
        """Return what a cursor is bound to."""
        return repr((self.tag, self.model, self.gpu, self.text, self.deleted))


class ScenarioRepository(SQLAlchemySyncRepository[ScenarioRow]):
    """Scenarios of one session."""

    model_type = ScenarioRow

    @classmethod
    def of(cls, session: Session) -> ScenarioRepository:
        """Return the repository; driver errors come as they are, a wrapper hides their kind."""
        return cls(session=session, wrap_exceptions=False)

    def find(self, workspace: str, ident: str, *, lock: bool = False) -> ScenarioRow | None:
        """Return a scenario of a workspace, deleted or not; `lock` keeps other writers out."""
        query = select(ScenarioRow).where(
            ScenarioRow.workspace == workspace, ScenarioRow.id == ident
        )
        return self.session.scalars(query.with_for_update() if lock else query).one_or_none()

    def page(
        self, workspace: str, filters: Filters, after: str | None, size: int
    ) -> list[ScenarioRow]:
        """Return up to `size` scenarios after an id, oldest first."""
        # The same ids either way: named after the table to begin with, the tag's few rows are read
        # in order instead of all scenarios.
        ident = ScenarioRow.id if filters.tag is None else TagRow.scenario_id
        query = _filtered(workspace, filters, self.session.get_bind().dialect.name)
        if filters.text:
            return page_with_text(self.session, query, filters.text, workspace, after, size)
        query = query.order_by(ident).limit(size)
        if after is not None:
            query = query.where(ident > after)
        return list(self.session.scalars(query))

    def newest(self, row: ScenarioRow) -> RevisionRow:
        """Return a scenario's newest revision."""
        return self.revision(row, row.revision) or _lost(row)

    def revision(self, row: ScenarioRow, number: int) -> RevisionRow | None:
        """Return one revision of a scenario."""
        revision: RevisionRow | None = self.session.get(RevisionRow, (row.id, number))
        return revision

    def revisions(self, row: ScenarioRow) -> list[RevisionRow]:
        """Return all revisions of a scenario, oldest first."""
        query = select(RevisionRow).where(RevisionRow.scenario_id == row.id)
        return list(self.session.scalars(query.order_by(RevisionRow.revision)))

    def newest_of(self, rows: list[ScenarioRow]) -> dict[str, RevisionRow]:
        """Return the newest revision of each scenario, by scenario id, without its plan."""
        query = (
            select(RevisionRow)
            .options(defer(RevisionRow.plan, raiseload=True))
            .join(ScenarioRow, ScenarioRow.id == RevisionRow.scenario_id)
            .where(
                ScenarioRow.id.in_([row.id for row in rows]),
                RevisionRow.revision == ScenarioRow.revision,
            )
        )
        return {revision.scenario_id: revision for revision in self.session.scalars(query)}

    def retag(self, row: ScenarioRow, tags: list[str]) -> None:
        """Make `tags` the tags of a scenario."""
        self.session.execute(delete(TagRow).where(TagRow.scenario_id == row.id))
        self.session.add_all(TagRow(scenario_id=row.id, tag=tag) for tag in dict.fromkeys(tags))


def _filtered(workspace: str, filters: Filters, dialect: str) -> Select[Any]:
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
    if filters.model is not None:
        query = query.where(ScenarioRow.model == filters.model)
    if filters.gpu is not None:
        query = query.where(ScenarioRow.gpu == filters.gpu)
    return query


def _lost(row: ScenarioRow) -> RevisionRow:
    raise LookupError(f"scenario {row.id} has no revision {row.revision}")
