"""Rows of scenarios: reading, filtering, and adding a revision."""

from __future__ import annotations

from advanced_alchemy.repository import SQLAlchemySyncRepository
from sqlalchemy import delete, func, select
from sqlalchemy.orm import Session, defer

from api.scenarios.listing import Filters, filtered, page_query
from api.scenarios.search import page_with_text
from api.store.tables import RevisionRow, ScenarioRow, TagRow


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
        self, workspace: str, filters: Filters, current: str, after: str | None, size: int
    ) -> list[ScenarioRow]:
        """Return up to `size` scenarios after a position, in the order of the list."""
        dialect = self.session.get_bind().dialect.name
        query = filtered(workspace, filters, current, dialect)
        if filters.text and filters.sort == "created":
            return page_with_text(self.session, query, filters, workspace, after, size)
        return list(self.session.scalars(page_query(query, filters, after, size)))

    def named(self, workspace: str, name: str) -> list[ScenarioRow]:
        """Return the scenarios of a name that are not deleted, two at most.

        Until the transaction ends, no other that looks for this name gets past here.
        """
        if self.session.get_bind().dialect.name == "postgresql":  # SQLite has one writer anyway
            lock = func.hashtextextended(f"{workspace}\n{name}", 0)
            self.session.execute(select(func.pg_advisory_xact_lock(lock)))
        filters = Filters(name=name)
        return self.page(workspace, filters, "", None, 2)

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


def _lost(row: ScenarioRow) -> RevisionRow:
    raise LookupError(f"scenario {row.id} has no revision {row.revision}")
