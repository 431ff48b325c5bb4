"""Which batch to run on which accelerator, and what binds it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from planner import answer
from planner.deployment import Deployment, Options, deploy
from planner.engines.settings import InvalidSetting, MemorySettings
from planner.engines.support import check_version
from planner.hw import Accelerator, get_accelerator, list_accelerators, price_per_hour
from planner.models import get_model
from planner.models.spec import Note
from planner.plans.columns import columns
from planner.plans.editions import current_editions
from planner.plans.targets import largest_batch
from planner.scenario import DEFAULT_CONTEXT, Count, EngineSettings, Positive, Short
from planner.step.parallel import InvalidSharding, Sharding
from planner.step.timing import BOUNDS
from planner.workload.distributions import Tokens

Binds = Literal["memory", "engine_cap", "tpot", "knee", "crossover"]

MOST_RANKS = 64
"""Largest tensor-parallel degree tried [-]."""
WITHOUT_DOMAIN = 8
"""Cards a host without a scale-up link is tried with, over PCIe [-]."""


class RecommendationFields(BaseModel):
    """A model, a context and an optional TPOT limit, over some accelerators or all."""

    model: Short | dict[str, Any]
    context: Tokens = DEFAULT_CONTEXT
    tpot_ms: Positive | None = None
    gpu: Annotated[list[Short | dict[str, Any]], Field(max_length=500)] | None = None
    """Accelerators to try; null is all of the catalogue."""
    tp: Count | None = None
    """Tensor-parallel degree; null is the smallest that holds the model."""
    best_tp: bool = False
    """Try every degree that holds the model and keep the one with most tokens/s per GPU."""
    percentile: Annotated[float, Field(ge=1, le=99)] = 50
    """Percentile of TPOT the limit applies to."""
    weights: Short | None = None
    kv: Short | None = None
    engine: Short | None = None
    engine_version: Short | None = None


class RecommendationRequest(EngineSettings, RecommendationFields):
    """What is wanted of which model, and the settings of the engine's memory."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Option(answer.Answer):
    """The batch to run on one accelerator."""

    gpu: str
    status: str
    """Whether the accelerator is available, announced only, or the user's own."""
    tp: int
    batch: int
    binds: Binds
    max_batch: int
    headroom: float
    """Share of the cache memory left free at this batch."""
    tpot_s: answer.Interval
    tokens_per_s: float
    tokens_per_s_per_gpu: float
    arithmetic_intensity: float
    bound: answer.Bound
    usd_per_million_tokens: float | None
    notes: list[answer.NoteAnswer]
    """Of this accelerator; those of the model are the recommendation's."""


class Refusal(answer.Answer):
    """An accelerator that cannot be used, and why."""

    gpu: str
    reason: str


class Recommendation(answer.Answer):
    """Choices, best tokens/s per GPU first, and the accelerators refused."""

    request: RecommendationRequest
    choices: list[Option]
    refused: list[Refusal]
    notes: list[answer.NoteAnswer]
    """Of the model, whatever the accelerator."""
    editions: answer.Editions


def recommend(request: RecommendationRequest) -> Recommendation:
    """Return the batch to run on each accelerator of the request.

    Raises ValueError naming the field where the request itself is wrong; an accelerator that cannot
    hold the model or meet the limit is listed under `refused`.
    """
    spec = get_model(request.model)
    check_version(request.engine, request.engine_version)
    if request.gpu is None:
        candidates = list_accelerators()
    else:
        candidates = [get_accelerator(gpu) for gpu in request.gpu]
    choices: list[Option] = []
    refused: list[Refusal] = []
    for accelerator in candidates:
        choice = _choose(request, accelerator)
        if isinstance(choice, Option):
            choices.append(choice)
        else:
            refused.append(Refusal(gpu=accelerator.id, reason=choice))
    choices.sort(key=lambda c: -c.tokens_per_s_per_gpu)
    return Recommendation(
        request=request,
        choices=choices,
        refused=refused,
        notes=_notes(spec.notes),
        editions=current_editions(),
    )


def _choose(request: RecommendationRequest, accelerator: Accelerator) -> Option | str:
    """Return the choice for one accelerator, or the reason there is none."""
    try:
        holding = _holding(request, accelerator)
    except ValueError as error:
        if request.gpu is not None and len(request.gpu) == 1:
            raise
        return str(error)
    if isinstance(holding, str):
        return holding
    limit_s = None if request.tpot_ms is None else request.tpot_ms / 1e3
    choices: list[Option] = []
    for deployment in holding if request.best_tp else holding[:1]:
        batch, binds = batch_to_run(deployment, request.context, limit_s, request.percentile)
        if batch:
            choices.append(_answer(deployment, request, batch, binds))
    if not choices:
        single = float(holding[-1].time_s(1, request.context)) * 1e3
        return f"one sequence takes {single:.1f} ms a token, the limit is {request.tpot_ms:g} ms"
    return max(choices, key=lambda choice: choice.tokens_per_s_per_gpu)


def _holding(request: RecommendationRequest, accelerator: Accelerator) -> list[Deployment] | str:
    """Return the deployments that hold the model, fewest ranks first, or why none does."""
    reason = ""
    spec = get_model(request.model)
    options = Options(
        request.weights,
        request.kv,
        request.engine,
        request.engine_version,
        MemorySettings.of(request),
    )
    deployments: list[Deployment] = []
    for ranks in _degrees(request, accelerator):
        try:
            deployment = deploy(spec, accelerator, Sharding(tp=ranks), options)
        except InvalidSetting as error:
            reason = str(error)
            continue
        except InvalidSharding:
            if deployments:
                break
            raise
        if deployment.memory.max_batch(request.context) >= 1:
            deployments.append(deployment)
            if not request.best_tp:
                break
            continue
        weights = deployment.memory.weights_bytes_per_gpu
        cache = float(deployment.memory.gpu_sequence_bytes.at(request.context))
        reason = (
            f"weights take {weights / 1e9:.1f} GB per GPU at tp={ranks}, the cache of one sequence "
            f"{cache / 1e9:.1f} GB, memory is {accelerator.memory() / 1e9:.1f} GB"
        )
    return deployments or reason or "no tensor-parallel degree divides the attention heads"


def batch_to_run(
    deployment: Deployment, context: int, limit_s: float | None, percentile: float = 50
) -> tuple[int, Binds]:
    """Return the batch to run and what binds it; 0 where one sequence misses the limit.

    The smallest of: the sequences memory holds or the engine runs at most, the largest batch within
    the TPOT limit (without a limit: the knee, past which a sequence adds less than half), and the
    crossover, past which arithmetic binds and TPOT grows as fast as the batch.
    """
    most = deployment.memory.max_batch(context)
    limits = deployment.limits(context)
    held: Binds = "engine_cap" if deployment.memory.capped(context) else "memory"
    caps: dict[Binds, int] = {held: most}
    if limit_s is None:
        caps["knee"] = limits.knee_batch
    else:
        caps["tpot"] = largest_batch(deployment, context, limit_s, most, percentile)
    if limits.crossover_batch is not None:
        caps["crossover"] = limits.crossover_batch
    binds = min(caps, key=lambda name: caps[name])
    return caps[binds], binds


def _answer(
    deployment: Deployment, request: RecommendationRequest, batch: int, binds: Binds
) -> Option:
    size = np.array([float(batch)])
    passes = deployment.passes(size, np.array([float(request.context)]))
    row = {k: v.tolist()[0] for k, v in columns(deployment, 1, passes, size).items()}
    most = deployment.memory.max_batch(request.context)
    price = price_per_hour(deployment.accelerator.part)
    hourly = price.usd_per_gpu_hour * deployment.sharding.gpus if price else None
    return Option(
        gpu=deployment.accelerator.id,
        status=deployment.accelerator.status,
        tp=deployment.sharding.tp,
        batch=batch,
        binds=binds,
        max_batch=most,
        headroom=1.0 - batch / most,
        tpot_s=answer.Interval(p10=row["tpot_p10_s"], p50=row["tpot_p50_s"], p90=row["tpot_p90_s"]),
        tokens_per_s=row["tokens_per_s"],
        tokens_per_s_per_gpu=row["tokens_per_s_per_gpu"],
        arithmetic_intensity=row["arithmetic_intensity"],
        bound=BOUNDS[row["bound"]],
        usd_per_million_tokens=hourly / row["tokens_per_s"] / 3600 * 1e6 if hourly else None,
        notes=_notes(n for n in deployment.notes if n not in deployment.spec.notes),
    )


def _notes(notes: Iterable[Note]) -> list[answer.NoteAnswer]:
    return [answer.NoteAnswer(code=n.code, text=n.text) for n in dict.fromkeys(notes)]


def _degrees(request: RecommendationRequest, accelerator: Accelerator) -> list[int]:
    if request.tp is not None:
        return [request.tp]
    if accelerator.link.bytes_per_s is None:
        return [1]
    most = accelerator.domain_size or 1
    most = min(max(most, WITHOUT_DOMAIN), MOST_RANKS)
    return [2**n for n in range(most.bit_length()) if 2**n <= most]
