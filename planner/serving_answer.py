"""The serving part of a plan: a scenario's load in, the steady state with intervals out."""

from __future__ import annotations

import numpy as np

from planner import answer
from planner.distributions import Length, moments
from planner.models.spec import Note
from planner.resolve import Deployment
from planner.roofline import Array, Numeric
from planner.scenario import Scenario
from planner.serving import Steady, room_for, serve


def answer_serving(scenario: Scenario, deployment: Deployment) -> answer.Serving | None:
    """Return the serving part of a plan, or None where the question was not asked."""
    clients, isl, osl = scenario.concurrency, scenario.isl, scenario.osl
    if clients is None or isl is None or osl is None:
        return None
    state = under_load(scenario, deployment, clients)
    outputs = _mean(osl)
    requests = float(state.requests_per_s(clients, outputs)) * scenario.replicas

    def interval(quantity: str, seconds: Array) -> answer.Interval:
        middle = float(seconds)
        low, high = deployment.interval(quantity)
        return answer.Interval(p10=middle * low, p50=middle, p90=middle * high)

    return answer.Serving(
        concurrency=clients,
        isl=_mean(isl),
        osl=outputs,
        running_batch=float(state.running),
        queued=float(state.queued),
        ttft_s=interval("ttft", state.ttft_s),
        tpot_s=interval("tpot", state.tpot_s),
        output_tokens_per_s=requests * outputs,
        requests_per_s=requests,
    )


def under_load(scenario: Scenario, deployment: Deployment, clients: Numeric) -> Steady:
    """Return the steady state of a scenario's requests under `clients` clients, which broadcast.

    A sequence is in the pool as long as it has steps, so long outputs are met more often there:
    room is that for inputs of mean and outputs of length-weighted mean length.
    """
    isl, osl = moments(scenario.isl or 1), moments(scenario.osl or 1)
    room = room_for(deployment, np.asarray(isl.mean), np.asarray(osl.of_a_step))
    return serve(deployment, clients, isl, osl, scenario.prefix_hit, room)


def serving_notes(scenario: Scenario) -> list[Note]:
    """Say which moments stand for lengths that are not all equal."""
    return [
        Note("length_distribution", _moments_text(name, length))
        for name, length in (("isl", scenario.isl), ("osl", scenario.osl))
        if length is not None and not isinstance(length, int)
    ]


def _moments_text(name: str, length: Length) -> str:
    found = moments(length)
    of = "token of an input" if name == "isl" else "step of an output"
    return (
        f"{name}: {found.mean:.6g} tokens on average; a random {of} belongs to one of "
        f"{found.of_a_step:.6g}"
    )


def _mean(length: Length) -> int | float:
    return length if isinstance(length, int) else moments(length).mean
