"""Documents about comparisons."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from planner.answer import Answer
from planner.plans.compare.answers import MOST_SCENARIOS, Comparison, Prices
from planner.scenario import Scenario, Short


class ComparisonQuery(BaseModel):
    """Scenarios to compare: ids of stored ones, or inline."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    scenarios: Annotated[list[Short | Scenario], Field(min_length=2, max_length=MOST_SCENARIOS)] = (
        Field(description="ids of stored scenarios, or scenarios")
    )
    baseline: int = Field(
        0, ge=0, lt=MOST_SCENARIOS, description="index of the scenario to measure against"
    )
    labels: list[Short] | None = Field(
        None, max_length=MOST_SCENARIOS, description="what to call the scenarios, one each"
    )
    usd_per_gpu_hour: Prices = Field(
        default_factory=dict, description="prices by accelerator id that replace the catalogue's"
    )
    name: Short | None = Field(None, description="what to call the comparison")
    save: bool = Field(True, description="keep it; needs a key with scope write")


class Source(Answer):
    """Which stored scenario a column came from; nulls for an inline one."""

    scenario_id: str | None
    revision: int | None


class StoredComparison(Answer):
    """A comparison as it was answered; without id where it was not saved."""

    id: str | None
    name: str
    created_at: str
    sources: list[Source]
    comparison: Comparison


class ComparisonSummary(Answer):
    """A saved comparison in a list."""

    id: str
    name: str
    created_at: str


class ComparisonPage(Answer):
    """One page of comparisons, oldest first."""

    items: list[ComparisonSummary]
    next_cursor: str | None
