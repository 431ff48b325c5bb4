"""Which batch to run on which accelerator at a context, and what binds it; prompts do not count."""

from __future__ import annotations

from typing import Literal

import numpy as np

from planner import answer
from planner.deployment import Deployment, Options, deploy
from planner.engines.settings import InvalidSetting, MemorySettings
from planner.hw import Accelerator, get_accelerator, list_accelerators, price_per_hour
from planner.models import get_model
from planner.plans.columns import columns
from planner.plans.request import RecommendationRequest, several
from planner.plans.targets import largest_batch, percentile_factor
from planner.plans.texts import note_answers
from planner.step.parallel import InvalidSharding, Sharding
from planner.step.timing import BOUNDS

Binds = Literal["memory", "engine_cap", "tpot", "knee", "crossover"]

MOST_RANKS = 64
"""Largest tensor-parallel degree tried [-]."""
WITHOUT_DOMAIN = 8
"""Cards a host without a scale-up link is tried with, over PCIe [-]."""


ANNOUNCED = "announced only; accepted: with announced, or named as gpu"
"""Why an accelerator that cannot be bought yet is not tried."""


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


def batch_choices(request: RecommendationRequest) -> tuple[list[Option], list[Refusal]]:
    """Return the batch to run on each accelerator, best tokens/s per GPU first, and refusals.

    Raises ValueError naming the field where the request itself is wrong.
    """
    choices: list[Option] = []
    refused: list[Refusal] = []
    for accelerator in candidates(request):
        choice: Option | str = ANNOUNCED
        if wanted(request, accelerator):
            choice = _choose(request, accelerator)
        if isinstance(choice, Option):
            choices.append(choice)
        else:
            refused.append(Refusal(gpu=accelerator.id, reason=choice))
    choices.sort(key=lambda c: -c.tokens_per_s_per_gpu)
    return choices, refused


def candidates(request: RecommendationRequest) -> list[Accelerator]:
    """Return the accelerators of a request; raises ValueError for an unknown one."""
    if request.gpu is not None:
        return [get_accelerator(gpu) for gpu in request.gpu]
    return list(list_accelerators())


def wanted(request: RecommendationRequest, accelerator: Accelerator) -> bool:
    """Return whether an accelerator was named, can be bought, or may be announced only."""
    named = request.gpu is not None or request.announced
    return named or accelerator.status != "announced"


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
        factor = percentile_factor(holding[-1], "tpot", request.percentile)
        single = float(holding[-1].time_s(1, request.context)) * factor * 1e3
        return f"one sequence takes {single:.1f} ms a token, the limit is {request.tpot_ms:g} ms"
    return max(choices, key=lambda choice: choice.tokens_per_s_per_gpu)


def _holding(request: RecommendationRequest, accelerator: Accelerator) -> list[Deployment] | str:
    """Return the deployments that hold the model, fewest ranks first, or why none does."""
    reason = ""
    spec = get_model(request.model)
    options = Options(
        _first(request.weights),
        _first(request.kv),
        _first(request.engine),
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


def _first(value: str | list[str] | None) -> str | None:
    return next(iter(several(value) or (None,)))


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
        notes=note_answers(n for n in deployment.notes if n not in deployment.spec.notes),
    )


def _degrees(request: RecommendationRequest, accelerator: Accelerator) -> list[int]:
    if request.tp is not None:
        return [request.tp]
    if accelerator.link.bytes_per_s is None:
        return [1]
    most = accelerator.domain_size or 1
    most = min(max(most, WITHOUT_DOMAIN), MOST_RANKS)
    return [2**n for n in range(most.bit_length()) if 2**n <= most]
