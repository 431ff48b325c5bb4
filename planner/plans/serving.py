"""The serving part of a plan: a scenario's load in, the steady state with intervals out."""

from __future__ import annotations

from collections.abc import Callable
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
from planner.workload.sessions import session_hit


@dataclass(frozen=True, slots=True)
class Load:
    """What the clients of a scenario see; arrays of the shape of the clients."""

    clients: Array
    outputs: float
    """Mean output length [token]."""
    state: Steady | Disaggregated

    @property
    def occupied(self) -> Array:
        """Share of the time a replica has a request at all: less than one client is away at times
        and alone at others [-]."""
        return np.minimum(self.clients, 1.0)

    @property
    def rate(self) -> Array:
        """Requests a replica completes [1/s]."""
        return np.asarray(self.state.requests_per_s * self.occupied)

    def moved(self, start: Numeric, step: Numeric) -> tuple[Array, Array]:
        """Return TTFT [s] and requests per second where starts and steps take other times.

        `start` is a factor on TTFT of a request that finds room, `step` one on TPOT [-]. Those that
        wait for room do so as long as the others take to leave (Little 1961).
        """
        return moved(self.state, self.clients, self.outputs, start, step)


def moved(
    state: Steady | Disaggregated, clients: Array, outputs: Numeric, start: Numeric, step: Numeric
) -> tuple[Array, Array]:
    """Return TTFT [s] and requests per second of `clients` as `Load.moved` does; they broadcast."""
    start_s = (state.ttft_s - state.queued / state.requests_per_s) * start
    decoding_s = np.maximum(outputs - 1.0, 0.0) * state.tpot_s * step
    requests = (clients - state.queued) / (start_s + decoding_s)
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
    tpot_s, rate = float(load.state.tpot_s), scenario.replicas * float(load.rate)
    if scenario.requests_per_s:  # what arrives is served, as long as there is room for it
        most = under_load(scenario, deployment, room_of(scenario, deployment))
        fast, slow = (
            (ends[0], np.minimum(most.moved(*moved)[1], load.rate))
            for ends, moved in ((fast, (start_low, step_low)), (slow, (start_high, step_high)))
        )
    requests = answer.Interval(
        p10=scenario.replicas * float(slow[1]), p50=rate, p90=scenario.replicas * float(fast[1])
    )
    outputs = load.outputs
    return answer.Serving(
        concurrency=max(1, round(clients)),
        isl=_mean(isl),
        osl=_mean(osl),
        running_batch=float(load.state.running * load.occupied),
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
    """Return the requests in flight in one replica, which need not be whole [-].

    Of users, of a rate, of all in flight, or given; without, those that keep its batch decoding.
    """
    share = scenario.replicas
    if scenario.concurrency_in_all:
        return scenario.concurrency_in_all / share
    if scenario.users:
        return _of_users(scenario, deployment, scenario.users / share)
    if scenario.requests_per_s:
        wanted = scenario.requests_per_s / share
        most = room_of(scenario, deployment)
        return _solved(lambda c: under_load(scenario, deployment, c).rate - wanted, most)
    if scenario.concurrency is None and scenario.disaggregated and scenario.batch:
        return float(_workers(scenario, deployment).at(scenario.batch[-1]).clients)
    return float(scenario.concurrency or 1)


def _of_users(scenario: Scenario, deployment: Deployment, users: float) -> float:
    """Return the requests in flight of users who think between them: c + X·Z = U (Little 1961)."""
    think_s = scenario.think_time_s
    if not think_s:
        return users
    return _solved(lambda c: c + under_load(scenario, deployment, c).rate * think_s - users, users)


def room_of(scenario: Scenario, deployment: Deployment) -> float:
    """Return the sequences that one replica holds at once, at least one [-]."""
    isl, osl = moments(scenario.isl or 1), moments(scenario.osl or 1)
    room = room_for(deployment, np.asarray(isl.mean), np.asarray(osl.of_a_step))
    return max(float(room), 1.0)


def hit_of(scenario: Scenario, deployment: Deployment, clients: Numeric) -> Array:
    """Return the share of input found in the prefix cache with `clients` in flight [-].

    The one given, or that of sessions: of those whose user thinks, the cache holds as many as there
    is room for beside what runs.
    """
    if scenario.prefix_hit or (scenario.turns == 1 and not scenario.prefix_tokens):
        return np.full(np.shape(clients), scenario.prefix_hit)
    isl, osl = moments(scenario.isl or 1), moments(scenario.osl or 1)
    held: Numeric = 1.0
    if scenario.users and scenario.think_time_s:
        memory = deployment.memory
        places = memory.pool.sequences(isl.mean + osl.mean) * memory.attention_dp
        waiting = np.maximum(scenario.users / scenario.replicas - clients, 1e-9)
        held = np.clip((places - np.asarray(clients)) / waiting, 0.0, 1.0)
    hit = session_hit(isl.mean, osl.mean, scenario.turns, scenario.prefix_tokens, held)
    return np.broadcast_to(hit, np.shape(clients))


FEWEST = 1e-6
"""Requests in flight below which none is looked for [-]."""
TRIED = 24
"""Loads of one round of a search [-]."""


def _solved(excess: Callable[[Array], Array], most: float) -> float:
    """Return the load at which an excess that grows with it is zero, `most` at most [-]."""
    low, high = FEWEST, most
    while high / low > 1 + 1e-9:
        tried = np.geomspace(low, high, TRIED)
        reached = np.asarray(excess(tried) >= 0)
        if not reached.any():
            return most
        first = int(reached.argmax())
        low, high = float(tried[max(first - 1, 0)]), float(tried[first])
        if first == 0:
            break
    return high


def under_load(scenario: Scenario, deployment: Deployment, clients: Numeric) -> Load:
    """Return the steady state of a scenario's requests under `clients` clients, which broadcast."""
    isl, osl = moments(scenario.isl or 1), moments(scenario.osl or 1)
    clients = np.asarray(clients, float)
    present = np.maximum(clients, 1.0)
    state: Steady | Disaggregated
    if scenario.disaggregated:
        state = _workers(scenario, deployment).under(present, room_of(scenario, deployment))
    else:
        state = serve(deployment, present, isl, osl, hit_of(scenario, deployment, present))
    return Load(clients, osl.mean, state)


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
        prefix_hit=float(hit_of(scenario, deployment, 1.0)),
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
    notes = _session_notes(scenario, deployment)
    notes += [
        Note("length_distribution", _moments_text(name, length))
        for name, length in (("isl", scenario.isl), ("osl", scenario.osl))
        if length is not None and not isinstance(length, int)
    ]
    notes += _overload_note(scenario, deployment)
    if scenario.disaggregated:
        notes += _workers_notes(_workers(scenario, deployment))
    return notes


def _session_notes(scenario: Scenario, deployment: Deployment) -> list[Note]:
    if scenario.turns == 1 and not scenario.prefix_tokens:
        return []
    hit = float(hit_of(scenario, deployment, max(clients_of(scenario, deployment), 1.0)))
    text = f"sessions of {scenario.turns} turns: {hit:.0%} of input is found in the prefix cache"
    if not scenario.users:
        text += ", if it holds all of them: without users it is not known how many wait"
    return [Note("prefix_hit", text)]


def _overload_note(scenario: Scenario, deployment: Deployment) -> list[Note]:
    if not scenario.requests_per_s:
        return []
    most = scenario.replicas * float(
        under_load(scenario, deployment, room_of(scenario, deployment)).rate
    )
    if scenario.requests_per_s <= most:
        return []
    text = (
        f"{scenario.requests_per_s:g} requests/s arrive, {most:.3g} can be served: the queue grows "
        f"without end, and the figures are those of a full engine"
    )
    return [Note("overload", text)]


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
