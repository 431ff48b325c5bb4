"""Documents about jobs."""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, RootModel

from api.web.accept import CSV, JSON
from api.web.problem import ProblemDetails
from planner.answer import Answer, Editions
from planner.benchmarks import Context
from planner.plans.fleet_request import FleetRequest
from planner.plans.recommend import RecommendationRequest
from planner.plans.sized import Simulated
from planner.plans.sweep import SweepRequest
from planner.scenario import Count, Scenario, Short

State = Literal["queued", "running", "done", "failed", "cancelled"]
FINISHED: tuple[State, ...] = ("done", "failed", "cancelled")


class _Question(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class SweepJob(_Question):
    """A sweep, as `POST /v1/sweeps` takes it."""

    kind: Literal["sweep"]
    question: SweepRequest
    result: Literal["json", "csv", "parquet"] = Field("json", description="form of the result")


class RecommendationJob(_Question):
    """A search for what to run, as `POST /v1/recommendations` takes it."""

    kind: Literal["recommendation"]
    question: RecommendationRequest


class FleetJob(_Question):
    """A day of a fleet, from a shape of requests per second by window."""

    kind: Literal["fleet"]
    question: FleetRequest


class SimulationJob(_Question):
    """A serving scenario through its engine's own schedule, request by request."""

    kind: Literal["simulation"]
    question: Scenario


class RanOn(_Question):
    """What results do not say of what ran; it wins over what they say themselves."""

    model: Short | None = None
    gpu: Short | None = None
    engine: Short | None = None
    engine_version: Short | None = None
    weights: Short | None = None
    kv: Short | None = None
    tp: Count | None = None
    pp: Count | None = None
    attention_dp: Count | None = None
    ep: Count | None = None


class BenchmarkResults(_Question):
    """Results of a benchmark, as `POST /v1/measurements` takes them."""

    results: Annotated[str, Field(min_length=1)] | dict[str, Any] | list[dict[str, Any]] = Field(
        description="JSON, or CSV or lines of JSON as one text"
    )
    ran: RanOn = Field(default_factory=RanOn, description="what the results do not say")

    def body(self) -> tuple[bytes, str]:
        """Return the results as a body, and its media type."""
        if isinstance(self.results, str):
            return self.results.encode(), CSV
        return json.dumps(self.results).encode(), JSON

    def context(self) -> Context:
        """Return what the results do not say."""
        return Context(**self.ran.model_dump())


class RefitJob(_Question):
    """Results that are added to the workspace's measurements, which are refitted to them."""

    kind: Literal["refit"]
    question: BenchmarkResults


class ExportJob(_Question):
    """Everything in the workspace as lines of JSON, as `GET /v1/workspace/lines` gives them."""

    kind: Literal["export"]


AnyJob = SweepJob | RecommendationJob | FleetJob | SimulationJob | RefitJob | ExportJob


class JobRequest(RootModel[Annotated[AnyJob, Field(discriminator="kind")]]):
    """Long work that is asked for."""


class Job(Answer):
    """Long work, and how far it is."""

    id: str
    kind: str
    state: State
    done: int = Field(description="parts of the present stage that are done")
    total: int = Field(description="parts of the present stage; 0 before they are known")
    attempts: int = Field(description="times it was begun: a crash of its worker begins it anew")
    error: ProblemDetails | None = Field(description="why it failed; null unless it did")
    media_type: str = Field(description="of the result")
    result_bytes: int = Field(description="size of the result, 0 until it is done")
    created_at: str
    started_at: str | None
    finished_at: str | None
    expires_at: str | None = Field(description="when it is forgotten, known once it is finished")


class Simulation(Answer):
    """What requests of a scenario see under the schedule of its engine."""

    scenario: Scenario
    simulated: Simulated
    editions: Editions


class JobPage(Answer):
    """One page of jobs, oldest first."""

    items: list[Job]
    next_cursor: str | None = Field(description="pass as `cursor` for the next page")
