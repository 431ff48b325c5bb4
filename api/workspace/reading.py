"""From the rows of a workspace to the document it is exported as."""

from __future__ import annotations

import json
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from api.catalog.own import ACCELERATOR, MODEL
from api.catalog.schemas import OwnAccelerator, OwnModel
from api.comparisons.schemas import ComparisonQuery, StoredComparison
from api.measurements.transfer import export_measurement
from api.scenarios.repository import ScenarioRepository
from api.store.tables import ComparisonRow, MeasurementRow, OwnRow, ScenarioRow, now
from api.workspace.schemas import FORMAT, ExportedComparison, ExportedScenario, Workspace


def read_workspace(session: Session, workspace: str) -> Workspace:
    """Return everything a workspace holds in a session."""
    own = {
        kind: session.scalars(
            select(OwnRow)
            .where(OwnRow.workspace == workspace, OwnRow.kind == kind)
            .order_by(OwnRow.id)
        ).all()
        for kind in (MODEL, ACCELERATOR)
    }
    scenarios = session.scalars(
        select(ScenarioRow).where(ScenarioRow.workspace == workspace).order_by(ScenarioRow.id)
    )
    comparisons = session.scalars(
        select(ComparisonRow).where(ComparisonRow.workspace == workspace).order_by(ComparisonRow.id)
    )
    measurements = session.scalars(
        select(MeasurementRow)
        .where(MeasurementRow.workspace == workspace)
        .order_by(MeasurementRow.id)
    )
    repository = ScenarioRepository.of(session)
    return Workspace(
        format=FORMAT,
        workspace=workspace,
        exported_at=now(),
        models=[OwnModel(id=row.id, config=row.document) for row in own[MODEL]],
        accelerators=[OwnAccelerator(id=row.id, spec=row.document) for row in own[ACCELERATOR]],
        scenarios=[_scenario(repository, row) for row in scenarios.all()],
        comparisons=[
            ExportedComparison(
                asked=ComparisonQuery.model_validate(row.asked),
                answer=StoredComparison.model_validate_json(row.answer),
            )
            for row in comparisons
        ],
        measurements=[export_measurement(row) for row in measurements],
    )


def _scenario(repository: ScenarioRepository, row: ScenarioRow) -> ExportedScenario:
    revisions = [
        {
            "revision": revision.revision,
            "action": revision.action,
            "question": revision.question,
            "plan": _parsed(revision.plan),
            "editions": revision.editions,
            "own": revision.own,
            "created_at": revision.created_at,
        }
        for revision in repository.revisions(row)
    ]
    return ExportedScenario.model_validate(
        {"id": row.id, "revisions": revisions, "deleted_at": row.deleted_at}
    )


def _parsed(text: str) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(text)
    return document
