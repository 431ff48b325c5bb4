"""One call of every operation, in an order that works on an empty workspace.

The examples of answers are made with it, and the tests call generated clients by it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from api.openapi.examples import EXAMPLES

Texts = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Call:
    """A call of an operation; its body is the operation's example."""

    operation: str
    path: Texts = field(default_factory=dict)
    """Path parameters; `operation.field` stands for what an earlier answer has there."""
    query: Mapping[str, Any] = field(default_factory=dict)
    headers: Texts = field(default_factory=dict)
    ended: tuple[str, ...] = ()
    """States of the answer until which the call is repeated."""
    sends: str = ""
    """Operation whose answer is the body, as it came."""

    @property
    def body(self) -> Any:
        """The body, None where the operation takes none."""
        return EXAMPLES.get(self.operation)


SCENARIO = {"scenario_id": "createScenario.id"}
COMPARISON = {"comparison_id": "createComparison.id"}
MEASUREMENT = {"measurement_id": "createMeasurement.measurement.id"}
MODEL, ACCELERATOR = {"model_id": "createModel.id"}, {"accelerator_id": "createAccelerator.id"}
JOB = {"job_id": "createJob.id"}
ANY = {"If-Match": "*"}

CALLS = (
    Call("live"),
    Call("ready"),
    Call("metrics"),
    Call("about"),
    Call("createPlan", query={"advice": True}),
    Call("createSweep"),
    Call("createRecommendation"),
    Call("createRoofline"),
    Call("createFleet"),
    Call("createCheck"),
    Call("createModel"),
    Call("listModels", query={"text": "llama-3.1-8b"}),
    Call("getModel", MODEL),
    Call("createAccelerator"),
    Call("listAccelerators", query={"vendor": "nvidia", "text": "h100"}),
    Call("getAccelerator", ACCELERATOR),
    Call("listEngines"),
    Call("getEngine", {"engine_id": "vllm"}, {"gpu": "h100-sxm5"}),
    Call("createScenario"),
    Call("createScenarios"),
    Call("putScenario", {"name": "nightly"}),
    Call("listScenarios", query={"tag": "chat", "sort": "-updated", "limit": 2}),
    Call("getScenario", SCENARIO, {"include": "plan"}),
    Call("changeScenario", SCENARIO, headers=ANY),
    Call("replaceScenario", SCENARIO, headers=ANY),
    Call("recomputeScenario", SCENARIO, headers=ANY),
    Call("deleteScenario", SCENARIO, headers=ANY),
    Call("restoreScenario", SCENARIO, headers=ANY),
    Call("listRevisions", SCENARIO),
    Call("getScenarioPlan", SCENARIO, {"recompute": True}),
    Call("createComparison"),
    Call("listComparisons", query={"limit": 1}),
    Call("getComparison", COMPARISON),
    Call("deleteComparison", COMPARISON),
    Call("createMeasurement", query={"gpu": "h100-sxm5", "tp": 1}),
    Call("listMeasurements"),
    Call("getMeasurement", MEASUREMENT),
    Call("deleteMeasurement", MEASUREMENT),
    Call("exportWorkspace"),
    Call("importWorkspace"),
    Call("exportLines"),
    Call("importLines", query={"name": "again"}, sends="exportLines"),
    Call("createJob"),
    Call("listJobs", query={"limit": 1}),
    Call("getJob", JOB, ended=("done", "failed", "cancelled")),
    Call("getJobResult", JOB),
    Call("cancelJob", JOB),
    Call("deleteJob", JOB),
    Call("listChanges", query={"limit": 1}),
    Call("deleteModel", MODEL),
    Call("deleteAccelerator", ACCELERATOR),
)


def resolved(call: Call, answers: Mapping[str, Any]) -> dict[str, str]:
    """Return the path parameters of a call, given what earlier operations answered."""
    return {name: _value(text, answers) for name, text in call.path.items()}


def _value(text: str, answers: Mapping[str, Any]) -> str:
    operation, _, fields = text.partition(".")
    if operation not in answers or not fields:
        return text
    value = answers[operation]
    for each in fields.split("."):
        value = value[each]
    return str(value)
