"""From an exported document to rows of another workspace, under new ids."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
from sqlalchemy import insert
from sqlalchemy.orm import Session

from api.catalog import own
from api.catalog.own import ACCELERATOR, MODEL
from api.scenarios.service import listed
from api.store.changes import note
from api.store.tables import ComparisonRow, RevisionRow, ScenarioRow, TagRow, new_id, now
from api.workspace.schemas import (
    ExportedComparison,
    ExportedRevision,
    ExportedScenario,
    Imported,
    Workspace,
)


def write_workspace(session: Session, workspace: str, document: Workspace) -> Imported:
    """Add what an export holds to a workspace, its measurements excepted.

    Raises a 409 problem where an own id is taken by something else.
    """
    for model in document.models:
        own.store(session, workspace, MODEL, model.id, model.config)
    for accelerator in document.accelerators:
        own.store(session, workspace, ACCELERATOR, accelerator.id, accelerator.spec)
    new = add_scenarios(session, workspace, document.scenarios)
    scenarios = dict(zip((item.id for item in document.scenarios), new, strict=True))
    comparisons: dict[str, str] = {}
    for comparison in document.comparisons:
        ident = new_id()
        comparisons[comparison.answer.id or ident] = ident
        session.add(comparison_row(workspace, comparison, ident, scenarios))
    return Imported(
        models=len(document.models),
        accelerators=len(document.accelerators),
        measurements=len(document.measurements),
        scenarios=scenarios,
        comparisons=comparisons,
    )


def add_scenarios(
    session: Session, workspace: str, scenarios: Sequence[ExportedScenario]
) -> list[str]:
    """Add scenarios with their revisions under new ids, which are returned.

    In bulk: a session that looks at each row takes three times as long for it.
    """
    idents = [new_id() for _ in scenarios]
    rows, revisions, tags, changes = [], [], [], []
    for ident, exported in zip(idents, scenarios, strict=True):
        newest = exported.revisions[-1]
        rows.append(
            {
                "id": ident,
                "workspace": workspace,
                "revision": newest.revision,
                "created_at": exported.revisions[0].created_at,
                "updated_at": newest.created_at,
                "deleted_at": exported.deleted_at,
                **listed(newest.question, newest.editions),
            }
        )
        tags += [{"scenario_id": ident, "tag": tag} for tag in dict.fromkeys(newest.question.tags)]
        for item in exported.revisions:
            revisions.append(_revision(ident, item))
            changes.append((workspace, "scenario", ident, item.action, item.revision))
    tables = ((ScenarioRow, rows), (RevisionRow, revisions), (TagRow, tags))
    for table, added in tables:
        if added:
            session.execute(insert(table).execution_options(render_nulls=True), added)
    note(session, changes)
    return idents


def _revision(scenario_id: str, item: ExportedRevision) -> dict[str, Any]:
    return {
        "scenario_id": scenario_id,
        "revision": item.revision,
        "action": item.action,
        "question": item.question.model_dump(mode="json", exclude_unset=True),
        "plan": msgspec.json.encode(item.plan).decode(),
        "editions": item.editions.model_dump(),
        "own": item.own,
        "created_at": item.created_at,
    }


def comparison_row(
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
