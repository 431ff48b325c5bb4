"""From an exported document to rows of another workspace, under new ids."""

from __future__ import annotations

import json

from sqlalchemy.orm import Session

from api.catalog import own
from api.catalog.own import ACCELERATOR, MODEL
from api.scenarios.repository import ScenarioRepository
from api.scenarios.service import describe
from api.store.tables import ComparisonRow, RevisionRow, ScenarioRow, new_id, now
from api.workspace.schemas import ExportedComparison, ExportedScenario, Imported, Workspace


def write_workspace(session: Session, workspace: str, document: Workspace) -> Imported:
    """Add what an export holds to a workspace, its measurements excepted.

    Raises a 409 problem where an own id is taken by something else.
    """
    for model in document.models:
        own.store(session, workspace, MODEL, model.id, model.config)
    for accelerator in document.accelerators:
        own.store(session, workspace, ACCELERATOR, accelerator.id, accelerator.spec)
    scenarios = {item.id: _add_scenario(session, workspace, item) for item in document.scenarios}
    comparisons: dict[str, str] = {}
    for comparison in document.comparisons:
        ident = new_id()
        comparisons[comparison.answer.id or ident] = ident
        session.add(_comparison_row(workspace, comparison, ident, scenarios))
    return Imported(
        models=len(document.models),
        accelerators=len(document.accelerators),
        measurements=len(document.measurements),
        scenarios=scenarios,
        comparisons=comparisons,
    )


def _add_scenario(session: Session, workspace: str, exported: ExportedScenario) -> str:
    newest = exported.revisions[-1]
    row = ScenarioRow(id=new_id(), workspace=workspace, revision=newest.revision)
    row.created_at, row.updated_at = exported.revisions[0].created_at, newest.created_at
    row.deleted_at = exported.deleted_at
    describe(row, newest.question, newest.editions)
    session.add(row)
    session.flush()
    ScenarioRepository.of(session).retag(row, newest.question.tags)
    session.add_all(
        RevisionRow(
            scenario_id=row.id,
            revision=item.revision,
            action=item.action,
            question=item.question.model_dump(mode="json", exclude_unset=True),
            plan=json.dumps(item.plan, allow_nan=False),
            editions=item.editions.model_dump(),
            own=item.own,
            created_at=item.created_at,
        )
        for item in exported.revisions
    )
    return row.id


def _comparison_row(
    workspace: str, exported: ExportedComparison, ident: str, scenarios: dict[str, str]
) -> ComparisonRow:
    """Return the row of a comparison; `scenarios` has the new id of each exported scenario."""
    sources = [
        source.model_copy(update={"scenario_id": scenarios.get(source.scenario_id or "")})
        for source in exported.answer.sources
    ]
    answer = exported.answer.model_copy(update={"id": ident, "sources": sources})
    compared = [
        scenarios.get(item, item) if isinstance(item, str) else item
        for item in exported.asked.scenarios
    ]
    query = exported.asked.model_copy(update={"scenarios": compared})
    return ComparisonRow(
        id=ident,
        workspace=workspace,
        name=answer.name,
        asked=query.model_dump(mode="json"),
        answer=answer.model_dump_json(),
        created_at=now(),
    )
