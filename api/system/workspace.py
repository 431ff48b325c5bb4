"""A workspace as one JSON document: everything out, and in again elsewhere."""

from __future__ import annotations

import json
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator
from sqlalchemy import select
from sqlalchemy.orm import Session

from api.catalog import own
from api.catalog.own import ACCELERATOR, MODEL
from api.catalog.schemas import Document, OwnAccelerator, OwnModel
from api.comparisons.schemas import ComparisonAsked, StoredComparison
from api.measurements.changes import Move
from api.measurements.schemas import WorkspaceCalibration
from api.measurements.transfer import MeasurementPart, part_of, read_part
from api.scenarios.repository import ScenarioRepository
from api.scenarios.schemas import Action
from api.scenarios.service import describe
from api.store.tables import (
    ComparisonRow,
    MeasurementRow,
    OwnRow,
    RevisionRow,
    ScenarioRow,
    new_id,
    now,
)
from api.web.context import Services
from api.web.idempotency import Made, Once, write_once
from api.web.parameters import Time
from planner.answer import Editions
from planner.scenario import Scenario

FORMAT: Literal["decode-planner-workspace/1"] = "decode-planner-workspace/1"


class Part(BaseModel):
    """Base of the parts of an export."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class RevisionPart(Part):
    """One revision of a scenario."""

    revision: int = Field(ge=1, le=2**31 - 1)
    action: Action
    question: Scenario
    plan: Document = Field(description="the plan as it was stored")
    editions: Editions
    own: dict[str, str] = Field(default_factory=dict, max_length=2)
    created_at: Time


class ScenarioPart(Part):
    """A scenario with all its revisions, oldest first."""

    id: str = Field(max_length=64)
    revisions: list[RevisionPart] = Field(min_length=1)
    deleted_at: Time | None

    @model_validator(mode="after")
    def _numbered(self) -> Self:
        numbers = [item.revision for item in self.revisions]
        if numbers != sorted(set(numbers)):
            raise ValueError("revisions: their numbers do not rise")
        return self


class ComparisonPart(Part):
    """A saved comparison."""

    asked: ComparisonAsked
    answer: StoredComparison


class Workspace(Part):
    """Everything in a workspace except its API keys."""

    format: Literal["decode-planner-workspace/1"]
    workspace: str = Field(max_length=64)
    exported_at: Time
    models: list[OwnModel]
    accelerators: list[OwnAccelerator]
    scenarios: list[ScenarioPart]
    comparisons: list[ComparisonPart]
    measurements: list[MeasurementPart] = Field(default_factory=list)


class Imported(Part):
    """What an import stored; ids are new, so that nothing that was there is touched."""

    models: int
    accelerators: int
    measurements: int
    scenarios: dict[str, str] = Field(description="new id by exported id")
    comparisons: dict[str, str] = Field(description="new id by exported id")


class Workspaces:
    """Export and import of one workspace."""

    def __init__(self, services: Services, workspace: str) -> None:
        self.database = services.database
        self.calibrations = services.calibrations
        self.workspace = workspace

    def export(self) -> bytes:
        """Return the whole workspace, from one state of the database."""
        with self.database.reading() as session:
            found = _read(session, self.workspace)
        return found.model_dump_json(exclude_unset=True).encode()

    def load(self, document: Workspace, once: Once) -> Made:
        """Store an export in one transaction; raises 409 where an own id says something else."""
        for item in document.models:
            own.check(MODEL, item.config)
        for one in document.accelerators:
            own.check(ACCELERATOR, one.spec)

        measured = dict(read_part(self.workspace, part) for part in document.measurements)

        def write(_: WorkspaceCalibration | None, move: Move | None) -> Made:
            def make(session: Session) -> Made:
                if move is not None:
                    move(session)
                session.add_all(measured)
                return Made(_write(session, self.workspace, document).model_dump_json().encode())

            return write_once(self.database, once, make)

        if not measured:
            return write(None, None)
        new = {row.id: runs for row, runs in measured.items()}
        return self.calibrations.change(self.workspace, lambda kept: {**kept, **new}, write)


def _read(session: Session, workspace: str) -> Workspace:
    mine = {
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
    rows = ScenarioRepository.of(session)
    return Workspace(
        format=FORMAT,
        workspace=workspace,
        exported_at=now(),
        models=[OwnModel(id=row.id, config=row.document) for row in mine[MODEL]],
        accelerators=[OwnAccelerator(id=row.id, spec=row.document) for row in mine[ACCELERATOR]],
        scenarios=[_scenario(rows, row) for row in scenarios.all()],
        comparisons=[
            ComparisonPart(
                asked=ComparisonAsked.model_validate(row.asked),
                answer=StoredComparison.model_validate_json(row.answer),
            )
            for row in comparisons
        ],
        measurements=[part_of(row) for row in measurements],
    )


def _scenario(rows: ScenarioRepository, row: ScenarioRow) -> ScenarioPart:
    parts = [
        {
            "revision": item.revision,
            "action": item.action,
            "question": item.question,
            "plan": json_of(item.plan),
            "editions": item.editions,
            "own": item.own,
            "created_at": item.created_at,
        }
        for item in rows.revisions(row)
    ]
    return ScenarioPart.model_validate(
        {"id": row.id, "revisions": parts, "deleted_at": row.deleted_at}
    )


def json_of(text: str) -> dict[str, Any]:
    """Return a stored document."""
    found: dict[str, Any] = json.loads(text)
    return found


def _write(session: Session, workspace: str, document: Workspace) -> Imported:
    for model in document.models:
        own.store(session, workspace, MODEL, model.id, model.config)
    for accelerator in document.accelerators:
        own.store(session, workspace, ACCELERATOR, accelerator.id, accelerator.spec)
    scenarios = {part.id: _add_scenario(session, workspace, part) for part in document.scenarios}
    comparisons: dict[str, str] = {}
    for item in document.comparisons:
        ident = new_id()
        comparisons[item.answer.id or ident] = ident
        session.add(_comparison(workspace, item, ident, scenarios))
    return Imported(
        models=len(document.models),
        accelerators=len(document.accelerators),
        measurements=len(document.measurements),
        scenarios=scenarios,
        comparisons=comparisons,
    )


def _add_scenario(session: Session, workspace: str, part: ScenarioPart) -> str:
    newest = part.revisions[-1]
    row = ScenarioRow(id=new_id(), workspace=workspace, revision=newest.revision)
    row.created_at, row.updated_at = part.revisions[0].created_at, newest.created_at
    row.deleted_at = part.deleted_at
    describe(row, newest.question)
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
        for item in part.revisions
    )
    return row.id


def _comparison(
    workspace: str, item: ComparisonPart, ident: str, scenarios: dict[str, str]
) -> ComparisonRow:
    sources = [
        source.model_copy(update={"scenario_id": scenarios.get(source.scenario_id or "")})
        for source in item.answer.sources
    ]
    answer = item.answer.model_copy(update={"id": ident, "sources": sources})
    compared = [
        scenarios.get(one, one) if isinstance(one, str) else one for one in item.asked.scenarios
    ]
    asked = item.asked.model_copy(update={"scenarios": compared})
    return ComparisonRow(
        id=ident,
        workspace=workspace,
        name=answer.name,
        asked=asked.model_dump(mode="json"),
        answer=answer.model_dump_json(),
        created_at=now(),
    )
