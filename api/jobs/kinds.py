"""The kinds of jobs: for each, what its worker process runs, and what its result is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from api.catalog.names import Names
from api.catalog.own import OwnObjects
from api.jobs import work
from api.jobs.schemas import FleetJob, RecommendationJob, RefitJob, SimulationJob, SweepJob
from api.measurements.service import MeasuredRuns
from api.plans.service import Plans
from api.plans.tables import require_parquet
from api.services import Services
from api.web.accept import CSV, JSON, JSON_LINES, PARQUET
from api.web.call import call_planner
from api.web.problem import rejected
from planner.deployment import deployment_of
from planner.plans.planning import plan
from planner.scenario import Scenario

Work = tuple[Callable[..., None], tuple[Any, ...]]
"""A function of `api.jobs.work`, and what it works on."""
FORMS = {"json": JSON, "csv": CSV, "parquet": PARQUET}
LINES = JSON_LINES[-1]


@dataclass(frozen=True, slots=True)
class JobKind:
    """How a kind of job is done.

    `prepare` raises a 422 problem where the question is refused; it is called when a job is asked
    for, and again when it begins: what it names may have changed.
    """

    prepare: Callable[[Services, str, Any], Work | None]
    media_type: Callable[[Any], str] = lambda _: JSON
    refits: bool = False
    """Whether jobs of a workspace that wait are done together, in one fit."""


def _sweep(services: Services, workspace: str, job: SweepJob) -> Work:
    if job.result == "parquet":
        require_parquet()
    plans = Plans(services, workspace)
    return work.sweep_job, plans.sweep_work(job.question, FORMS[job.result])


def _recommendation(services: Services, workspace: str, job: RecommendationJob) -> Work:
    return work.recommendation_job, Plans(services, workspace).recommendation_work(job.question)


def _fleet(services: Services, workspace: str, job: FleetJob) -> Work:
    request = job.question
    if request.trace is not None:
        raise rejected("trace: a service opens no files; accepted: requests_per_s_by_window")
    return work.fleet_job, Plans(services, workspace).fleet_work(request)


def _simulation(services: Services, workspace: str, job: SimulationJob) -> Work:
    scenario = job.question
    if scenario.isl is None or scenario.osl is None:
        raise rejected("isl, osl: a simulation is of requests; accepted: both, and a load")
    names = Names(OwnObjects(services.database), workspace)
    resolved = names.inline(scenario).scenario
    call_planner(_check_serving, resolved)
    return work.simulation_job, (resolved, scenario, services.calibrations.last(workspace))


def _check_serving(scenario: Scenario) -> None:
    """Raise InvalidInput where a scenario has no load that can be served."""
    deployment_of(scenario)
    plan(scenario)


def _refit(services: Services, workspace: str, job: RefitJob) -> None:
    raw, kind = job.question.body()
    MeasuredRuns(services.calibrations, workspace).read(raw, kind, job.question.context())


def _export(services: Services, workspace: str, _: Any) -> Work:
    return work.export_job, (services.settings, workspace)


KINDS: dict[str, JobKind] = {
    "sweep": JobKind(_sweep, lambda job: FORMS[job.result]),
    "recommendation": JobKind(_recommendation),
    "fleet": JobKind(_fleet),
    "simulation": JobKind(_simulation),
    "refit": JobKind(_refit, refits=True),
    "export": JobKind(_export, lambda _: LINES),
}
