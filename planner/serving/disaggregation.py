"""Prefill and decode on workers of their own: how many of each, and what a request sees."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from planner.deployment import Deployment
from planner.errors import InvalidInput
from planner.hw import MissingFigure
from planner.roofline import Array, Numeric
from planner.scenario import BUSY
from planner.serving.steady import Queueing
from planner.workload.lengths import Lengths

ROUNDS = 50
"""Iterations on the decoding batch, at most [-]."""


@dataclass(frozen=True, slots=True)
class Disaggregated:
    """What one decode worker does and needs; arrays of the shape of the question."""

    running: Array
    """Sequences decoding at once [-]."""
    queued: Array
    """Clients whose cache waits for room in the decode worker [-]."""
    clients: Array
    """Requests in flight: queued, in a prefill worker, on the way, or decoding [-]."""
    tpot_s: Array
    """A decode step: no prompt holds it up."""
    ttft_s: Array
    """Waiting for and running the prompt, moving its cache, and the first step."""
    requests_per_s: Array
    """Requests one decode worker completes [1/s]."""
    prefill_per_decode: Array
    """Prefill workers that feed one decode worker [-]."""
    output_tokens_per_s_per_gpu: Array
    """Over the GPUs of both kinds [token/s]."""


@dataclass(frozen=True)
class Workers:
    """A kind of worker for prompts, one for decode, and the requests that pass through both."""

    prefill: Deployment
    decode: Deployment
    isl: Lengths
    osl: Lengths
    busy: float = BUSY
    """Share of the time a prefill worker works, between 0 and 1 [-]."""
    transfer_bytes_per_s: float | None = None
    """Bandwidth of a cache's way; None is the decode machine's own link [byte/s]."""
    prefix_hit: float = 0.0
    """Share of input tokens that prefill finds in its prefix cache [-]."""

    def __post_init__(self) -> None:
        """Raise InvalidInput for a share that is none."""
        if not 0 < self.busy < 1:
            raise InvalidInput(f"busy: {self.busy} is not accepted; expected a share from 0 to 1")

    @cached_property
    def prompt_s(self) -> float:
        """Time of one prompt on every attention-DP rank of a prefill worker [s]."""
        ranks, length = self.prefill.sharding.attention_dp, self.isl
        seconds = self.prefill.prompt_time_s(length.mean, ranks, self.prefix_hit, length.of_a_step)
        return float(seconds)

    @cached_property
    def transfer_s(self) -> float:
        """Time a prompt's cache takes from one worker to the other [s].

        Raises MissingFigure where neither a bandwidth is given nor a link is on record.
        """
        memory, gpu = self.decode.memory, self.decode.accelerator
        cache = memory.kv_bytes_per_token * self.isl.mean + memory.state_bytes_per_sequence
        bandwidth = self.transfer_bytes_per_s or gpu.link.bytes_per_s
        if bandwidth is None:
            raise MissingFigure(
                f"disaggregated.transfer_bytes_per_s: {gpu.id} has no link on record; accepted: a "
                f"bandwidth [byte/s]"
            )
        return cache / bandwidth

    @property
    def before_s(self) -> float:
        """Time from a request's arrival to its cache's [s].

        A prompt waits t·(1 + cv²)·busy/(2·(1 − busy)) on average: an M/G/1 queue, a prompt taking
        as long as it is.
        """
        spread = self.isl.of_a_step / self.isl.mean
        waiting_s = self.prompt_s * spread * self.busy / (2 * (1 - self.busy))
        first_s = Queueing.of(self.decode).first_s
        return first_s + waiting_s + self.prompt_s + self.transfer_s

    def at(self, batch: Numeric) -> Disaggregated:
        """Return what a decode worker with `batch` sequences does and needs; arrays broadcast.

        Decode completes batch/(OSL·TPOT) requests a second; a prefill worker that is `busy` a share
        of the time takes busy/t_prompt of them.
        """
        running = np.asarray(batch, float)
        context = self.isl.mean + self.osl.of_a_step / 2
        tpot_s = self.decode.time_s(np.maximum(running, 1.0), context)
        requests = running / (self.osl.mean * tpot_s)
        ratio = requests * self.prompt_s / self.prefill.sharding.attention_dp / self.busy
        gpus = self.decode.sharding.gpus + ratio * self.prefill.sharding.gpus
        return Disaggregated(
            running=running,
            queued=np.zeros_like(running),
            clients=running + requests * self.before_s,
            tpot_s=tpot_s,
            ttft_s=self.before_s + tpot_s,
            requests_per_s=requests,
            prefill_per_decode=ratio,
            output_tokens_per_s_per_gpu=requests * self.osl.mean / gpus,
        )

    def under(self, clients: Numeric, room: Numeric) -> Disaggregated:
        """Return the steady state of closed-loop clients of a decode worker; arrays broadcast.

        A client decodes for OSL·TPOT of every TTFT + (OSL − 1)·TPOT. Beyond `room` sequences [-]
        they queue, which lengthens TTFT and leaves TPOT as it is.
        """
        clients = np.asarray(clients, float)
        room = np.maximum(np.asarray(room, float), 1.0)
        running, state = np.minimum(clients, room), self.at(np.minimum(clients, room))
        for _ in range(ROUNDS):
            before, running = running, np.minimum(clients * running / state.clients, room)
            state = self.at(running)
            if np.allclose(before, running, rtol=1e-6):
                break
        queued = np.maximum(clients - state.clients, 0.0)
        queued = np.where(running < room, 0.0, queued)
        ttft_s = state.ttft_s + queued / state.requests_per_s
        return replace(state, queued=queued, clients=clients, ttft_s=ttft_s)
