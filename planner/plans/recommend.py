"""What to run: for a workload, which of which accelerator and how many; for a context, which batch.

Every option is searched on its curve of loads (`search`); the few that none beats in cost, GPUs and
time are evaluated as `plan` does (`winners`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from planner import answer
from planner.deployment import deployment_of
from planner.engines.support import check_version
from planner.models import get_model
from planner.models.spec import Note
from planner.plans.batches import Option, Refusal, batch_choices
from planner.plans.candidate import Candidate, within_means
from planner.plans.confirm import answer_simulated, confirmed, simulated
from planner.plans.editions import current_editions
from planner.plans.executors import mapped
from planner.plans.nearest import nearest
from planner.plans.question import Question
from planner.plans.request import RecommendationFields, RecommendationRequest, several
from planner.plans.search import Searched, search
from planner.plans.sized import RefusedOptions, Sized, SizedOption
from planner.plans.texts import note_answers
from planner.plans.winners import exact, spelled_out

if TYPE_CHECKING:
    from concurrent.futures import Executor

__all__ = ["Recommendation", "RecommendationFields", "RecommendationRequest", "recommend"]

MOST_OPTIONS = 6
"""Options of a front that are evaluated exactly, at most, beside its ends [-]."""


class Recommendation(answer.Answer):
    """What to run, and what cannot be."""

    request: RecommendationRequest
    choices: list[Option]
    """The batch on each accelerator at a context, best tokens/s per GPU first; empty where a
    workload is given."""
    refused: list[Refusal]
    sized: Sized | None = None
    """How much of what serves the workload; null without one."""
    notes: list[answer.NoteAnswer]
    """Of the model, whatever the accelerator."""
    editions: answer.Editions


def recommend(request: RecommendationRequest, executor: Executor | None = None) -> Recommendation:
    """Return what to run for a request; `executor` simulates several options at once.

    Raises ValueError naming the field where the request itself is wrong; what cannot hold the model
    or meet the limits is listed with its reason.
    """
    spec = get_model(request.model)
    for engine in several(request.engine) or (None,):
        check_version(engine, request.engine_version)
    choices: list[Option] = []
    refused: list[Refusal] = []
    if request.of_workload:
        notes = list(spec.notes)
        sizing = size(Question.of(request, spec), executor)
    else:
        choices, refused = batch_choices(request)
        notes, sizing = [*spec.notes, NO_PROMPTS], None
    return Recommendation(
        request=request,
        choices=choices,
        refused=refused,
        sized=sizing,
        notes=note_answers(notes),
        editions=current_editions(),
    )


NO_PROMPTS = Note(
    "no_prompts",
    "no isl and osl given: batches are those of decode alone, and prompts are not counted, which "
    "take most of the time where they are long",
)


def size(question: Question, executor: Executor | None = None) -> Sized:
    """Return how much of what serves a question's workload.

    `executor` simulates several options at once.
    """
    searched = search(question)
    front = [exact(question, c) for c in by_family(question, searched.meeting)]
    if question.request.confirm or question.request.of_percentiles:
        front = mapped(executor, confirmed, [question] * len(front), front)
    meeting = [c for c in front if c.replicas and within_means(question, c)]
    meeting = front_of(question, meeting)
    options = sorted(
        (spelled_out(question, c) for c in meeting),
        key=lambda o: (o.money.usd_per_month if o.money else math.inf, o.gpus),
    )
    budget = question.wanted.demand is None

    def best(value: Callable[[int], float]) -> int | None:
        scored = [(value(i), i) for i in range(len(options)) if value(i) < math.inf]
        return min(scored)[1] if scored else None

    def cost(i: int) -> float:
        money = options[i].money
        if money is None:
            return math.inf
        return money.usd_per_million_tokens if budget else money.usd_per_month

    def number(i: int) -> float:
        one = options[i]
        return one.gpus / one.output_tokens_per_s if budget else float(one.gpus)

    def time(i: int) -> float:
        return options[i].e2e_s.p50

    named = {"cheapest": best(cost), "fastest": best(time), "smallest": best(number)}
    if question.request.confirm or question.request.of_percentiles:
        places = sorted({at for at in named.values() if at is not None})
        few = [options[at] for at in places]
        for at, option in zip(
            places, mapped(executor, with_simulation, [question] * len(few), few), strict=True
        ):
            options[at] = option
    return Sized(
        evaluated=searched.evaluated,
        meeting=len(searched.meeting),
        **named,
        options=options,
        nearest=None if options else nearest(question, searched),
        staged=searched.staged,
        refused=_refused(searched),
    )


def with_simulation(question: Question, option: SizedOption) -> SizedOption:
    """Return an option with what requests see under its engine's schedule.

    Workers for prompts of their own have no schedule here: such an option stays as it is.
    """
    if option.prefill is not None:
        return option
    seen, rate = simulated(option.scenario, deployment_of(option.scenario))
    return option.model_copy(update={"simulated": answer_simulated(seen, rate, question.request)})


def _refused(searched: Searched) -> list[RefusedOptions]:
    return [
        RefusedOptions(gpu=gpu, count=count, reason=reason)
        for gpu, (count, reason) in searched.refused.items()
    ]


def by_family(question: Question, candidates: Sequence[Candidate]) -> list[Candidate]:
    """Return the fronts of options with prompts apart, of attention-DP ranks, and of others.

    The closed form knows these three unequally well, so that none may hide another before the
    schedule of each was looked at.
    """
    families: dict[str, list[Candidate]] = {}
    for candidate in candidates:
        apart = "apart" if candidate.feeding else "together"
        ranks = candidate.deployment.sharding.attention_dp > 1
        families.setdefault(f"{apart} {ranks and not candidate.feeding}", []).append(candidate)
    fronts = (thinned(front_of(question, members)) for members in families.values())
    return [candidate for front in fronts for candidate in front]


def front_of(question: Question, candidates: Sequence[Candidate]) -> list[Candidate]:
    """Return the candidates that none beats in cost, GPUs and time of a request together.

    Without a demand, cost and GPUs are per request served.
    """

    def key(candidate: Candidate) -> tuple[float, float, float]:
        per = 1.0 if question.wanted.demand else candidate.served
        tariff = candidate.tariff
        usd = tariff.usd_per_gpu_hour * candidate.gpus / per if tariff else math.inf
        return usd, candidate.gpus / per, candidate.e2e_s

    ranked = sorted(((key(c), i) for i, c in enumerate(candidates)), key=lambda row: row)
    front: list[tuple[tuple[float, float, float], Candidate]] = []
    for figures, i in ranked:
        beaten = any(all(a <= b for a, b in zip(other, figures, strict=True)) for other, _ in front)
        if not beaten:
            front.append((figures, candidates[i]))
    return [candidate for _, candidate in front]


def thinned(front: Sequence[Candidate], most: int = MOST_OPTIONS) -> list[Candidate]:
    """Return at most so many of a front, its ends and its best in GPUs and time among them."""
    if len(front) <= most:
        return list(front)
    ends = {
        0,
        min(range(len(front)), key=lambda i: front[i].gpus),
        min(range(len(front)), key=lambda i: front[i].e2e_s),
    }
    step = (len(front) - 1) / (most - 1)
    picked = [*ends, *(round(n * step) for n in range(most))]
    return [front[i] for i in sorted(dict.fromkeys(picked))][: most + len(ends)]
