"""One scenario in one statement: what a read of it needs, and no more."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Row, Select, bindparam, select

from api.scenarios.schemas import StoredScenario
from api.store.tables import RevisionRow, ScenarioRow
from planner.answer import Editions
from planner.scenario import Scenario

_HEAD = (
    ScenarioRow.id,
    ScenarioRow.workspace,
    ScenarioRow.revision,
    ScenarioRow.name,
    ScenarioRow.created_at,
    ScenarioRow.updated_at,
    ScenarioRow.deleted_at,
    RevisionRow.question,
    RevisionRow.editions,
)


def _query(*columns: Any) -> Select[Any]:
    newest = (RevisionRow.scenario_id == ScenarioRow.id) & (
        RevisionRow.revision == ScenarioRow.revision
    )
    return (
        select(*columns)
        .join(RevisionRow, newest)
        .where(
            ScenarioRow.workspace == bindparam("workspace"), ScenarioRow.id == bindparam("ident")
        )
    )


WITHOUT_PLAN = _query(*_HEAD)
WITH_PLAN = _query(*_HEAD, RevisionRow.plan)


def stored_as(
    row: ScenarioRow | Row[Any], scenario: Scenario, editions: Editions
) -> StoredScenario:
    """Return the document about a stored scenario whose question is at hand."""
    return StoredScenario(
        id=row.id,
        workspace=row.workspace,
        revision=row.revision,
        name=row.name,
        tags=scenario.tags,
        notes=scenario.notes,
        scenario=scenario,
        editions=editions,
        created_at=row.created_at.isoformat(),
        updated_at=row.updated_at.isoformat(),
        deleted_at=row.deleted_at.isoformat() if row.deleted_at else None,
    )


def document(row: Row[Any]) -> StoredScenario:
    """Return the document about a scenario from a row of its newest revision."""
    editions = Editions.model_validate(row.editions)
    return stored_as(row, Scenario.model_validate(row.question), editions)


def body_of(row: Row[Any], *, plan: bool) -> bytes:
    """Return the document as JSON; with `plan` the stored one goes out to the letter."""
    body = document(row).model_dump_json(exclude={"plan"})
    return f'{body[:-1]},"plan":{row.plan if plan else "null"}}}'.encode()
