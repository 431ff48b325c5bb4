"""Replicas that only decode, each with the workers for prompts that feed it best."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from planner.plans.candidate import Candidate, Feeding, sized
from planner.plans.curves import DecodeAlone, Sampled, decoding_alone
from planner.plans.money import Tariff
from planner.plans.question import Question
from planner.plans.uncertainty import Spread
from planner.roofline import Array


@dataclass(frozen=True, slots=True)
class Paired:
    """A candidate, and the pairs of workers that it is the best of."""

    candidate: Candidate
    pairs: int


@dataclass(frozen=True, slots=True, eq=False)
class PromptWorkers:
    """Workers for prompts that are worth trying: the longer a prompt takes, the less GPU time."""

    feeding: tuple[Feeding, ...]
    before_s: Array
    """Time from a request's arrival to its cache's, transfer aside, shape (worker, 1) [s]."""
    taken_s: Array
    """GPU time of a request at the busy share, shape (worker, 1) [s]."""

    @classmethod
    def of(cls, decoding: Sequence[DecodeAlone]) -> PromptWorkers:
        """Return those of the same deployments that none beats in both, without speculation."""
        plain = [one for one in decoding if one.deployment.speculation is None] or decoding
        feeding, before, taken, least = [], [], [], math.inf
        for one in sorted(plain, key=lambda one: one.workers.prompt_s):
            split, workers = one.deployment.sharding, one.workers
            prompt_s = workers.prompt_s / split.attention_dp
            if prompt_s * split.gpus < least:
                least = prompt_s * split.gpus
                feeding.append(Feeding(one.deployment, prompt_s, workers.busy))
                before.append([workers.before_s - workers.transfer_s])
                taken.append([least / workers.busy])
        return cls(tuple(feeding), np.array(before), np.array(taken))


def apart(
    question: Question,
    samples: Sequence[Sampled],
    engine: str | None,
    tariff: Tariff | None,
    refuse: Callable[[str, str], None],
) -> Iterator[Paired]:
    """Yield every replica that decodes with the workers for prompts that feed it best.

    All are of one accelerator, engine and formats. Workers that take longer for a prompt and more
    GPU time too than others are never better; of the rest, those are passed over whose bound on
    GPUs is above what the best so far takes.
    """
    decoding = []
    for alone in decoding_alone(samples):
        try:
            _ = alone.workers.prompt_s, alone.workers.transfer_s
        except ValueError as error:
            refuse(alone.deployment.accelerator.id, str(error))
        else:
            decoding.append(alone)
    if not decoding:
        return
    workers = PromptWorkers.of(decoding)
    plain = sum(one.deployment.speculation is None for one in decoding) or len(decoding)
    for alone in decoding:
        yield Paired(_best(question, alone, workers, engine, tariff), plain)


def _best(
    question: Question,
    alone: DecodeAlone,
    workers: PromptWorkers,
    engine: str | None,
    tariff: Tariff | None,
) -> Candidate:
    transfer_s = alone.workers.transfer_s
    before_s = workers.before_s + transfer_s
    bounds = least_gpus(question, alone, before_s, workers.taken_s)
    best: Candidate | None = None
    for at in np.argsort(bounds, kind="stable"):
        if best is not None and best.replicas and bounds[at] >= best.gpus / best.served:
            break
        curve = alone.fed_by(float(before_s[at, 0]))
        share = transfer_s / float(curve.ttft_s[0])
        feeding = workers.feeding[at]
        candidate = sized(question, alone.deployment, engine, feeding, curve, tariff, share)
        if best is None or _better(candidate, best):
            best = candidate
    if best is None:
        raise AssertionError("some worker is worth trying")
    return best


def least_gpus(question: Question, alone: DecodeAlone, before_s: Array, taken_s: Array) -> Array:
    """Return a lower bound on the GPUs per unit of demand, by worker for prompts; shape (worker,).

    A replica of g GPUs at its largest load within the limits serves s and takes the prompts of X
    requests per second, which take `taken_s` of GPU time each: (g + X·taken)/s, before numbers of
    workers and replicas are rounded up. That load lies between two of the curve, between which X
    and s are monotone. Infinite where one request misses a limit; arguments of shape (worker, 1).
    """
    start, step = Spread.of(alone.deployment).at(question.z)
    curve, wanted = alone.curve, question.wanted
    clients = curve.running + curve.requests_per_s * before_s
    decoding_s = curve.output_steps * curve.tpot_s
    ttft_s = before_s + curve.tpot_s
    times = {
        "ttft": ttft_s * start,
        "tpot": np.broadcast_to(curve.tpot_s * step, ttft_s.shape),
        "e2e": ttft_s * start + decoding_s * step,
    }
    within = np.ones(ttft_s.shape, dtype=bool)
    for name, limit_s in wanted.limits_s.items():
        within &= times[name] <= limit_s * (1 + 1e-12)
    missed = np.argmin(np.pad(within, ((0, 0), (0, 1))), axis=1)
    rate = clients / (ttft_s + decoding_s)
    served = _served(question, clients, clients / times["e2e"])
    rows, last = np.arange(len(missed)), ttft_s.shape[1] - 1
    ends = np.stack([np.maximum(missed - 1, 0), np.minimum(missed, last)])
    least, most = rate[rows, ends].min(axis=0), served[rows, ends].max(axis=0)
    gpus = alone.deployment.sharding.gpus + least * taken_s[:, 0]
    return np.asarray(np.where(missed > 0, gpus / most, np.inf))


def _served(question: Question, clients: Array, rate: Array) -> Array:
    """Return what replicas serve in the demand's unit, see `Sizing.served` [-]."""
    if question.wanted.demand == "concurrency_in_all":
        return clients
    return clients + rate * question.wanted.think_s if question.wanted.demand == "users" else rate


def _better(candidate: Candidate, other: Candidate) -> bool:
    if not (candidate.replicas and other.replicas):
        return candidate.replicas > other.replicas
    return candidate.gpus / candidate.served < other.gpus / other.served
