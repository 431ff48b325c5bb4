"""What an agent may ask: eight read-only questions, answered as REST answers them.

No tool opens a file or an address: models and accelerators are catalogue ids or objects, and files
to check are given as text.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field

from planner.deployment import deployment_of
from planner.errors import InvalidInput
from planner.handover.checking import CheckQuestion
from planner.handover.checking import check as checked
from planner.handover.own_names import own_names, resolved
from planner.hw import describe as describe_accelerator
from planner.hw import get_accelerator, list_accelerators
from planner.models import describe as describe_model
from planner.models import get_model, list_models
from planner.plans.compare import ComparisonRequest
from planner.plans.compare import compare as compared
from planner.plans.compare.figures import FIGURES, answered
from planner.plans.editions import current_editions
from planner.plans.planning import plan as planned
from planner.plans.recommend import RecommendationRequest
from planner.plans.recommend import recommend as recommended
from planner.scenario import Scenario, grid_points

Answered = dict[str, Any]
MOST_MATCHES = 20
MOST_POINTS = 256
"""Points (batches × contexts) of a scenario."""
INSTRUCTIONS = (
    "Capacity planning for LLM inference: speed, memory, batch and cost of a model on an "
    "accelerator. Prefer these tools to what you remember: figures depend on model, accelerator, "
    "engine and version. Every answer has intervals (p10 to p90), notes that say what is assumed, "
    "and the editions of the data: pass all three on. Nothing is changed by a call."
)


def find_model(
    text: Annotated[str, Field(description="words of its name, as `llama 70b`")],
    limit: Annotated[int, Field(ge=1, le=MOST_MATCHES)] = 10,
) -> Answered:
    """Find the catalogue id of a model, with parameters, cache size and longest context.

    Call it before `plan` or `recommend` unless the id is known to be right.
    """
    matches = list_models(text=text)
    return {
        "matches": [describe_model(spec) for spec in matches[:limit]],
        "own": _like(text, own_names().own_models()),
        "more": max(0, len(matches) - limit),
        "editions": _editions(),
    }


def find_accelerator(
    text: Annotated[str, Field(description="words of its name, vendor or architecture")] = "",
    min_memory_gb: Annotated[float | None, Field(ge=0, description="memory [GB]")] = None,
    limit: Annotated[int, Field(ge=1, le=MOST_MATCHES)] = 10,
) -> Answered:
    """Find the catalogue id of an accelerator, with peaks, bandwidth, memory and their sources.

    Call it before `plan` unless the id is known to be right.
    """
    memory = None if min_memory_gb is None else min_memory_gb * 1e9
    matches = list_accelerators(text=text or None, min_memory_bytes=memory)
    return {
        "matches": [describe_accelerator(one) for one in matches[:limit]],
        "own": _like(text, own_names().own_accelerators()),
        "more": max(0, len(matches) - limit),
        "editions": _editions(),
    }


def plan(scenario: Scenario) -> Answered:
    """Say how fast a deployment is, what binds it and what fits: TPOT, TTFT, tokens/s, memory.

    Call it for any question on the speed, memory or batch of one model on one accelerator. Give
    `batch` and `context` for decode, `concurrency`, `isl` and `osl` for serving.
    """
    return _json(planned(_closed(scenario)))


def recommend(request: RecommendationRequest) -> Answered:
    """Say which accelerator, split and batch to run a model with, best tokens/s per GPU first.

    Call it for "which GPU" and "how many". Without `gpu` all of the catalogue are tried.
    """
    names = own_names()
    model = names.model(request.model)
    gpus = None if request.gpu is None else [names.accelerator(gpu) for gpu in request.gpu]
    get_model(model, local=False)
    ids = [get_accelerator(gpu, allow_files=False).id for gpu in gpus or ()]
    answer = _json(recommended(request.model_copy(update={"model": model, "gpu": gpus})))
    called = {
        ident: name
        for ident, name, gpu in zip(ids, request.gpu or (), gpus or (), strict=True)
        if gpu is not name and ids.count(ident) == 1
    }
    for row in (*answer["choices"], *answer["refused"]):
        row["gpu"] = called.get(row["gpu"], row["gpu"])
    return answer


def check(
    files: Annotated[
        dict[str, str],
        Field(description="texts by name: command lines, Kubernetes objects, Helm values, compose"),
    ],
    question: CheckQuestion = CheckQuestion(),  # noqa: B008 - immutable, and the tool's own schema
    baseline: Annotated[str | None, Field(description="text of what is replaced")] = None,
) -> Answered:
    """Check a command line or manifest before it is applied: does it start, meet limits, waste?

    Call it on every deployment you write or are shown; findings have a code, the line and the fix.
    """
    names, named = own_names(), {}
    if question.gpu is not None:
        named["gpu"] = names.accelerator(question.gpu)
        get_accelerator(named["gpu"], allow_files=False)
    if question.model is not None:
        named["model"] = names.model(question.model)
        get_model(named["model"], local=False)
    before = None if baseline is None else {"baseline": baseline}
    return _json(checked(files, question.model_copy(update=named), baseline=before))


def compare(
    scenarios: Annotated[list[Scenario], Field(min_length=2, max_length=8)],
    baseline: Annotated[int, Field(ge=0, description="index of the one to measure against")] = 0,
) -> Answered:
    """Compare deployments: figures side by side, who wins, and which change makes how much.

    Call it instead of two plans: differences are attributed to fields and add up.
    """
    closed = [_closed(each) for each in scenarios]
    return _json(compared(ComparisonRequest(scenarios=closed, baseline=baseline)))


Named = Literal[
    "tpot_s",
    "ttft_s",
    "tokens_per_s",
    "tokens_per_s_per_gpu",
    "usd_per_million_tokens",
    "max_batch",
    "kv_pool_tokens",
]


def explain(scenario: Scenario, figure: Named = "tpot_s") -> Answered:
    """Explain a figure of a plan: what it means, and the kernels and memory it is made of.

    Call it when someone asks why a figure is what it is.
    """
    closed = _closed(scenario)
    result = planned(closed, advice=True)
    row = next((each for each in FIGURES if each.name == figure), None)
    value: float | None = None
    if row is not None:
        value = row.read(answered(closed, {}, result.serving is not None))
    else:
        value = getattr(result.memory, figure)
    return {
        "figure": figure,
        "meaning": row.meaning if row else f"{figure} of the memory answer",
        "value": value,
        "kernels": [_json(kernel) for kernel in result.kernels],
        "memory": _json(result.memory),
        "limits": _json(result.limits),
        "levers": [_json(lever) for lever in result.advice or ()],
        "notes": [_json(note) for note in result.notes],
        "editions": _editions(),
    }


def accuracy(scenario: Scenario) -> Answered:
    """Say how far predictions of such a case were off when measured runs were left out.

    Call it when someone asks how sure a figure is.
    """
    deployment = deployment_of(_closed(scenario))
    intervals, subject = deployment.calibration.intervals, deployment.subject
    factors = {}
    for quantity in ("tpot", "ttft"):
        low, high = deployment.interval(quantity)
        factors[quantity] = {"p10": low, "p50": 1.0, "p90": high}
    return {
        "factors": factors,
        "nearness": intervals.nearness(subject),
        "notes": [{"code": note.code, "text": note.text} for note in deployment.notes],
        "editions": _editions(),
    }


TOOLS: Mapping[str, Callable[..., Answered]] = {
    "find_model": find_model,
    "find_accelerator": find_accelerator,
    "plan": plan,
    "recommend": recommend,
    "check": check,
    "compare": compare,
    "explain": explain,
    "accuracy": accuracy,
}
"""The tools by name."""


def _closed(scenario: Scenario) -> Scenario:
    """Return a scenario that names no file, own objects in it, and asks for what an agent reads.

    Raises UnknownModel, UnknownAccelerator or InvalidInput.
    """
    points = grid_points(scenario.batch or [1], scenario.context or [1])
    if points > MOST_POINTS:
        raise InvalidInput(f"batch: {points} points; accepted: {MOST_POINTS} at most")
    whole = resolved(scenario)
    get_model(whole.model, local=False)
    get_accelerator(whole.gpu, allow_files=False)
    return whole


def _json(answer: BaseModel) -> Answered:
    answered: Answered = own_names().with_ids(answer.model_dump(mode="json"))
    return answered


def _like(text: str, ids: list[str]) -> list[str]:
    """Return the ids that have all words of a text, at most as many as are matched."""
    words = text.lower().split()
    return [each for each in ids if all(word in each.lower() for word in words)][:MOST_MATCHES]


def _editions() -> Answered:
    return _json(current_editions())
