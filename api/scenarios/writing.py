"""Writing several scenarios at once, one under its name, and parts of one."""

from __future__ import annotations

from typing import Any

from sqlalchemy.orm import Session

from api.scenarios.reading import stored_as
from api.scenarios.repository import ScenarioRepository
from api.scenarios.schemas import ScenarioList, StoredScenario
from api.scenarios.service import AnsweredScenario, Scenarios, add, editions_text, stored_scenario
from api.store.tables import ScenarioRow
from api.web.body import read
from api.web.idempotency import Once, StoredResponse, write_once
from api.web.problem import FieldError, Problem
from api.web.tags import check_match, etag
from planner.scenario import Scenario


def create_all(scenarios: Scenarios, questions: list[Scenario], once: Once) -> StoredResponse:
    """Store several scenarios, all or none; a refusal names the one by its place."""
    answered = [_answer(scenarios, n, question) for n, question in enumerate(questions)]

    def make(session: Session) -> StoredResponse:
        rows = [add(session, scenarios.workspace, each) for each in answered]
        items = [
            stored_as(row, each.scenario, each.plan.editions)
            for row, each in zip(rows, answered, strict=True)
        ]
        return StoredResponse(ScenarioList(items=items).model_dump_json().encode())

    return write_once(scenarios.database, once, make)


def _answer(scenarios: Scenarios, place: int, question: Scenario) -> AnsweredScenario:
    try:
        return scenarios.answer(question)
    except Problem as problem:
        where = f"scenarios.{place}"
        problem.errors = [
            FieldError(field=f"{where}.{each.field}".rstrip("."), message=each.message)
            for each in problem.errors
        ]
        raise Problem(
            problem.status, f"{where}: {problem.detail}", kind=problem.kind, errors=problem.errors
        ) from None


def put_named(
    scenarios: Scenarios, name: str, question: Scenario, if_match: str | None
) -> tuple[StoredScenario, bool]:
    """Make the scenario of a name ask this question; return it, and whether it is new.

    An equal question whose answer is of today's editions changes nothing. Raises 409 where several
    scenarios have the name, 412 where `if_match` is stale, 422 where the question has another name.
    """
    if question.name not in {None, name}:
        message = f"name: the path says {name!r}; accepted: the same, or none"
        raise Problem(422, message, errors=[FieldError(field="name", message=message)])
    answered = scenarios.answer(question.model_copy(update={"name": name}))
    with scenarios.database.writing() as session:
        rows = ScenarioRepository.of(session)
        named = rows.named(scenarios.workspace, name)
        if len(named) > 1:
            raise Problem(409, "several scenarios have this name; change one of them by its id")
        if not named:
            if if_match is not None:
                raise Problem(412, "no scenario has this name", kind="stale-revision")
            row = add(session, scenarios.workspace, answered)
            return stored_as(row, answered.scenario, answered.plan.editions), True
        if if_match is not None:
            check_match(if_match, named[0].revision)
        if _same(rows, named[0], answered):
            return stored_scenario(named[0], rows.newest(named[0])), False
        return scenarios.change(session, named[0], "updated", answered), False


def _same(rows: ScenarioRepository, row: ScenarioRow, answered: AnsweredScenario) -> bool:
    question = Scenario.model_validate(rows.newest(row).question)
    return question == answered.scenario and row.computed_with == editions_text(
        answered.plan.editions
    )


def patch(scenarios: Scenarios, ident: str, changes: Any, if_match: str) -> StoredScenario:
    """Change parts of a question, by a JSON merge patch (RFC 7396); the rest stays as it was."""
    if not isinstance(changes, dict):
        raise Problem(422, "accepted: a JSON object with the fields to change")
    before = scenarios.get(ident)
    check_match(if_match, before.revision)
    question = before.scenario.model_dump(mode="json", exclude_unset=True)
    scenario = read(Scenario, merged(question, changes))
    assert isinstance(scenario, Scenario)  # noqa: S101 - what `read` was given
    # The tag of what was merged into: a change in between is found under the lock.
    return scenarios.replace(ident, scenario, etag(before.revision))


def merged(target: Any, changes: Any) -> Any:
    """Return a document with a JSON merge patch applied: null takes away, objects are merged."""
    if not isinstance(changes, dict):
        return changes
    result = dict(target) if isinstance(target, dict) else {}
    for key, value in changes.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merged(result.get(key), value)
    return result
