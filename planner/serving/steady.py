"""The steady state of an engine that batches continuously, under closed-loop load.

C clients each keep one request in flight, of which the pool holds A; B of them decode at once, and
OSL − 1 steps after its first token a request ends, so that x = B/(OSL − 1) prompts begin a step.

    TPOT = t_decode(B) + (1 − burst)·(A − 1)/A·x·t_prompt(B)
    TTFT = first + own + burst·(B − 1)·t_prompt + wait·t_decode
           + (A − 1)/A·ρ/(1 − (1 − 1/(2A))·f)·t_prompt/2
    B = A·(OSL − 1)·TPOT/(TTFT + (OSL − 1)·TPOT)

t_prompt is what a prompt adds to the steps it rides on (`prompts`), or a step of its own where the
engine alternates; ρ = x·t_prompt/TPOT is the share of the time that prompts take, of which one that
arrives waits for the rest. Steps hold so many tokens, and prompts fill the share f = x·tokens/most
of them: the queue for steps is that of an M/D/1 server (Pollaczek 1930, Khinchin 1932), with the
few clients that keep it finite at f = 1. An engine that alternates takes all prompts first: f = 0.
Counted in steps rather than in seconds, what saturates is one share that stays below one, and TPOT
never exceeds a full step.

All clients of a benchmark start at once, and in the first of its R rounds a request waits for half
of the prompts on average: burst is 1/(2R), R = 10 being usual. That is where lengths differ and the
clients spread. Equal lengths keep clients in step, as far as the engine lets them: one that stops
decoding for all prompts answers them together, so that they end and return together and half of the
others stand before each; one that mixes answers one prompt after another, so that they return one
after another, each behind the last. The C − A clients without room wait as long as the others take
to leave (Little 1961), which lengthens TTFT and leaves TPOT as it is.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from planner.deployment import Deployment
from planner.engines.memory import Memory
from planner.roofline import Array, Numeric
from planner.serving.prompts import PromptLoad, Prompts
from planner.workload.lengths import Lengths

ROUNDS = 40
"""Iterations on the running batch at most [-]."""

NEAR = 1e-4
"""Error of the logarithm of the running batch at which they end [-]."""

LARGEST = 40.0
"""Largest logit of the share of the clients that decode [-]."""

FEWEST_STEPS = 1e-3
"""Steps after the first token of a request that has no other, so that it has a TPOT [-]."""


@dataclass(frozen=True, slots=True)
class Queueing:
    """How an engine lets requests in; figures of the calibration."""

    first_s: float
    """Time a request takes at an idle engine beside its prompt and the steps it waits for:
    receiving, tokenising, preparing, sending [s]."""
    burst: float
    """Share of the other clients' prompts that stand before a new one, on average [-]."""
    wait: float
    """Tokens of a sequence a new request waits for, those of a step together, on average [-]."""
    ahead: float = 0.0
    """Prompts that stand before one of clients in step where the engine mixes [-]."""
    together: float = 0.0
    """Share of the others' prompts that stand before one of clients in step where it alternates
    [-]."""
    scale: Numeric = 1.0
    """Factor on TTFT but for what waits for room, of measurements of one's own [-]."""

    @classmethod
    def of(cls, deployment: Deployment) -> Queueing:
        """Return the figures of a deployment."""
        figures, subject = deployment.calibration, deployment.subject
        first, burst, wait, ahead, together = (figures.number(name, subject) for name in ARRIVAL)
        in_step = bool(subject.tags.get("arrivals"))
        mixes = deployment.engine.mixes_prompts
        return cls(
            first,
            burst,
            wait * deployment.tokens_per_step,
            ahead * (in_step and mixes),
            together * (in_step and not mixes),
            figures.scale(subject, START),
        )

    def before(self, running: Array) -> Array:
        """Return the prompts that stand before a new one among `running` sequences [-]."""
        running = np.maximum(running, 1.0)
        others = running - 1.0
        in_step = self.ahead * others / running + self.together * others
        return np.asarray(np.minimum(in_step + self.burst * others, others))


@dataclass(frozen=True, slots=True)
class Habits:
    """How an engine was set up to take requests in, other than by default; arrays broadcast."""

    poll: Numeric = 1.0
    """Steps between looks for new requests [-]."""
    rank_wait: Numeric = 0.0
    """Steps a prompt waits at most until every attention-DP rank has one [-]."""

    def wait(self, begun: Array, ranks: Numeric) -> Array:
        """Return the steps a request waits where `begun` prompts begin a step [-]."""
        gathered = np.minimum(self.rank_wait, ranks / np.maximum(begun, 1e-9))
        gathered = np.where(np.asarray(ranks) > 1, gathered, 0.0)
        return np.asarray((self.poll - 1.0 + gathered) / 2)


START = "start"
"""Kind of the scale on TTFT."""

ARRIVAL = ("first", "burst", "wait", "ahead", "together")


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
    prompts_at: Callable[[Array], Prompts],
    concurrency: Numeric,
    osl: Numeric,
    room: Numeric,
    queueing: Queueing,
    wait: Callable[[Array], Array] = np.zeros_like,
) -> Steady:
    """Return the steady state of `concurrency` clients.

    `decode_s` gives the time of a sequence's next token at a batch [s]; `room` is the sequences the
    engine holds at once; `wait` gives the steps a request waits where some begin every step [-].
    Arrays broadcast.
    """
    clients, osl, room = np.broadcast_arrays(
        np.asarray(concurrency, float), np.asarray(osl, float), np.asarray(room, float)
    )
    admitted = np.minimum(clients, np.maximum(room, 1.0))
    steps = np.maximum(osl - 1.0, FEWEST_STEPS)

    def at(running: Array) -> Loop:
        batch = np.maximum(running, 1.0)
        begun = running / steps
        step_s, prompts = decode_s(batch), prompts_at(batch)
        return Loop(running, begun, admitted, steps, step_s, prompts, queueing, wait(begun))

    balanced = _balanced(at, admitted, steps)
    decoding_s = steps * balanced.tpot_s
    # Few clients wait for each other longer than on average over many: prompts take all the time.
    ttft_s = np.maximum(balanced.ttft_s, admitted * balanced.prompts.held_s - decoding_s)
    requests, queued = admitted / (ttft_s + decoding_s), clients - admitted
    return Steady(
        running=np.asarray(requests * decoding_s),
        queued=np.asarray(queued),
        decode_s=balanced.step_s,
        prompts=balanced.prompts,
        prompt_share=np.asarray(requests * balanced.prompts.held_s),
        queue_s=balanced.queue_s,
        tpot_s=balanced.tpot_s,
        ttft_s=np.asarray(ttft_s + queued / requests),
        requests_per_s=np.asarray(requests),
    )


@dataclass(frozen=True, slots=True, eq=False)
class Loop:
    """A closed loop in which `running` sequences decode at once."""

    running: Array
    begun: Array
    """Prompts that begin a step [-]."""
    admitted: Array
    steps: Array
    step_s: Array
    prompts: Prompts
    queueing: Queueing
    wait: Array
    """Steps a request waits by the engine's habits [-]."""

    @property
    def others(self) -> Array:
        """Share of the clients that are others to one of them [-]."""
        return np.asarray((self.admitted - 1.0) / self.admitted)

    @property
    def held(self) -> Array:
        """Prompts of others that hold up a step, beside those of a common start [-]."""
        each = self.others * (1.0 - self.queueing.burst)
        return np.asarray(each * self.begun)

    @property
    def tpot_s(self) -> Array:
        """Time of a step with the prompts that hold it up [s]."""
        return np.asarray(self.step_s + self.held * self.prompts.held_s)

    @property
    def queue_s(self) -> Array:
        """Time a prompt waits for those of others [s]."""
        busy = self.begun * self.prompts.held_s / self.tpot_s
        full = np.minimum(self.begun * self.prompts.spread, 1.0)
        left = 1.0 - (1.0 - 0.5 / self.admitted) * full
        beyond = np.maximum(self.begun - self.prompts.most, 0.0)
        queue_s = self.others * (busy / left + beyond) * self.prompts.held_s / 2
        return np.asarray(queue_s + self.wait * self.step_s)

    @property
    def ttft_s(self) -> Array:
        """Time to the first token [s]."""
        before_s = self.queueing.before(self.running) * self.prompts.bunched_s
        waiting_s = before_s + self.queueing.wait * self.step_s + self.queue_s
        return np.asarray(
            self.queueing.scale * (self.queueing.first_s + self.prompts.own_s + waiting_s)
        )

    @property
    def excess(self) -> Array:
        """Logarithm of the running sequences over those that the times of the loop make [-]."""
        idle = np.maximum(self.admitted - self.running, 1e-300)
        ratio = self.running * self.ttft_s / (idle * self.steps * self.tpot_s)
        return np.asarray(np.log(np.maximum(ratio, 1e-300)))


def _balanced(at: Callable[[Array], Loop], admitted: Array, steps: Array) -> Loop:
    """Return the loop whose times make the sequences that it runs.

    The root is looked for in the logit of the running share, in which the excess is nearly linear,
    by false position with the retained end halved (Dowell, Jarratt 1971). A point that is near its
    root stays where it is, so that its answer does not depend on what is solved beside it.
    """
    first = at(admitted * (1.0 - 1e-6))
    low, high = np.full(admitted.shape, -LARGEST), np.full(admitted.shape, LARGEST)
    below, above = low.copy(), high.copy()
    guess = np.clip(np.log(steps * first.tpot_s / first.ttft_s), 1 - LARGEST, LARGEST - 1)
    loop, side = first, np.zeros(admitted.shape)
    for _ in range(ROUNDS):
        loop = at(admitted / (1.0 + np.exp(-guess)))
        excess = loop.excess
        near = np.abs(excess) < NEAR
        if np.all(near):
            break
        over = excess > 0
        above = np.where(over, excess, np.where(side < 0, above / 2, above))
        below = np.where(over, np.where(side > 0, below / 2, below), excess)
        high, low = np.where(over, guess, high), np.where(over, low, guess)
        side = np.where(over, 1.0, -1.0)
        guess = np.where(near, guess, (low * above - high * below) / (above - below))
    return loop


def serve(
    deployment: Deployment,
    concurrency: Numeric,
    isl: Numeric | Lengths,
    osl: Numeric | Lengths,
    prefix_hit: Numeric = 0.0,
    room: Numeric | None = None,
    habits: Habits = Habits(),
) -> Steady:
    """Return the steady state of a deployment under `concurrency` clients; arrays broadcast.

    `isl` and `osl` are lengths [token], or distributions of them. Prompts run one on every
    attention-DP rank at a time. A sequence is at half its output on average, which is the context
    of a step; `room` is the sequences held at once, by default what the engine's pool has place
    for: longer outputs are met there more often, as long as they have steps. `habits` say how the
    engine was set up to take requests in.
    """
    (isl, of_a_token), (osl, of_a_step) = (_moments(lengths) for lengths in (isl, osl))
    clients, isl, osl, of_a_token, of_a_step = np.broadcast_arrays(
        np.asarray(concurrency, float), isl, osl, of_a_token, of_a_step
    )
    context = isl + of_a_step / 2
    load = PromptLoad(deployment, isl, prefix_hit, of_a_token)
    return steady_state(
        lambda running: deployment.time_s(running, context),
        lambda running: load.at(running, osl, habits.poll, habits.rank_wait),
        clients,
        osl,
        room_for(deployment, isl, of_a_step) if room is None else room,
        Queueing.of(deployment),
        lambda begun: habits.wait(begun, deployment.sharding.attention_dp),
    )


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
