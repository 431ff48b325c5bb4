"""The steady state of an engine that batches continuously, under closed-loop load.

C clients each keep one request in flight. While a running sequence makes its OSL tokens, each of
the other B − 1 slots starts one request. Part of those prompts, `burst`, stands before a new
request, the rest holds up the decoding:

    TTFT = first + layer·layers + t_prompt + burst·(B − 1)·t_prompt + wait·t_decode
    TPOT = t_decode(B) + (1 − burst)·(B − 1)·t_prompt/OSL

so that work is conserved: TTFT + OSL·TPOT counts every prompt and every step once. All clients of a
benchmark start at once, and in the first of its R rounds a request waits for half of the prompts on
average: burst is 1/(2R), R = 10 being usual. That is where lengths differ and the clients spread;
equal lengths keep them in step, and `ahead` and `together` more prompts stand before each request.
A client is in
the running batch for OSL·TPOT of every TTFT + OSL·TPOT; B is the clients there, and no more than
the cache pool holds: the rest queue, which lengthens TTFT and leaves TPOT as it is.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from planner.lengths import Lengths
from planner.memory import Memory
from planner.prefill import prompt_work
from planner.resolve import Deployment
from planner.roofline import Array, Numeric

ROUNDS = 6
"""Iterations on the running batch; each shrinks the error several times over [-]."""


@dataclass(frozen=True, slots=True)
class Queueing:
    """How an engine lets requests in; figures of the calibration."""

    first_s: float
    """Time a request takes beside its prompt: receiving, tokenising, sending, and what every layer
    adds to the first token, however short the prompt [s]."""
    burst: float
    """Share of the other clients' prompts that stand before a new one, on average [-]."""
    wait: float
    """Decode steps a new request waits for, on average [-]."""
    ahead: float = 0.0
    """Prompts of clients in step with a new request that stand before it [-]."""
    together: float = 0.0
    """Share of all clients that is in step and stands before a new request besides [-]."""
    scale: float = 1.0
    """Factor on TTFT but for what waits for room, of measurements of one's own [-]."""

    @classmethod
    def of(cls, deployment: Deployment) -> Queueing:
        """Return the figures of a deployment."""
        figures, subject = deployment.figures, deployment.subject
        first, layer, burst, wait, ahead, together = (
            figures.number(name, subject) for name in ARRIVAL
        )
        return cls(
            first + layer * deployment.spec.layers, burst, wait, ahead, together,
            figures.scale(subject, START),
        )  # fmt: skip

    def before(self, running: Array) -> Array:
        """Return the prompts that stand before a new one among `running` sequences [-]."""
        others = running - 1.0
        in_step = self.ahead * others / running + self.together * others
        return np.asarray(np.minimum(in_step + self.burst * others, others))


START = "start"
"""Kind of the scale on TTFT."""

ARRIVAL = ("first", "layer", "burst", "wait", "ahead", "together")


@dataclass(frozen=True, slots=True)
class Prompts:
    """Times of prompts [s]."""

    own_s: Numeric
    """What a prompt's own client waits for it."""
    held_s: Numeric
    """What a prompt alone takes from the decoding."""
    bunched_s: Numeric
    """What one of many takes that fill the tokens a step may hold together."""


@dataclass(frozen=True, slots=True)
class Steady:
    """The steady state; arrays of the shape of the question."""

    running: Array
    """Sequences decoding at once [-]."""
    queued: Array
    """Clients that wait for room in the pool [-]."""
    decode_s: Array
    """Time of a step without prompts [s]."""
    prompts: Prompts
    tpot_s: Array
    ttft_s: Array

    def requests_per_s(self, concurrency: Numeric, osl: Numeric) -> Array:
        """Return the requests completed per second: a client's next starts as its last ends."""
        return np.asarray(concurrency / (self.ttft_s + np.maximum(osl - 1.0, 1.0) * self.tpot_s))


def steady_state(
    decode_s: Callable[[Array], Array],
    prompts: Prompts,
    concurrency: Numeric,
    osl: Numeric,
    room: Numeric,
    queueing: Queueing,
) -> Steady:
    """Return the steady state of `concurrency` clients.

    `decode_s` gives the time of a decode step at a batch [s]; `room` is the sequences the engine
    holds at once. Arrays broadcast.
    """
    clients, osl, room = np.broadcast_arrays(
        np.asarray(concurrency, float), np.asarray(osl, float), np.asarray(room, float)
    )
    admitted = np.minimum(clients, np.maximum(room, 1.0))
    steps = np.maximum(osl - 1.0, 1.0)
    running = admitted
    step = tpot = ttft = busy = np.zeros_like(clients)
    for _ in range(ROUNDS):
        step = decode_s(running)
        tpot = step + (1.0 - queueing.burst) * (running - 1.0) * prompts.held_s / osl
        waited = queueing.before(running) * prompts.bunched_s + queueing.wait * step
        ttft = queueing.scale * (queueing.first_s + prompts.own_s + waited)
        busy = steps * tpot
        last, running = running, np.maximum(admitted * busy / (busy + ttft), 1.0)
        if np.allclose(last, running, rtol=1e-3):
            break
    queued = clients - admitted
    cycle = busy + ttft
    return Steady(
        running=np.asarray(running),
        queued=np.asarray(queued),
        decode_s=np.asarray(step),
        prompts=prompts,
        tpot_s=np.asarray(tpot),
        ttft_s=np.asarray(ttft + queued / admitted * cycle),
    )


def serve(
    deployment: Deployment, concurrency: Numeric, isl: Numeric | Lengths, osl: Numeric | Lengths,
    prefix_hit: float = 0.0, room: Numeric | None = None,
) -> Steady:  # fmt: skip
    """Return the steady state of a deployment under `concurrency` clients; arrays broadcast.

    `isl` and `osl` are lengths [token], or distributions of them. Prompts run one on every
    attention-DP rank at a time. A sequence is at half its output on average, which is the context
    of a step; `room` is the sequences held at once, by default what the engine's pool has place
    for: longer outputs are met there more often, as long as they have steps.
    """
    (isl, of_a_token), (osl, of_a_step) = (_moments(lengths) for lengths in (isl, osl))
    clients, isl, osl, of_a_token, of_a_step = np.broadcast_arrays(
        np.asarray(concurrency, float), isl, osl, of_a_token, of_a_step
    )
    context = isl + of_a_step / 2
    ranks = deployment.sharding.attention_dp
    work = prompt_work(deployment.prompt, isl, ranks, prefix_hit, of_a_token)
    prompt = deployment.prompt_machine.time(work).total_s
    together = np.maximum(np.floor(deployment.engine.chunk_tokens / isl), 1.0) * ranks
    many = prompt_work(deployment.prompt, isl, together, prefix_hit, of_a_token)
    bunched = deployment.prompt_machine.time(many).total_s / together
    return steady_state(
        lambda running: deployment.time_s(running, context),
        Prompts(prompt, prompt / ranks, bunched), clients, osl,
        room_for(deployment, isl, of_a_step) if room is None else room,
        Queueing.of(deployment),
    )  # fmt: skip


def _moments(lengths: Numeric | Lengths) -> tuple[Array, Array]:
    """Mean length, and length of the sequence a random token or step belongs to [token]."""
    if isinstance(lengths, Lengths):
        return np.asarray(lengths.mean), np.asarray(lengths.of_a_step)
    return np.asarray(lengths, float), np.asarray(lengths, float)


def room_for(deployment: Deployment, isl: Array, osl: Array, memory: Memory | None = None) -> Array:
    """Return the sequences the replica's pools hold at once [-].

    An engine that never evicts keeps place for the whole output of a sequence; one that may evict
    has sequences at half their output on average.
    """
    memory = memory or deployment.memory
    lengths = np.ravel(isl + deployment.engine.output_reserved * osl)
    fits = [memory.max_batch(float(length)) for length in lengths]
    return np.array(fits, dtype=float).reshape(np.shape(isl))
