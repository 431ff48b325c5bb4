"""The serving part of a plan: a scenario's load in, the steady state with intervals out."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from planner import answer
from planner.deployment import Deployment, deploy, prompt_options
from planner.errors import InvalidInput
from planner.models.spec import Note
from planner.roofline import Array, Numeric
from planner.scenario import DisaggregationOptions, Scenario
from planner.serving.disaggregation import Disaggregated, Workers
from planner.serving.steady import Steady, room_for, serve
from planner.step.parallel import Sharding
from planner.workload.distributions import Length, moments


@dataclass(frozen=True, slots=True)
class Load:
    """What the clients of a scenario see; arrays of the shape of the clients."""

    clients: Array
    outputs: float
    """Mean output length [token]."""
    state: Steady | Disaggregated

    def moved(self, start: Numeric, step: Numeric) -> tuple[Array, Array]:
        """Return TTFT [s] and requests per second where starts and steps take other times.

        `start` is a factor on TTFT of a request that finds room, `step` one on TPOT [-]. Those that
        wait for room do so as long as the others take to leave (Little 1961).
        """
        state = self.state
        start_s = (state.ttft_s - state.queued / state.requests_per_s) * start
        decoding_s = np.maximum(self.outputs - 1.0, 0.0) * state.tpot_s * step
        requests = (self.clients - state.queued) / (start_s + decoding_s)
        return np.asarray(start_s + state.queued / requests), np.asarray(requests)


def answer_serving(scenario: Scenario, deployment: Deployment) -> answer.Serving | None:
    """Return the serving part of a plan, or None for a scenario without lengths.

    The ends of its intervals are those of TTFT and TPOT together, rates those of the other end.
    """
    isl, osl = scenario.isl, scenario.osl
    if isl is None or osl is None:
        return None
    clients = clients_of(scenario, deployment)
    load = under_load(scenario, deployment, clients)
    (start_low, start_high), (step_low, step_high) = (
        deployment.interval(quantity) for quantity in ("ttft", "tpot")
    )
    fast, slow = load.moved(start_low, step_low), load.moved(start_high, step_high)
    tpot_s, rate = float(load.state.tpot_s), scenario.replicas * float(load.state.requests_per_s)
    requests = answer.Interval(
        p10=scenario.replicas * float(slow[1]), p50=rate, p90=scenario.replicas * float(fast[1])
    )
    outputs = load.outputs
    return answer.Serving(
        concurrency=max(1, round(clients)),
        isl=_mean(isl),
        osl=_mean(osl),
        running_batch=float(load.state.running),
        queued=float(load.state.queued),
        ttft_s=answer.Interval(
            p10=float(fast[0]), p50=float(load.state.ttft_s), p90=float(slow[0])
        ),
        tpot_s=answer.Interval(p10=tpot_s * step_low, p50=tpot_s, p90=tpot_s * step_high),
        output_tokens_per_s=rate * outputs,
        output_tokens_per_s_interval=requests.times(outputs),
        requests_per_s=rate,
        requests_per_s_interval=requests,
        disaggregated=_workers_answer(scenario, deployment, load.state),
    )


def clients_of(scenario: Scenario, deployment: Deployment) -> float:
    """Return the scenario's clients; without, those that keep its batch decoding."""
    if scenario.concurrency is None and scenario.disaggregated and scenario.batch:
        return float(_workers(scenario, deployment).at(scenario.batch[-1]).clients)
    return float(scenario.concurrency or 1)


def under_load(scenario: Scenario, deployment: Deployment, clients: Numeric) -> Load:
    """Return the steady state of a scenario's requests under `clients` clients, which broadcast."""
    isl, osl = moments(scenario.isl or 1), moments(scenario.osl or 1)
    state: Steady | Disaggregated
    if scenario.disaggregated:
        room = room_for(deployment, np.asarray(isl.mean), np.asarray(osl.of_a_step))
        state = _workers(scenario, deployment).under(clients, room)
    else:
        state = serve(deployment, clients, isl, osl, scenario.prefix_hit)
    return Load(np.asarray(clients, float), osl.mean, state)


def _workers(scenario: Scenario, deployment: Deployment) -> Workers:
    """Return the workers of a disaggregated scenario; errors name the field as `resolve` does."""
    workers = scenario.disaggregated or DisaggregationOptions()
    split = Sharding(
        workers.tp or scenario.tp,
        workers.pp or scenario.pp,
        workers.ep or scenario.ep,
        workers.attention_dp or scenario.attention_dp,
    )
    try:
        prefill = deploy(deployment.spec, deployment.accelerator, split, prompt_options(scenario))
    except InvalidInput as error:
        raise InvalidInput(f"disaggregated.{error}") from error
    return Workers(
        prefill=prefill,
        decode=deployment,
        isl=moments(scenario.isl or 1),
        osl=moments(scenario.osl or 1),
        busy=workers.busy,
        transfer_bytes_per_s=workers.transfer_bytes_per_s,
        prefix_hit=scenario.prefix_hit,
    )


def _workers_answer(
    scenario: Scenario, deployment: Deployment, state: Steady | Disaggregated
) -> answer.DisaggregationAnswer | None:
    if not isinstance(state, Disaggregated):
        return None
    workers, ratio = _workers(scenario, deployment), float(state.prefill_per_decode)
    gpus = (workers.prefill.sharding.gpus, deployment.sharding.gpus)
    return answer.DisaggregationAnswer(
        prefill_per_decode=ratio,
        gpus_per_prefill=gpus[0],
        gpus_per_decode=gpus[1],
        gpus=scenario.replicas * (ratio * gpus[0] + gpus[1]),
        transfer_s=workers.transfer_s,
        output_tokens_per_s_per_gpu=float(state.output_tokens_per_s_per_gpu),
    )


def serving_notes(scenario: Scenario, deployment: Deployment) -> list[Note]:
    """Say which moments stand for lengths that are not all equal, and what workers rest on."""
    notes = [
        Note("length_distribution", _moments_text(name, length))
        for name, length in (("isl", scenario.isl), ("osl", scenario.osl))
        if length is not None and not isinstance(length, int)
    ]
    if scenario.disaggregated:
        notes += _workers_notes(_workers(scenario, deployment))
    return notes


def _workers_notes(workers: Workers) -> list[Note]:
    notes = []
    if workers.transfer_bytes_per_s is None:
        gpu = workers.decode.accelerator
        text = f"caches are taken to move over the link of one {gpu.id}, {gpu.link.name}"
        notes.append(Note("assumed_transfer", text))
    if workers.prefill.memory.max_batch(workers.isl.mean) < 1:
        text = f"not one prompt of {workers.isl.mean:.6g} tokens fits a prefill worker"
        notes.append(Note("prefill_does_not_fit", text))
    return notes


def _moments_text(name: str, length: Length) -> str:
    lengths = moments(length)
    of = "token of an input" if name == "isl" else "step of an output"
    return (
        f"{name}: {lengths.mean:.6g} tokens on average; a random {of} belongs to one of "
        f"{lengths.of_a_step:.6g}"
    )


def _mean(length: Length) -> int | float:
    return length if isinstance(length, int) else moments(length).mean
