"""The rules of comparisons: what they are about, and that an answer never changes."""

from __future__ import annotations

from sqlalchemy import select
from sqlalchemy.orm import Session

from api.catalog.names import Names
from api.catalog.own import OwnObjects
from api.comparisons.schemas import (
    ComparisonPage,
    ComparisonQuery,
    ComparisonSummary,
    Source,
    StoredComparison,
)
from api.scenarios.repository import ScenarioRepository
from api.services import Services
from api.store.tables import ComparisonRow, new_id, now
from api.web import cursor as cursors
from api.web.call import call_planner
from api.web.context import Caller
from api.web.idempotency import Once, StoredResponse, write_once
from api.web.problem import Problem, not_found, over_limit, rejected
from planner.plans.compare import Comparison, ComparisonRequest, compare
from planner.scenario import Scenario

PATH = "/v1/comparisons"


class Comparisons:
    """The comparisons of one workspace."""

    def __init__(self, services: Services, caller: Caller) -> None:
        self.database = services.database
        self.settings = services.settings
        self.calibrated = services.calibrations.used
        self.caller = caller
        self.names = Names(OwnObjects(services.database), caller.workspace)

    def create(self, query: ComparisonQuery, once: Once) -> StoredResponse:
        """Answer a comparison, and store it unless the query says not to."""
        if not query.save:
            return StoredResponse(self._answer(query, None).model_dump_json().encode(), status=200)
        if not self.caller.may("write"):
            raise Problem(403, "this key may read only: send save=false to compare")
        ident = new_id()
        answer = self._answer(query, ident)

        def make(session: Session) -> StoredResponse:
            row = ComparisonRow(
                id=ident,
                workspace=self.caller.workspace,
                name=answer.name,
                created_at=now(),
                asked=query.model_dump(mode="json"),
                answer=answer.model_dump_json(),
            )
            session.add(row)
            return StoredResponse(row.answer.encode(), headers={"Location": f"{PATH}/{ident}"})

        return write_once(self.database, once, make)

    def get(self, ident: str) -> bytes:
        """Return a saved comparison to the letter."""
        with self.database.reading() as session:
            return self._row(session, ident).answer.encode()

    def delete(self, ident: str) -> None:
        """Delete a comparison."""
        with self.database.writing() as session:
            session.delete(self._row(session, ident))

    def page(self, cursor: str | None, limit: int) -> ComparisonPage:
        """Return a page of comparisons."""
        scope = f"{self.caller.workspace} comparisons"
        query = select(ComparisonRow).where(ComparisonRow.workspace == self.caller.workspace)
        if cursor is not None:
            query = query.where(ComparisonRow.id > cursors.decode(cursor, scope))
        with self.database.reading() as session:
            rows = list(session.scalars(query.order_by(ComparisonRow.id).limit(limit + 1)))
        items = [
            ComparisonSummary(id=row.id, name=row.name, created_at=row.created_at.isoformat())
            for row in rows[:limit]
        ]
        following = cursors.encode(items[-1].id, scope) if len(rows) > limit else None
        return ComparisonPage(items=items, next_cursor=following)

    def _row(self, session: Session, ident: str) -> ComparisonRow:
        query = select(ComparisonRow).where(
            ComparisonRow.workspace == self.caller.workspace, ComparisonRow.id == ident
        )
        row = session.scalars(query).one_or_none()
        if row is None:
            raise not_found("comparison")
        return row

    def _answer(self, query: ComparisonQuery, ident: str | None) -> StoredComparison:
        sourced = [self._scenario(item) for item in query.scenarios]
        inlined = [self.names.inline(self._bounded(one)).scenario for one, _ in sourced]
        request = call_planner(
            ComparisonRequest,
            scenarios=inlined,
            baseline=query.baseline,
            labels=query.labels,
            usd_per_gpu_hour=query.usd_per_gpu_hour,
        )
        with self.calibrated(self.caller.workspace):
            answer = call_planner(compare, request)
        if self.names.used:
            answer = Comparison.model_validate(self.names.with_ids(answer.model_dump()))
        name = query.name or " / ".join(column.label for column in answer.columns)[:200]
        return StoredComparison(
            id=ident,
            name=name,
            created_at=now().isoformat(),
            sources=[source for _, source in sourced],
            comparison=answer,
        )

    def _scenario(self, item: str | Scenario) -> tuple[Scenario, Source]:
        if isinstance(item, Scenario):
            return item, Source(scenario_id=None, revision=None)
        with self.database.reading() as session:
            rows = ScenarioRepository.of(session)
            row = rows.find(self.caller.workspace, item)
            if row is None or row.deleted_at is not None:
                raise rejected(f"scenarios: no scenario {item[:60]!r} in this workspace")
            question = rows.newest(row).question
        name = {"name": row.name, **{k: v for k, v in question.items() if v is not None}}
        source = Source(scenario_id=row.id, revision=row.revision)
        return Scenario.model_validate(name), source

    def _bounded(self, scenario: Scenario) -> Scenario:
        most = self.settings.max_stored_points
        points = len(scenario.batch or [1]) * len(scenario.context or [1])
        if points > most:
            raise over_limit("scenarios", points, most, "PLANNER_MAX_STORED_POINTS")
        return scenario
