"""Documents about stored scenarios."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from planner.answer import Answer, Editions, Plan
from planner.scenario import Scenario

Action = Literal["created", "updated", "recomputed", "deleted", "restored", "imported"]


class StoredScenario(Answer):
    """A scenario as it is stored."""

    id: str = Field(examples=["019346b2-7f3c-7c3e-9f0e-2f6d3c1b8a55"])
    workspace: str
    revision: int = Field(description="also the ETag, in quotes")
    name: str
    tags: list[str]
    notes: str | None
    scenario: Scenario = Field(description="the question as it was sent")
    editions: Editions = Field(description="what its stored plan was computed with")
    created_at: str
    updated_at: str
    deleted_at: str | None
    plan: Plan | None = Field(
        None, description="its plan as it was stored, with include=plan; null without"
    )


class ScenarioBatch(BaseModel):
    """Several questions to store at once."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    scenarios: list[Scenario] = Field(min_length=1, max_length=100, description="all or none")


class ScenarioList(Answer):
    """Scenarios that were stored together."""

    items: list[StoredScenario] = Field(description="in the order they were sent")


class ScenarioPage(Answer):
    """One page of scenarios, oldest first."""

    items: list[StoredScenario]
    next_cursor: str | None = Field(description="pass as `cursor` for the next page")


class Revision(Answer):
    """What a scenario was at one revision."""

    revision: int
    action: Action
    scenario: Scenario
    editions: Editions
    created_at: str


class RevisionList(Answer):
    """All revisions, oldest first."""

    items: list[Revision]


class Difference(Answer):
    """One figure that differs between two answers to the same question."""

    figure: str = Field(examples=["points[0].tpot_s.p50"])
    stored: Any
    recomputed: Any
    difference: float | None
    ratio: float | None


class Cause(Answer):
    """Something a stored answer rests on that is not the same any more."""

    what: Literal["models", "hardware", "calibration", "engines", "own model", "own gpu"]
    computed_with: str
    current: str


class Recomputed(Answer):
    """The answer of today and what is different in it."""

    plan: Plan
    differences: list[Difference]
    differences_left_out: int


class StoredPlan(Answer):
    """The plan a scenario was stored with; stale when what it rests on has changed."""

    scenario_id: str
    revision: int
    stale: bool
    because: list[Cause]
    plan: Plan = Field(description="as it was stored, to the letter")
    recomputed: Recomputed | None = None
