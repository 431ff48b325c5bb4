"""The rules of stored scenarios: what a change is, who may make it, what is stale."""

from __future__ import annotations

import json
from dataclasses import dataclass

from sqlalchemy.orm import Session

from api.catalog.names import Names, canonical_gpu, canonical_model
from api.catalog.own import ACCELERATOR, MODEL, OwnObjects
from api.scenarios import reading
from api.scenarios.differences import differences
from api.scenarios.listing import Filters, position
from api.scenarios.reading import stored_as
from api.scenarios.repository import ScenarioRepository
from api.scenarios.schemas import (
    Action,
    Cause,
    Recomputed,
    Revision,
    RevisionList,
    ScenarioPage,
    StoredScenario,
)
from api.services import Services
from api.store.tables import RevisionRow, ScenarioRow, new_id, now
from api.web import cursor as cursors
from api.web.idempotency import Once, StoredResponse, write_once
from api.web.problem import FieldError, Problem, not_found, over_limit
from api.web.tags import check_match, etag
from planner.answer import Editions, Plan
from planner.plans.editions import current_editions
from planner.scenario import Scenario

PATH = "/v1/scenarios"
PAGE = 100


@dataclass(frozen=True, slots=True)
class AnsweredScenario:
    """A question with its answer, ready to be stored."""

    scenario: Scenario
    plan: Plan
    own: dict[str, str]


class Scenarios:
    """The stored scenarios of one workspace."""

    def __init__(self, services: Services, workspace: str) -> None:
        self.database = services.database
        self.points = services.points
        self.settings = services.settings
        self.calibrated = services.calibrations.current
        self.workspace = workspace
        self.names = Names(OwnObjects(services.database), workspace)

    def answer(self, scenario: Scenario) -> AnsweredScenario:
        """Return a scenario's answer; raises a 422 problem where it cannot be stored."""
        most = self.settings.max_stored_points
        points = len(scenario.batch or [1]) * len(scenario.context or [1])
        if points > most:
            raise over_limit("batch", points, most, "PLANNER_MAX_STORED_POINTS")
        with self.calibrated(self.workspace):
            return AnsweredScenario(scenario, *self.names.plan(scenario))

    def create(self, scenario: Scenario, once: Once, *, unique: bool = False) -> StoredResponse:
        """Store a scenario; raises 409 where it is to be `unique` and its name is taken."""
        answered = self.answer(scenario)

        def make(session: Session) -> StoredResponse:
            if unique:
                refuse_taken(session, self.workspace, name_of(scenario))
            row = add(session, self.workspace, answered)
            body = stored_as(row, answered.scenario, answered.plan.editions).model_dump_json()
            headers = {"Location": f"{PATH}/{row.id}", "ETag": etag(row.revision)}
            return StoredResponse(body.encode(), headers=headers)

        return write_once(self.database, once, make)

    async def read(self, ident: str, *, plan: bool = False) -> tuple[bytes, int]:
        """Return the document about a scenario, and its revision; deleted ones included."""
        query = reading.WITH_PLAN if plan else reading.WITHOUT_PLAN
        row = await self.points.one(query, {"workspace": self.workspace, "ident": ident})
        if row is None:
            raise not_found("scenario")
        return reading.body_of(row, plan=plan), row.revision

    def get(self, ident: str) -> StoredScenario:
        """Return a scenario, deleted ones included."""
        with self.database.reading() as session:
            rows = ScenarioRepository.of(session)
            row = self._row(rows, ident)
            return stored_scenario(row, rows.newest(row))

    def page(self, filters: Filters, cursor: str | None, limit: int) -> ScenarioPage:
        """Return a page of scenarios."""
        query = f"{self.workspace} {filters.fingerprint()}"
        after = None if cursor is None else cursors.decode(cursor, query)
        current = self._current() if filters.stale is not None else ""
        with self.database.reading() as session:
            rows = ScenarioRepository.of(session)
            matching = rows.page(self.workspace, filters, current, after, limit + 1)
            shown = matching[:limit]
            newest = rows.newest_of(shown)
            items = [stored_scenario(row, newest[row.id]) for row in shown]
        more = len(matching) > limit
        following = cursors.encode(position(shown[-1], filters.sort), query) if more else None
        return ScenarioPage(items=items, next_cursor=following)

    def replace(self, ident: str, scenario: Scenario, if_match: str) -> StoredScenario:
        """Ask a scenario's question anew; the earlier revision stays."""
        answered = self.answer(scenario)
        return self._change(ident, if_match, "updated", answered)

    def recompute(self, ident: str, if_match: str) -> StoredScenario:
        """Store the answer of today as a new revision."""
        return self._change(ident, if_match, "recomputed", self.answer(self.get(ident).scenario))

    def delete(self, ident: str, if_match: str) -> None:
        """Put a scenario away; `restore` brings it back."""
        self._change(ident, if_match, "deleted")

    def restore(self, ident: str, if_match: str) -> StoredScenario:
        """Bring a deleted scenario back."""
        return self._change(ident, if_match, "restored")

    def revisions(self, ident: str) -> RevisionList:
        """Return what a scenario was, revision by revision."""
        with self.database.reading() as session:
            rows = ScenarioRepository.of(session)
            revisions = rows.revisions(self._row(rows, ident))
            return RevisionList(items=[_revision(item) for item in revisions])

    def plan(self, ident: str, revision: int, recompute: bool) -> bytes:
        """Return a StoredPlan; the stored answer goes out to the letter, whoever computed it."""
        with self.database.reading() as session:
            rows = ScenarioRepository.of(session)
            row = self._row(rows, ident)
            stored = rows.revision(row, revision) if revision else rows.newest(row)
        if stored is None:
            raise not_found("revision")
        because = self._causes(stored)
        head = {
            "scenario_id": ident,
            "revision": stored.revision,
            "stale": bool(because),
            "because": [cause.model_dump() for cause in because],
        }
        again = self._recomputed(stored).model_dump_json() if recompute else "null"
        return f'{json.dumps(head)[:-1]}, "plan": {stored.plan}, "recomputed": {again}}}'.encode()

    def _current(self) -> str:
        with self.calibrated(self.workspace):
            return editions_text(current_editions())

    def _recomputed(self, row: RevisionRow) -> Recomputed:
        after = self.answer(Scenario.model_validate(row.question)).plan
        changed, left_out = differences(json.loads(row.plan), after.model_dump(mode="json"))
        return Recomputed(plan=after, differences=changed, differences_left_out=left_out)

    def _causes(self, row: RevisionRow) -> list[Cause]:
        with self.calibrated(self.workspace):
            current = current_editions().model_dump()
        causes = [
            Cause.model_validate({"what": name, "computed_with": value, "current": current[name]})
            for name, value in Editions.model_validate(row.editions).model_dump().items()
            if value != current[name]
        ]
        for field, kind in (("model", MODEL), ("gpu", ACCELERATOR)):
            before = row.own.get(field)
            if before is None:
                continue
            after = self._digest(kind, row.question[field])
            if after != before:
                causes.append(
                    Cause.model_validate(
                        {"what": f"own {field}", "computed_with": before, "current": after}
                    )
                )
        return causes

    def _digest(self, kind: str, name: str) -> str:
        try:
            return self.names.own.digest(self.workspace, kind, name)
        except Problem:
            return "deleted"

    def _row(self, rows: ScenarioRepository, ident: str, *, lock: bool = False) -> ScenarioRow:
        row = rows.find(self.workspace, ident, lock=lock)
        if row is None:
            raise not_found("scenario")
        return row

    def _change(
        self, ident: str, if_match: str, action: Action, answered: AnsweredScenario | None = None
    ) -> StoredScenario:
        with self.database.writing() as session:
            rows = ScenarioRepository.of(session)
            row = self._row(rows, ident, lock=True)
            check_match(if_match, row.revision)
            if (row.deleted_at is not None) != (action == "restored"):
                state = "not deleted" if action == "restored" else "deleted: restore it first"
                raise Problem(409, f"the scenario is {state}")
            return self.change(session, row, action, answered)

    def change(
        self, session: Session, row: ScenarioRow, action: Action, answered: AnsweredScenario | None
    ) -> StoredScenario:
        """Give a scenario its next revision; the row is locked."""
        rows = ScenarioRepository.of(session)
        before = rows.newest(row)
        row.revision += 1
        row.updated_at = now()
        row.deleted_at = row.updated_at if action == "deleted" else None
        if answered is not None:
            describe(row, answered.scenario, answered.plan.editions)
            rows.retag(row, answered.scenario.tags)
        after = record(row, action, answered) if answered else _again(row, action, before)
        session.add(after)
        session.flush()
        return stored_scenario(row, after)


def add(
    session: Session,
    workspace: str,
    answered: AnsweredScenario,
    action: Action = "created",
    ident: str | None = None,
) -> ScenarioRow:
    """Add a scenario with its first revision."""
    row = ScenarioRow(id=ident or new_id(), workspace=workspace, revision=1)
    row.created_at = row.updated_at = now()
    row.deleted_at = None
    describe(row, answered.scenario, answered.plan.editions)
    session.add(row)
    session.flush()
    ScenarioRepository.of(session).retag(row, answered.scenario.tags)
    session.add(record(row, action, answered))
    return row


def describe(row: ScenarioRow, scenario: Scenario, editions: Editions) -> None:
    """Set what lists and filters read of a scenario, and of the editions of its plan."""
    for column, value in listed(scenario, editions).items():
        setattr(row, column, value)


def listed(scenario: Scenario, editions: Editions) -> dict[str, str | None]:
    """Return the columns that lists and filters read of a scenario and its plan's editions."""
    model, gpu, name = (
        canonical_model(scenario.model),
        canonical_gpu(scenario.gpu),
        name_of(scenario),
    )
    words = (name, scenario.notes or "", model, gpu, *scenario.tags)
    return {
        "model": model,
        "gpu": gpu,
        "name": name,
        "engine": scenario.engine,
        "computed_with": editions_text(editions),
        "words": "\n".join(words).lower(),
    }


def name_of(scenario: Scenario) -> str:
    """Return the name of a scenario, or what one without is called."""
    model, gpu = canonical_model(scenario.model), canonical_gpu(scenario.gpu)
    return scenario.name or f"{model} on {scenario.tp}×{gpu}"[:200]


def editions_text(editions: Editions) -> str:
    """Return editions as the store compares them."""
    return " ".join((editions.models, editions.hardware, editions.calibration, editions.engines))


def refuse_taken(session: Session, workspace: str, name: str) -> None:
    """Raise 409 where a scenario that is not deleted has a name already."""
    taken = ScenarioRepository.of(session).named(workspace, name)
    if taken:
        message = f"name: {name!r} is taken by {PATH}/{taken[0].id}"
        errors = [FieldError(field="name", message=message)]
        raise Problem(409, message, kind="name-taken", errors=errors)


def record(row: ScenarioRow, action: Action, answered: AnsweredScenario) -> RevisionRow:
    """Return the revision that stores a question with its answer."""
    return RevisionRow(
        scenario_id=row.id,
        revision=row.revision,
        action=action,
        question=answered.scenario.model_dump(mode="json", exclude_unset=True),
        plan=answered.plan.model_dump_json(),
        editions=answered.plan.editions.model_dump(),
        own=answered.own,
        created_at=row.updated_at,
    )


def _again(row: ScenarioRow, action: Action, before: RevisionRow) -> RevisionRow:
    return RevisionRow(
        scenario_id=row.id,
        revision=row.revision,
        action=action,
        question=before.question,
        plan=before.plan,
        editions=before.editions,
        own=before.own,
        created_at=row.updated_at,
    )


def stored_scenario(row: ScenarioRow, revision: RevisionRow) -> StoredScenario:
    """Return the document about a stored scenario."""
    editions = Editions.model_validate(revision.editions)
    return stored_as(row, Scenario.model_validate(revision.question), editions)


def _revision(row: RevisionRow) -> Revision:
    return Revision.model_validate(
        {
            "revision": row.revision,
            "action": row.action,
            "scenario": Scenario.model_validate(row.question),
            "editions": Editions.model_validate(row.editions),
            "created_at": row.created_at.isoformat(),
        }
    )
