"""`plan`: one scenario in, one plan out. Everything that presents an answer calls this."""

from __future__ import annotations

from functools import lru_cache
from itertools import product
from typing import Any

import numpy as np
from pydantic_core import to_json

from planner import answer
from planner.deployment import Deployment, deployment_of
from planner.models.spec import Note
from planner.plans.advice import LeverQuestion, levers
from planner.plans.columns import FIGURES, Column, columns
from planner.plans.editions import current_editions
from planner.plans.kernels import kernel_rows
from planner.plans.memory import fit_notes, memory_fields
from planner.scenario import DEFAULT_CONTEXT, Scenario
from planner.step.limits import DecodeLimits
from planner.step.timing import BOUNDS
from planner.workload.distributions import mean_context

BOUND_NAMES = np.array(BOUNDS)
NO_NUMBERS = (b"NaN", b"Infinity")
"""What a float that is no number would be written as."""


def plan(scenario: Scenario, *, advice: bool = False) -> answer.Plan:
    """Answer a scenario; with `advice` its levers too, which take as long as the rest.

    Raises ValueError, with one line that names the field, where it is unknown or impossible; a
    batch that does not fit, or a context beyond the model's, is answered with a note.
    """
    return plan_deployment(scenario, deployment_of(scenario), advice=advice)


def plan_deployment(
    scenario: Scenario, deployment: Deployment, *, advice: bool = False
) -> answer.Plan:
    """Answer a scenario about a deployment that is already resolved."""
    return answer.Plan.model_validate(plan_fields(scenario, deployment, advice=advice))


def plan_json(scenario: Scenario, deployment: Deployment) -> bytes:
    """Return the same answer as JSON, byte for byte what `Plan.model_dump_json` writes.

    The fields are written as they are computed: checking them against the model and building it
    takes longer than writing them. Where the text names what JSON has no number for, the model
    decides, which refuses such a number and lets such a name pass.
    """
    fields = plan_fields(scenario, deployment)
    body = to_json(fields)
    if any(word in body for word in NO_NUMBERS):
        return answer.Plan.model_validate(fields).model_dump_json().encode()
    return body


def plan_fields(
    scenario: Scenario, deployment: Deployment, *, advice: bool = False
) -> dict[str, Any]:
    """Return the fields of the plan in their order, nested ones as dictionaries or models."""
    notes = list(deployment.notes)
    contexts = _contexts(scenario, deployment, notes)
    context = max(contexts)
    fit = deployment.memory.max_batch(context)
    batches = scenario.batch or _powers(fit)
    limits = deployment.limits(context)
    notes.append(_nearness_note(scenario, deployment))
    notes += fit_notes(deployment, scenario.batch, context, fit)
    meets = _meets(scenario, deployment, batches, context, fit)
    notes += _load_notes(scenario, deployment, meets)

    passes = deployment.passes_on_grid(tuple(batches), tuple(contexts))
    batch = np.array(batches, float)[:, None]
    question = LeverQuestion(deployment, batches[-1], contexts[-1], scenario)
    figures = columns(deployment, scenario.replicas, passes, batch)
    return {
        "scenario": _filled(scenario, deployment, batches, contexts),
        "verdict": {"fits": fit >= (max(scenario.batch) if scenario.batch else 1), "meets": meets},
        "limits": _limits(limits),
        "memory": memory_fields(deployment, limits, context, fit, min(batches)),
        "points": _points(figures, batches, contexts),
        "serving": _serving(scenario, deployment),
        "kernels": kernel_rows(deployment, passes),
        "advice": list(levers(question)) if advice else None,
        "notes": [{"code": n.code, "text": n.text} for n in dict.fromkeys(notes)],
        "editions": current_editions(),
    }


def _serving(scenario: Scenario, deployment: Deployment) -> answer.Serving | None:
    if scenario.isl is None:
        return None
    from planner.plans.serving import answer_serving  # the decode question does without

    return answer_serving(scenario, deployment)


def _meets(
    scenario: Scenario, deployment: Deployment, batches: list[int], context: int, fit: int
) -> list[answer.Meets]:
    if scenario.tpot_ms is None and scenario.ttft_ms is None:
        return []
    from planner.plans.meets import meets_of  # a question without limits does without

    return meets_of(scenario, deployment, batches, context, fit)


def _load_notes(
    scenario: Scenario, deployment: Deployment, meets: list[answer.Meets]
) -> list[Note]:
    notes = []
    if meets:
        from planner.plans.meets import missed_notes

        notes += missed_notes(meets, scenario)
    if scenario.isl is not None:
        from planner.plans.serving import serving_notes

        notes += serving_notes(scenario, deployment)
    if scenario.osl == 1:
        text = "one output token leaves no time between tokens: TPOT is what a second would take"
        notes.append(Note("one_output_token", text))
    return notes


def _nearness_note(scenario: Scenario, deployment: Deployment) -> Note:
    """How near the case is to measured ones, which is what its intervals rest on."""
    intervals, subject = deployment.calibration.intervals, deployment.subject
    text = f"intervals are those of left-out runs of the class: {deployment.nearness}"
    if scenario.isl is not None and intervals.borrowed("ttft", subject):
        text += f"; TTFT of {subject.tags['engine']} was not measured: that of servers, widened"
    return Note("nearness", text)


def _contexts(scenario: Scenario, deployment: Deployment, notes: list[Note]) -> list[int]:
    most = deployment.spec.max_context
    if scenario.context:
        contexts = list(scenario.context)
    elif scenario.isl and scenario.osl:
        contexts = [mean_context(scenario.isl, scenario.osl)]
    else:
        contexts = [min(DEFAULT_CONTEXT, most or DEFAULT_CONTEXT)]
        notes.append(Note("assumed_context", f"no context given: {contexts[0]} tokens assumed"))
    if most and max(contexts) > most:
        text = f"context {max(contexts)} exceeds the model's maximum of {most} tokens"
        notes.append(Note("context_beyond_model", text))
    return contexts


def _powers(most: int) -> list[int]:
    """Powers of two up to `most`, and `most` itself; 1 where nothing fits."""
    most = max(most, 1)
    return sorted({2**n for n in range(most.bit_length())} | {most})


def _filled(
    scenario: Scenario, deployment: Deployment, batches: list[int], contexts: list[int]
) -> Scenario:
    resolved: dict[str, Any] = {
        "weights": deployment.weights,
        "kv": deployment.formats.kv.id,
        "batch": batches,
        "context": contexts,
    }
    if scenario.speculation:
        accepted = {"accepted": deployment.tokens_per_step}
        resolved["speculation"] = scenario.speculation.model_copy(update=accepted)
    return scenario.model_copy(update=resolved)


@lru_cache(maxsize=1024)
def _limits(limits: DecodeLimits) -> answer.Limits:
    return answer.Limits(
        ridge_point=limits.ridge_point,
        saturation_intensity=limits.saturation_intensity,
        crossover_batch=limits.crossover_batch,
        crossover_reason=limits.crossover_reason,
        weights_equal_kv_batch=limits.weights_equal_kv_batch,
        knee_batch=limits.knee_batch,
    )


def _points(
    figures: dict[str, Column], batches: list[int], contexts: list[int]
) -> list[dict[str, Any]]:
    """Fields of the points of a grid of batches and contexts, batch by batch, from its columns."""
    named = {**figures, "bound": BOUND_NAMES[figures["bound"]]}
    rows = zip(*(named[name].ravel().tolist() for name in FIGURES), strict=True)
    return [
        _point(batch, context, *row)
        for (batch, context), row in zip(product(batches, contexts), rows, strict=True)
    ]


def _point(
    batch: int,
    context: int,
    flops: float,
    moved: float,
    intensity: float,
    bound: str,
    roofline_s: float,
    fast_s: float,
    tpot_s: float,
    slow_s: float,
    rate: float,
    low: float,
    high: float,
    of_gpu: float,
    of_user: float,
    mbu: float,
    mfu: float,
) -> dict[str, Any]:
    """Fields of an `answer.Point` in their order, from figures in the order of `FIGURES`."""
    return {
        "batch": batch,
        "context": context,
        "flops": flops,
        "bytes": moved,
        "arithmetic_intensity": intensity,
        "bound": bound,
        "roofline_tpot_s": roofline_s,
        "tpot_s": {"p10": fast_s, "p50": tpot_s, "p90": slow_s},
        "tokens_per_s": rate,
        "tokens_per_s_interval": {"p10": low, "p50": rate, "p90": high},
        "tokens_per_s_per_gpu": of_gpu,
        "tokens_per_s_per_user": of_user,
        "mbu": mbu,
        "mfu": mfu,
    }
