"""Every option for a workload: its curve, how many of it are needed, and what they cost."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from planner.deployment import Deployment
from planner.engines.settings import MemorySettings
from planner.hw import Accelerator
from planner.models.spec import ModelSpec
from planner.plans.batches import ANNOUNCED, candidates, wanted
from planner.plans.candidate import Candidate, Feeding, feeding_workers
from planner.plans.curves import Curve, DecodeAlone, Requests, shared_curve
from planner.plans.money import PriceBook, Tariff
from planner.plans.progress import tracked
from planner.plans.request import RecommendationRequest, several
from planner.plans.sizing import Sizing, Wanted
from planner.plans.space import Axes, Refused, count_options, options
from planner.plans.uncertainty import Spread, z_of
from planner.workload.distributions import moments
from planner.workload.sessions import session_hit


@dataclass(frozen=True, slots=True, eq=False)
class Question:
    """A request, read once."""

    request: RecommendationRequest
    spec: ModelSpec
    requests: Requests
    wanted: Wanted
    z: float
    """Place of the uncertainty that numbers are taken at [-]."""
    prices: PriceBook

    @classmethod
    def of(cls, request: RecommendationRequest, spec: ModelSpec) -> Question:
        """Return the question of a request; raises ValueError that names a field."""
        isl, osl = moments(request.isl or 1), moments(request.osl or 1)
        hit = session_hit(isl.mean, osl.mean, request.turns, request.prefix_tokens)
        prices = PriceBook(
            request.price_kind,
            request.provider,
            request.usd_per_gpu_hour,
            request.price_days,
            request.duty_cycle,
        )
        return cls(
            request,
            spec,
            Requests(isl, osl, request.prefix_hit or float(hit)),
            Wanted.of(request),
            z_of(request.percentile),
            prices,
        )

    @property
    def axes(self) -> Axes:
        """What is open and what is fixed."""
        asked = self.request
        return Axes(
            settings=MemorySettings.of(asked),
            engines=several(asked.engine),
            engine_version=asked.engine_version,
            weights=several(asked.weights) or (None,),
            kv=several(asked.kv),
            tp=asked.tp,
            pp=asked.pp,
            ep=asked.ep,
            attention_dp=asked.attention_dp,
            speculation=asked.speculation,
            most_gpus=asked.gpus,
        )


@dataclass(slots=True)
class Searched:
    """All candidates, and what was refused by accelerator: how often, and the first reason."""

    evaluated: int = 0
    options: int = 0
    """Of replicas, before workers for prompts; 0 where they were not counted."""
    staged: bool = False
    """Whether some splits were tried on the best accelerators alone."""
    meeting: list[Candidate] = field(default_factory=list)
    missing: list[Candidate] = field(default_factory=list)
    refused: dict[str, tuple[int, str]] = field(default_factory=dict)

    def refuse(self, gpu: str, reason: str) -> None:
        """Count a refused option; the last reason is that of the most GPUs."""
        count, _ = self.refused.get(gpu, (0, ""))
        self.refused[gpu] = (count + 1, reason)


MOST_WHOLE = 4000
"""Options beyond which a search goes in two rounds [-]."""
SECOND_ROUND = 8
"""Accelerators of the second round [-]."""


def search(question: Question) -> Searched:
    """Return every option of a question.

    Where there are very many (a model with routed experts on all accelerators), tensor parallelism
    alone is tried everywhere, and the other splits on the accelerators that did best.
    """
    result = Searched()
    accelerators = []
    for accelerator in candidates(question.request):
        if wanted(question.request, accelerator):
            accelerators.append(accelerator)
        else:
            result.refuse(accelerator.id, ANNOUNCED)
    axes = question.axes
    if len(accelerators) > SECOND_ROUND:
        result.options = sum(count_options(question.spec, a, axes) for a in accelerators)
    if result.options <= MOST_WHOLE:
        for accelerator in tracked(accelerators, len(accelerators)):
            _search_accelerator(question, accelerator, axes, result)
        return result
    simple = replace(axes, pp=axes.pp or 1, ep=axes.ep or 1, attention_dp=axes.attention_dp or 1)
    for accelerator in tracked(accelerators, len(accelerators)):
        _search_accelerator(question, accelerator, simple, result)
    best = _best_accelerators(result)
    again = [accelerator for accelerator in accelerators if accelerator.id in best]
    for accelerator in tracked(again, len(again)):
        result.meeting = [c for c in result.meeting if c.gpu != accelerator.id]
        _search_accelerator(question, accelerator, axes, result)
    result.staged = True
    return result


def _best_accelerators(result: Searched) -> set[str]:
    """Return the accelerators that did best in cost, in GPUs and in time, in turn."""
    ranks = [sorted(result.meeting, key=key) for key in (Candidate.usd, _gpus_each, _time)]
    best: dict[str, None] = {}
    for rank in zip(*ranks, strict=True):
        best.update(dict.fromkeys(c.gpu for c in rank))
        if len(best) >= SECOND_ROUND:
            break
    return set(best)


def _gpus_each(candidate: Candidate) -> float:
    return candidate.gpus / candidate.served


def _time(candidate: Candidate) -> float:
    return candidate.e2e_s


def _search_accelerator(
    question: Question, accelerator: Accelerator, axes: Axes, result: Searched
) -> None:
    try:
        accelerator.memory()
    except ValueError as error:
        result.refuse(accelerator.id, str(error))
        return
    tariff = question.prices.of(accelerator)
    groups: dict[tuple[str | None, str, str], list[Deployment]] = defaultdict(list)
    for option in options(question.spec, accelerator, axes):
        if isinstance(option, Refused):
            result.refuse(option.gpu, option.reason)
            continue
        engine = option.engine.id if option.engine.id != "neutral" else None
        groups[engine, option.weights, option.formats.kv.id].append(option)
    disaggregated = question.request.disaggregated
    if question.request.of_percentiles:
        disaggregated = False  # the schedule of workers for prompts is not simulated
    for (engine, _, _), deployments in groups.items():
        if disaggregated is not True:
            for deployment in deployments:
                _add_shared(question, deployment, engine, tariff, result)
        if disaggregated is not False:
            for candidate in _apart(question, deployments, engine, tariff, result):
                _add(question, candidate, result)


def _add_shared(
    question: Question,
    deployment: Deployment,
    engine: str | None,
    tariff: Tariff | None,
    result: Searched,
) -> None:
    try:
        curve = shared_curve(deployment, question.requests)
    except ValueError as error:
        result.refuse(deployment.accelerator.id, str(error))
        return
    if curve is None:
        result.refuse(deployment.accelerator.id, no_room(question, deployment))
        return
    _add(question, sized(question, deployment, engine, None, curve, tariff), result)


def no_room(question: Question, deployment: Deployment) -> str:
    """Return why not one request fits."""
    each = deployment.memory.weights_bytes_per_gpu / 1e9
    return (
        f"not one request of {question.requests.isl.mean:.6g} tokens fits "
        f"{deployment.sharding.gpus} GPUs beside {each:.1f} GB of weights on each"
    )


def _add(question: Question, candidate: Candidate, result: Searched) -> None:
    result.evaluated += 1
    held = candidate.replicas and within_means(question, candidate)
    (result.meeting if held else result.missing).append(candidate)


def within_means(question: Question, candidate: Candidate) -> bool:
    """Return whether an option takes no more GPUs or money than there is."""
    most = most_gpus(question, candidate.tariff)
    return most is None or candidate.gpus <= most


def most_gpus(question: Question, tariff: Tariff | None) -> int | None:
    """Return the GPUs that there are or that the budget pays; None without such a limit [-]."""
    budget = question.request.usd_per_month
    if budget is None:
        return question.request.gpus
    if tariff is None:
        return 0
    return int(budget / question.prices.usd_per_month(tariff.usd_per_gpu_hour))


def sized(
    question: Question,
    deployment: Deployment,
    engine: str | None,
    feeding: Feeding | None,
    curve: Curve,
    tariff: Tariff | None,
    transfer: float = 0.0,
) -> Candidate:
    """Return an option with the number that the demand needs; without one, that there is."""
    aim = question.wanted
    sizing = Sizing(curve, Spread.of(deployment), aim)
    load = sizing.most(question.z)
    candidate = Candidate(deployment, engine, feeding, sizing, load, 0, tariff, transfer)
    if load.served <= 0:
        return candidate
    most = most_gpus(question, tariff)
    if aim.demand:
        replicas = sizing.replicas(question.z) or 0
    elif most is None:
        replicas = 1
    else:
        replicas = _fitting(candidate, most)
    return Candidate(deployment, engine, feeding, sizing, load, replicas, tariff, transfer)


def _fitting(candidate: Candidate, most: int) -> int:
    """Return the replicas that `most` GPUs hold, with the workers that feed them [-]."""
    each = candidate.deployment.sharding.gpus
    replicas, feeding = most // each, candidate.feeding
    if feeding is None:
        return replicas
    worker = feeding.deployment.sharding.gpus
    while replicas and (
        replicas * each + feeding_workers(feeding, replicas * candidate.rate) * worker > most
    ):
        replicas -= 1
    return replicas


def _apart(
    question: Question,
    deployments: list[Deployment],
    engine: str | None,
    tariff: Tariff | None,
    result: Searched,
) -> Iterator[Candidate]:
    """Yield replicas that decode, each with the workers for prompts that feed it best.

    Workers that take longer for a prompt and more GPU time too than others are never better: of all
    pairs these are counted and passed over.
    """
    decoding = []
    for deployment in deployments:
        try:
            alone = DecodeAlone.of(deployment, question.requests)
            if alone is not None:
                decoding.append((alone, alone.workers.prompt_s, alone.workers.transfer_s))
        except ValueError as error:
            result.refuse(deployment.accelerator.id, str(error))
    plain = [row for row in decoding if row[0].deployment.speculation is None] or decoding
    ranked = sorted(
        ((one.deployment, prompt_s, one.workers) for one, prompt_s, _ in plain),
        key=lambda row: row[1],
    )
    worth, least = [], math.inf
    for deployment, prompt_s, workers in ranked:
        split = deployment.sharding
        taken = prompt_s / split.attention_dp * split.gpus
        if taken < least:
            least = taken
            worth.append(
                (Feeding(deployment, prompt_s / split.attention_dp, workers.busy), workers)
            )
    for alone, _, transfer_s in decoding:
        best: Candidate | None = None
        for feeding, workers in worth:
            before_s = workers.before_s - workers.transfer_s + transfer_s
            curve = alone.fed_by(before_s)
            share = transfer_s / float(curve.ttft_s[0])
            candidate = sized(question, alone.deployment, engine, feeding, curve, tariff, share)
            if best is None or _better(candidate, best):
                best = candidate
        result.evaluated += len(ranked) - 1
        if best is not None:
            yield best


def _better(candidate: Candidate, other: Candidate) -> bool:
    if not (candidate.replicas and other.replicas):
        return candidate.replicas > other.replicas
    return candidate.gpus / candidate.served < other.gpus / other.served
