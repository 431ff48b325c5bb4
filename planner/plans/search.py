"""Every option for a workload: its curve, how many of it are needed, and what they cost."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field, replace

from planner.deployment import Deployment
from planner.hw import Accelerator
from planner.plans.apart import apart
from planner.plans.batches import ANNOUNCED, candidates, wanted
from planner.plans.candidate import Candidate, sized, within_means
from planner.plans.curves import Sampled, shared_curves
from planner.plans.progress import tracked
from planner.plans.question import Question
from planner.plans.space import Axes, Refused, count_options, options


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


MOST_WHOLE = 6000
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
    groups = _grouped(question, accelerator, axes, result)
    disaggregated = question.request.disaggregated
    if question.request.of_percentiles:
        disaggregated = False  # the schedule of workers for prompts is not simulated
    samples = [(engine, sample) for (engine, *_), group in groups.items() for sample in group]
    if disaggregated is not True:
        curves = shared_curves([sample for _, sample in samples])
        for (engine, sample), curve in zip(samples, curves, strict=True):
            _add(question, sized(question, sample.deployment, engine, None, curve, tariff), result)
    for (engine, *_), group in groups.items():
        if serves(group[0].deployment) if disaggregated is None else disaggregated:
            for paired in apart(question, group, engine, tariff, result.refuse):
                result.evaluated += paired.pairs - 1
                _add(question, paired.candidate, result)


Groups = dict[tuple[str | None, str, str], list[Sampled]]
"""Options by engine and by formats of weights and cache."""


def _grouped(question: Question, accelerator: Accelerator, axes: Axes, result: Searched) -> Groups:
    """Return the options of an accelerator that can be run; others are refused."""
    groups: Groups = defaultdict(list)
    for option in options(question.spec, accelerator, axes):
        sample = option if isinstance(option, Refused) else _sampled(question, option)
        if isinstance(sample, Refused):
            result.refuse(sample.gpu, sample.reason)
            continue
        one = sample.deployment
        engine = one.engine.id if one.engine.id != "neutral" else None
        groups[engine, one.weights, one.formats.kv.id].append(sample)
    return groups


def serves(deployment: Deployment) -> bool:
    """Return whether workers for prompts are tried: under engines that were measured serving.

    Those that were measured in a benchmark's loop alone run on one machine and have no such thing.
    """
    measured = deployment.engine.measured
    return not measured or "serving" in measured


def _sampled(question: Question, deployment: Deployment) -> Sampled | Refused:
    """Return a deployment with the times its curve rests on, or why there are none."""
    gpu = deployment.accelerator.id
    try:
        sample = Sampled.of(deployment, question.requests)
        if sample is None:
            return Refused(gpu, no_room(question, deployment))
        _ = sample.prompts, sample.tpot_s  # which find what is not on record
    except ValueError as error:
        return Refused(gpu, str(error))
    return sample


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
