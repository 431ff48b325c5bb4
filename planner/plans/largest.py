"""The largest model and context that one card runs fast enough, with llama.cpp's formats.

Where host memory is given, layers that the card does not hold run on the host at its bandwidth, and
the card waits for them (`planner.step.conditions`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, Any

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, FiniteFloat

from planner import answer
from planner.deployment import Deployment, Options, deploy
from planner.engines.settings import MemorySettings
from planner.hw import Accelerator, get_accelerator
from planner.models import list_models
from planner.models.spec import ModelSpec, Note
from planner.plans.editions import current_editions
from planner.plans.memory import WITHOUT_LIMIT
from planner.plans.targets import largest
from planner.plans.texts import note_answers
from planner.plans.uncertainty import factor, z_of
from planner.roofline import Array
from planner.scenario import Positive, Short, Size
from planner.step.parallel import Sharding
from planner.workload.distributions import Tokens

FORMATS = ("q8_0", "q6_k", "q5_k_m", "q4_k_m")
"""Formats tried, the most bits first."""
MOST_ROWS = 12
"""Models told [-]."""
ENGINE = "llama.cpp"


class LargestRequest(BaseModel):
    """A card, how fast it should be, and how long the context."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    gpu: Short | dict[str, Any]
    tokens_per_s: Positive = Field(10.0, description="least tokens per second")
    context: Tokens = Field(8192, description="least context [token]")
    formats: Annotated[list[Short], Field(min_length=1, max_length=20)] = list(FORMATS)
    host_memory_bytes: Size | None = Field(
        None, description="host memory for layers that the card does not hold [byte]"
    )
    host_bytes_per_s: Annotated[FiniteFloat, Field(ge=1.0, le=1e14)] | None = Field(
        None, description="host bandwidth [byte/s]"
    )
    percentile: Annotated[FiniteFloat, Field(ge=1, le=99)] = Field(
        50, description="percentile of the prediction's uncertainty of tokens_per_s"
    )


class LargestModel(answer.Answer):
    """A model that runs fast enough."""

    model: str
    total_params: int
    active_params: int
    weights: str
    """The format of most bits in which it does."""
    layers_on_gpu: int
    layers: int
    max_context: int
    """Longest context at which it fits and is fast enough [token]."""
    tokens_per_s: answer.Interval
    """At the least context."""


class Largest(answer.Answer):
    """Models that run fast enough, the largest first."""

    request: LargestRequest
    models: list[LargestModel]
    tried: int
    notes: list[answer.NoteAnswer]
    editions: answer.Editions


@dataclass(frozen=True, slots=True)
class HeldModel:
    """A model on the card, with as many layers as fit."""

    deployment: Deployment
    layers_on_gpu: int

    def time_s(self, context: Array | float) -> Array:
        """Return the time of a token at contexts [s]."""
        return self.deployment.time_s(1.0, context)


def largest_models(request: LargestRequest) -> Largest:
    """Return the models of the catalogue that a card runs fast enough, the largest first.

    Raises ValueError for an unknown accelerator, or one that llama.cpp does not run on.
    """
    accelerator = get_accelerator(request.gpu)
    memory = accelerator.memory()
    most = memory + (request.host_memory_bytes or 0.0)
    specs = sorted(list_models(), key=lambda s: -s.total_params)
    rows: list[LargestModel] = []
    tried = 0
    seen: set[tuple[int, int]] = set()
    for spec in specs:
        key = (spec.total_params, spec.layers)
        if len(rows) >= MOST_ROWS or key in seen or spec.quantization.formats:
            continue  # another checkpoint of the same network
        seen.add(key)
        tried += 1
        row = _best_format(spec, accelerator, request, most)
        if row is not None:
            rows.append(row)
    notes = [Note("one_sequence", "one sequence at a time, as one person uses a card")]
    if request.host_memory_bytes:
        text = (
            "layers on the host are taken to reach the share of its bandwidth that the card's "
            "kernels reach of the card's: a host of half the share takes twice the time for them"
        )
        notes.append(Note("host_share", text))
    return Largest(
        request=request,
        models=rows,
        tried=tried,
        notes=note_answers(notes),
        editions=current_editions(),
    )


def _best_format(
    spec: ModelSpec, accelerator: Accelerator, request: LargestRequest, most: float
) -> LargestModel | None:
    for name in request.formats:
        try:
            if spec.weights_bytes(spec.formats(name)) > most:
                continue
            held = _held(spec, accelerator, name, request)
        except ValueError:  # a format the model is not quantised in, arithmetic the card lacks
            continue
        row = None if held is None else _row(held, name, request)
        if row is not None:
            return row
    return None


def _row(held: HeldModel, weights: str, request: LargestRequest) -> LargestModel | None:
    one = held.deployment
    slow = float(factor(one.interval("tpot"), z_of(request.percentile)))
    limit_s = 1.0 / request.tokens_per_s / slow
    longest = one.memory.max_context(1, one.spec.max_context or WITHOUT_LIMIT)
    context = largest(lambda c: np.asarray(held.time_s(c) <= limit_s), longest)
    if context < request.context:
        return None
    seconds = float(held.time_s(float(request.context)))
    low, high = one.interval("tpot")
    return LargestModel(
        model=one.spec.id,
        total_params=one.spec.total_params,
        active_params=one.spec.active_params,
        weights=weights,
        layers_on_gpu=held.layers_on_gpu,
        layers=one.spec.layers,
        max_context=context,
        tokens_per_s=answer.Interval(
            p10=1 / (seconds * high), p50=1 / seconds, p90=1 / (seconds * low)
        ),
    )


def _held(
    spec: ModelSpec, accelerator: Accelerator, weights: str, request: LargestRequest
) -> HeldModel | None:
    """Return a model with as many layers on the card as fit beside the context."""

    def with_layers(layers: int | None) -> Deployment:
        settings = replace(MemorySettings(), layers_on_gpu=layers)
        host = request.host_bytes_per_s
        options = Options(weights, engine=ENGINE, settings=settings, host_bytes_per_s=host)
        return deploy(spec, accelerator, Sharding(), options)

    whole = with_layers(None)
    if whole.memory.max_batch(request.context) >= 1:
        return HeldModel(whole, spec.layers)
    if not (request.host_memory_bytes and request.host_bytes_per_s):
        return None
    low, high = 0, spec.layers
    while low < high:
        middle = (low + high + 1) // 2
        fits = with_layers(middle).memory.max_batch(request.context) >= 1
        low, high = (middle, high) if fits else (low, middle - 1)
    away = 1.0 - low / spec.layers
    if not low or whole.memory.weights_bytes_per_gpu * away > request.host_memory_bytes:
        return None
    return HeldModel(with_layers(low), low)
