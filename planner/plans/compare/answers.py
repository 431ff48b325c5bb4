"""The question and the answer of a comparison."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, FiniteFloat, model_validator

from planner.answer import Answer, Editions, NoteAnswer
from planner.scenario import Scenario, Short
from planner.workload.fields import LEAST

MOST_SCENARIOS = 16

Better = Literal["lower", "higher"]
Price = Annotated[FiniteFloat, Field(ge=LEAST, le=1e6)]
Prices = Annotated[dict[str, Price], Field(max_length=500)]


class ComparisonRequest(BaseModel):
    """Scenarios to compare, and which of them the others are measured against."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    scenarios: list[Scenario] = Field(min_length=2, max_length=MOST_SCENARIOS)
    baseline: int = Field(0, ge=0, description="index of the scenario to measure against")
    labels: list[Short] | None = Field(
        None, description="what to call the scenarios; null is their names, or A, B, C…"
    )
    usd_per_gpu_hour: Prices = Field(
        default_factory=dict, description="prices by accelerator id that replace the catalogue's"
    )

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        count = len(self.scenarios)
        if self.baseline >= count:
            raise ValueError(f"baseline: {self.baseline} is no index; accepted: 0 to {count - 1}")
        if self.labels is not None and len(self.labels) != count:
            raise ValueError(f"labels: {len(self.labels)} given; accepted: {count}, one each")
        return self


class Column(Answer):
    """One scenario of the comparison."""

    label: str
    scenario: Scenario
    batch: int
    """Sequences of the point compared: the scenario's last one, or what its engine runs."""
    context: int
    gpus: int | float
    """Accelerators over all replicas, and the prefill workers that feed them."""
    fits: bool
    usd_per_gpu_hour: float | None
    price_source: str
    notes: list[NoteAnswer]


class FigureRow(Answer):
    """One figure over all scenarios; differences and ratios are against the baseline."""

    figure: str
    meaning: str
    unit: str
    better: Better | None
    values: list[float | None]
    differences: list[float | None]
    ratios: list[float | None]
    best: list[str]
    """Labels of the best among those that fit; empty where no value is better than another."""


class Dominated(Answer):
    """A scenario that another one beats on some criteria and loses to on none."""

    label: str
    by: str


class Pareto(Answer):
    """Scenarios for which no other is at least as good in everything and better in something."""

    criteria: list[str]
    members: list[str]
    dominated: list[Dominated]


class FieldChange(Answer):
    """Fields changed together: one, or several where one alone is not possible."""

    fields: list[str]
    before: dict[str, Any]
    after: dict[str, Any]


class Contribution(Answer):
    """What each step adds to one figure; the steps add up to the difference exactly."""

    figure: str
    unit: str
    baseline: float
    other: float
    difference: float
    steps: list[float]


class KernelDifference(Answer):
    """Time of one kernel in both scenarios; the rows add up to the times per token exactly."""

    kernel: str
    baseline_s: float
    other_s: float
    difference_s: float


class Attribution(Answer):
    """Where the difference between the baseline and another scenario comes from."""

    baseline: str
    other: str
    verdict: str
    steps: list[FieldChange]
    contributions: list[Contribution]
    kernels: list[KernelDifference]


class Comparison(Answer):
    """Scenarios side by side."""

    baseline: str
    columns: list[Column]
    figures: list[FigureRow]
    winners: dict[str, list[str]]
    pareto: Pareto
    attributions: list[Attribution]
    notes: list[NoteAnswer]
    editions: Editions
