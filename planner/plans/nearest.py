"""Where no option meets the limits: the one that comes nearest, and what to relax by how much."""

from __future__ import annotations

import math
from dataclasses import replace

from planner.plans.candidate import Candidate
from planner.plans.question import Question
from planner.plans.search import Searched
from planner.plans.sized import Nearest, Relaxation
from planner.plans.winners import exact, spelled_out

FIELDS = {"ttft": "ttft_ms", "tpot": "tpot_ms", "e2e": "e2e_ms"}
"""Field of the limit on each quantity."""


def nearest(question: Question, searched: Searched) -> Nearest | None:
    """Return the option that is nearest to the limits, None where nothing could be evaluated.

    Where the limits could be met with more GPUs or money, that with the fewest; else that which
    misses its worst limit by the least, one request in flight.
    """
    short = [c for c in searched.missing if c.replicas]
    if short:
        return _too_few(question, min(short, key=lambda c: c.gpus))
    alone = [c for c in searched.missing if c.load.served <= 0]
    if alone:
        return _too_slow(question, min(alone, key=lambda c: c.worst(question.z)))
    held = [c for c in searched.missing if c.load.served > 0]
    if held:  # without a demand, not one replica fits what there is
        one = min(held, key=lambda c: c.deployment.sharding.gpus)
        return _too_few(question, replace(one, replicas=1))
    return None


def _too_few(question: Question, candidate: Candidate) -> Nearest:
    option = spelled_out(question, candidate)
    most = question.most_gpus(candidate.tariff) or 0
    if question.request.usd_per_month is not None:
        needed = option.money.usd_per_month if option.money else math.inf
        relax = (
            [Relaxation(field="usd_per_month", given=question.request.usd_per_month, needed=needed)]
            if math.isfinite(needed)
            else []
        )
        text = f"the limits need ${needed:,.0f} a month: {option.summary}"
    else:
        relax = [Relaxation(field="gpus", given=most, needed=option.gpus)]
        text = f"the limits need {option.gpus} GPUs, {most} are there: {option.summary}"
    return Nearest(text=text, option=option, relax=relax)


def _too_slow(question: Question, candidate: Candidate) -> Nearest:
    candidate = exact(question, candidate)
    excess = {name: float(r[0]) for name, r in candidate.sizing.excess(question.z).items()}
    limits = candidate.sizing.wanted.limits_s
    relax = [
        Relaxation(
            field=FIELDS[name], given=limits[name] * 1e3, needed=_up(limits[name] * ratio * 1e3)
        )
        for name, ratio in excess.items()
        if ratio > 1
    ]
    option = spelled_out(question, candidate)
    wishes = " and ".join(f"{r.field} from {r.given:g} to {r.needed:g}" for r in relax)
    text = (
        f"no option meets the limits, even with one request in flight; nearest is {option.gpu} at "
        f"{option.summary.split(' = ')[-1].split(', ')[0]}: relax {wishes}"
    )
    return Nearest(text=text, option=option, relax=relax)


def _up(value: float) -> float:
    """Return a value rounded up to three digits, so that it holds."""
    step = 10.0 ** (math.floor(math.log10(value)) - 2)
    return math.ceil(value / step - 1e-9) * step
