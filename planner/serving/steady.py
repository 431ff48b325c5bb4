"""The steady state of an engine that batches continuously, under closed-loop load.

C clients each keep one request in flight, of which the pool holds A. X requests a second are
completed, so that prompts keep the engine busy a share ρ = X·t_prompt of the time; seen by one of A
clients, the others do so (A − 1)/A of that.

    TTFT = first + layer·layers + t_prompt + burst·(B − 1)·t_prompt + wait·t_step
           + (A − 1)/A·ρ/(1 − (1 − 1/(2A))·ρ)·t_prompt/2
    TPOT = t_decode(B)/(1 − (1 − burst)·(A − 1)/A·ρ)
    X = A/(TTFT + (OSL − 1)·TPOT), B = X·(OSL − 1)·TPOT

A prompt holds up all that decode, so that decoding gets what prompts leave of the engine; the last
term of TTFT is the queue for it, M/D/1 (Pollaczek 1930, Khinchin 1932) for many clients and such
for few that ρ is one where they do nothing but prompts; no load exceeds it. All clients of a
benchmark start at once, and in the first of its R rounds a request waits for half of the prompts on
average: burst is 1/(2R), R = 10 being usual. That is where lengths differ and the clients spread;
equal lengths keep them in step, and `ahead` and `together` more prompts stand before each request.
The C − A clients without room wait as long as the others take to leave (Little 1961), which
lengthens TTFT and leaves TPOT as it is.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from planner.deployment import Deployment
from planner.engines.memory import Memory
from planner.roofline import Array, Numeric
from planner.workload.lengths import Lengths

ROUNDS = 12
"""Iterations on the running batch at most; each shrinks the error several times over [-]."""

NEWTON = 8
"""Iterations on the prompts' share of the engine, from above: the error is squared by each [-]."""


@dataclass(frozen=True, slots=True)
class Queueing:
    """How an engine lets requests in; figures of the calibration."""

    first_s: float
    """Time a request takes beside its prompt: receiving, tokenising, sending, and what every layer
    adds to the first token, however short the prompt [s]."""
    burst: float
    """Share of the other clients' prompts that stand before a new one, on average [-]."""
    wait: float
    """Tokens of a sequence a new request waits for, those of a step together, on average [-]."""
    ahead: float = 0.0
    """Prompts of clients in step with a new request that stand before it [-]."""
    together: float = 0.0
    """Share of all clients that is in step and stands before a new request besides [-]."""
    scale: Numeric = 1.0
    """Factor on TTFT but for what waits for room, of measurements of one's own [-]."""

    @classmethod
    def of(cls, deployment: Deployment) -> Queueing:
        """Return the figures of a deployment."""
        figures, subject = deployment.calibration, deployment.subject
        first, layer, burst, wait, ahead, together = (
            figures.number(name, subject) for name in ARRIVAL
        )
        return cls(
            first + layer * deployment.spec.layers,
            burst,
            wait * deployment.tokens_per_step,
            ahead,
            together,
            figures.scale(subject, START),
        )

    def before(self, running: Array) -> Array:
        """Return the prompts that stand before a new one among `running` sequences [-]."""
        running = np.maximum(running, 1.0)
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
    """Time a sequence's token takes without prompts [s]."""
    prompts: Prompts
    prompt_share: Array
    """Share of the time in which the engine runs prompts, ρ [-]."""
    queue_s: Array
    """Time a prompt waits for others', those that stand before it by bunching aside."""
    tpot_s: Array
    ttft_s: Array
    requests_per_s: Array
    """Requests completed: a client's next starts as its last ends."""


def steady_state(
    decode_s: Callable[[Array], Array],
    prompts: Prompts,
    concurrency: Numeric,
    osl: Numeric,
    room: Numeric,
    queueing: Queueing,
) -> Steady:
    """Return the steady state of `concurrency` clients.

    `decode_s` gives the time of a sequence's next token at a batch [s]; `room` is the sequences the
    engine holds at once. Arrays broadcast.
    """
    clients, osl, room = np.broadcast_arrays(
        np.asarray(concurrency, float), np.asarray(osl, float), np.asarray(room, float)
    )
    admitted = np.minimum(clients, np.maximum(room, 1.0))
    others, steps = (admitted - 1.0) / admitted, np.maximum(osl - 1.0, 0.0)
    held = (1.0 - queueing.burst) * others
    finite = 1.0 - 0.5 / admitted
    wanted, queue_s = admitted * prompts.held_s, others * np.asarray(prompts.held_s) / 2
    share = step = start_s = np.zeros_like(clients)
    running = admitted
    for _ in range(ROUNDS):
        step = decode_s(np.maximum(running, 1.0))
        before_s = queueing.before(running) * prompts.bunched_s + queueing.wait * step
        start_s = queueing.scale * (queueing.first_s + prompts.own_s + before_s)
        share = prompt_share(wanted, start_s, steps * step, held, queueing.scale * queue_s, finite)
        last, running = running, share / prompts.held_s * steps * step / (1.0 - held * share)
        if np.allclose(last, running, rtol=1e-3):
            break
    requests = share / prompts.held_s
    queue_s = queue_s * share / (1.0 - finite * share)
    queued = clients - admitted
    return Steady(
        running=np.asarray(running),
        queued=np.asarray(queued),
        decode_s=np.asarray(step),
        prompts=prompts,
        prompt_share=np.asarray(share),
        queue_s=np.asarray(queue_s),
        tpot_s=np.asarray(step / (1.0 - held * share)),
        ttft_s=np.asarray(start_s + queueing.scale * queue_s + queued / requests),
        requests_per_s=np.asarray(requests),
    )


def prompt_share(
    wanted_s: Array, start_s: Array, steps_s: Array, held: Array, queue_s: Array, finite: Array
) -> Array:
    """Return the share ρ of the time in which an engine runs prompts [-], at most one.

    It is the root of ρ·(start + steps/(1 − held·ρ) + queue·ρ/(1 − finite·ρ)) = wanted, the time of
    all clients' prompts. The left side grows and is convex, so that Newton's method from above
    stays above the root; it starts where one of the terms alone would make up the cycle.
    """
    ratio = wanted_s / np.maximum(queue_s, 1e-12 * wanted_s)
    queue_alone = 2.0 / (finite + np.sqrt(finite**2 + 4.0 / ratio))
    steps_alone = wanted_s / (steps_s + held * wanted_s + 1e-12 * wanted_s)
    share = np.minimum(wanted_s / (start_s + steps_s), 1.0)
    share = np.minimum(np.minimum(share, queue_alone), steps_alone)
    for _ in range(NEWTON):
        free, left = 1.0 - held * share, 1.0 - finite * share
        cycle = start_s + steps_s / free + queue_s * share / left
        slope = cycle + share * (steps_s * held / free**2 + queue_s / left**2)
        share = share - (share * cycle - wanted_s) / slope
    return np.asarray(np.minimum(share, 1.0))


def serve(
    deployment: Deployment,
    concurrency: Numeric,
    isl: Numeric | Lengths,
    osl: Numeric | Lengths,
    prefix_hit: float = 0.0,
    room: Numeric | None = None,
) -> Steady:
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
    return steady_state(
        lambda running: deployment.time_s(running, context),
        prompts_of(deployment, isl, prefix_hit, of_a_token),
        clients,
        osl,
        room_for(deployment, isl, of_a_step) if room is None else room,
        Queueing.of(deployment),
    )


def prompts_of(
    deployment: Deployment, isl: Array, prefix_hit: float = 0.0, of_a_token: Array | None = None
) -> Prompts:
    """Return the times of prompts of `isl` tokens on average, which broadcast [s].

    `of_a_token` is the length of the prompt a random token belongs to, `isl` by default.
    """
    ranks = deployment.sharding.attention_dp
    own_s = deployment.prompt_time_s(isl, ranks, prefix_hit, of_a_token)
    together = np.maximum(np.floor(deployment.engine.chunk_tokens / isl), 1.0) * ranks
    bunched_s = deployment.prompt_time_s(isl, together, prefix_hit, of_a_token) / together
    return Prompts(own_s, own_s / ranks, bunched_s)


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
    return memory.max_batch(np.asarray(isl + deployment.engine.output_reserved * osl, float))
