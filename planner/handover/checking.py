"""`check`: will it start, will it meet the limits, and what does it waste?"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, FiniteFloat

from planner.answer import Answer, Editions, Interval, NoteAnswer, Plan
from planner.deployment import Deployment, deployment_of
from planner.errors import InvalidInput
from planner.handover.baseline import Regression, regressions
from planner.handover.findings import Finding
from planner.handover.lints_given import lint_given
from planner.handover.lints_planned import lint_planned, lint_refusal
from planner.handover.reading import Deployed, Reading
from planner.handover.refusal import Unreadable
from planner.handover.sources import read_files
from planner.handover.verdicts import CheckedLimit, Verdict, checked_limits, clients_at_rate, worst
from planner.plans.editions import current_editions
from planner.plans.planning import plan_deployment
from planner.scenario import Count, Positive, Scenario, Short
from planner.workload.distributions import Length

ORDER = {"error": 0, "warning": 1, "note": 2}


class CheckQuestion(BaseModel):
    """What is asked of a deployment; what is null is as the file notes it, else not asked."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    model: Short | dict[str, Any] | None = Field(None, description="model, for the file's")
    gpu: Short | dict[str, Any] | None = Field(None, description="accelerator, for the file's")
    engine_version: Short | None = Field(None, description="version, where no image names it")
    concurrency: Count | None = Field(None, description="closed-loop clients of one replica")
    requests_per_s: Positive | None = Field(
        None, description="requests a second over all replicas, instead of concurrency"
    )
    isl: Length | None = Field(None, description="input tokens of a request")
    osl: Length | None = Field(None, description="output tokens of a request")
    prefix_hit: FiniteFloat | None = Field(
        None, ge=0, le=1, description="share of input tokens seen before"
    )
    tpot_ms: Positive | None = Field(None, description="limit on TPOT [ms]")
    ttft_ms: Positive | None = Field(None, description="limit on TTFT [ms]")
    percentile: FiniteFloat | None = Field(
        None, ge=1, le=99, description="percentile of the prediction the limits apply to"
    )

    def fields(self) -> dict[str, Any]:
        """Return the fields of a scenario that are asked for."""
        fields = self.model_dump(exclude_none=True, exclude={"requests_per_s"})
        if self.requests_per_s is not None:
            fields["concurrency"] = 1  # until the rate says how many
        return fields


NOTHING_ASKED = CheckQuestion()


class CheckFigures(Answer):
    """The figures of a plan that a gate is about."""

    fits: bool
    max_batch: int
    """Sequences of the load's context that a replica holds."""
    running_batch: float | None
    queued: float | None
    tpot_s: Interval | None
    ttft_s: Interval | None
    requests_per_s: float | None
    output_tokens_per_s: float | None
    gpus: int
    """Of all replicas; without prefill workers."""


class Check(Answer):
    """The answer about one deployment of a file."""

    verdict: Verdict
    probability: float | None
    """That all limits are met, the least of theirs; null where none is asked."""
    binds: str
    """What keeps it from more: `memory`, `compute`, `launch`, `communication`, `engine_cap`,
    `cache` or, where it cannot start, the code of the finding."""
    limits: list[CheckedLimit]
    findings: list[Finding]
    figures: CheckFigures | None
    """Null where it cannot start."""
    regressions: list[Regression]
    reading: Reading
    notes: list[NoteAnswer]


class CheckReport(Answer):
    """The answer about all files."""

    contract: Literal[1] = 1
    """Version of this JSON: it changes where a field changes its meaning or goes."""
    verdict: Verdict
    checks: list[Check]
    editions: Editions

    @property
    def exit_code(self) -> int:
        """0 where nothing fails, 1 where something does."""
        return 1 if self.verdict == "fail" else 0


def check(
    texts: Mapping[str, str],
    question: CheckQuestion = NOTHING_ASKED,
    *,
    baseline: Mapping[str, str] | None = None,
    regression: float = 0.05,
) -> CheckReport:
    """Return the report on files by name.

    With a `baseline` file, figures that are worse by more than the share `regression` fail. Raises
    Unreadable, or another InvalidInput that names file and line, where one cannot be read.
    """
    deployments = read_files(texts, question.fields())
    if not deployments:
        raise Unreadable("file: none holds a deployment")
    reference = read_files(baseline, question.fields())[0].reading.scenario if baseline else None
    checks = [check_one(each, question, reference, regression) for each in deployments]
    return CheckReport(
        verdict=worst([one.verdict for one in checks]), checks=checks, editions=current_editions()
    )


def check_one(
    deployed: Deployed,
    question: CheckQuestion = NOTHING_ASKED,
    reference: Scenario | None = None,
    regression: float = 0.05,
) -> Check:
    """Return the check of one deployment."""
    findings = list(lint_given(deployed))
    limits: list[CheckedLimit] = []
    scenario = deployed.reading.scenario
    try:
        deployment = deployment_of(scenario)
        if question.requests_per_s is not None:
            scenario, limits = _at_rate(scenario, deployment, question.requests_per_s)
        plan = plan_deployment(scenario, deployment)
    except InvalidInput as error:
        findings.append(lint_refusal(deployed, error))
        return _result(deployed, "fail", findings[-1].code, [], findings, None, [], [])
    deployed.reading = _with_question(deployed.reading, scenario)
    findings += lint_planned(deployed, deployment, plan)
    limits += checked_limits(scenario, plan)
    worse = regressions(reference, scenario, regression) if reference else []
    verdicts = [limit.verdict for limit in limits]
    if worse or any(one.severity == "error" for one in findings):
        verdicts.append("fail")
    figures = _figures(scenario, deployment, plan)
    binds = _binds(plan, findings)
    return _result(deployed, worst(verdicts), binds, limits, findings, figures, worse, plan.notes)


def _at_rate(
    scenario: Scenario, deployment: Deployment, rate: float
) -> tuple[Scenario, list[CheckedLimit]]:
    clients, limit = clients_at_rate(scenario, deployment, rate)
    return scenario.model_copy(update={"concurrency": clients}), [limit]


def _with_question(reading: Reading, scenario: Scenario) -> Reading:
    """Return a reading of the scenario that was answered: its clients may be those of a rate."""
    origins = [
        one.model_copy(update={"value": scenario.concurrency})
        if one.field == "concurrency"
        else one
        for one in reading.origins
    ]
    return reading.model_copy(update={"scenario": scenario, "origins": origins})


def _result(
    deployed: Deployed,
    verdict: Verdict,
    binds: str,
    limits: list[CheckedLimit],
    findings: list[Finding],
    figures: CheckFigures | None,
    worse: list[Regression],
    notes: list[NoteAnswer],
) -> Check:
    ordered = sorted(dict.fromkeys(findings), key=lambda f: (ORDER[f.severity], f.line, f.code))
    return Check(
        verdict=verdict,
        probability=min((limit.probability for limit in limits), default=None),
        binds=binds,
        limits=limits,
        findings=ordered,
        figures=figures,
        regressions=worse,
        reading=deployed.reading,
        notes=notes,
    )


def _figures(scenario: Scenario, deployment: Deployment, plan: Plan) -> CheckFigures:
    serving = plan.serving
    return CheckFigures(
        fits=plan.memory.fits,
        max_batch=plan.memory.max_batch,
        running_batch=serving.running_batch if serving else None,
        queued=serving.queued if serving else None,
        tpot_s=serving.tpot_s if serving else None,
        ttft_s=serving.ttft_s if serving else None,
        requests_per_s=serving.requests_per_s if serving else None,
        output_tokens_per_s=serving.output_tokens_per_s if serving else None,
        gpus=deployment.sharding.gpus * scenario.replicas,
    )


QUEUED = 0.5
"""Clients waiting from which a replica is full [-]."""


def _binds(plan: Plan, findings: list[Finding]) -> str:
    stops = [one.code for one in findings if one.severity == "error"]
    if stops:
        return stops[0]
    if plan.serving is None:
        return plan.points[-1].bound
    if plan.serving.queued > QUEUED:
        return "engine_cap" if plan.memory.binds == "engine_cap" else "cache"
    running = max(1, round(plan.serving.running_batch))
    nearest = min(plan.points, key=lambda point: abs(point.batch - running))
    return nearest.bound
