"""What one replica does at every load, from one evaluation of its batch axis.

A search asks for thousands of loads of hundreds of deployments. Step times and what prompts add to
them are evaluated on a coarse axis of batches once, and the steady state of every load is solved on
times between them, linear in the batch's logarithm. What is recommended is evaluated again exactly.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace

import numpy as np

from planner.deployment import Deployment
from planner.roofline import Array
from planner.scenario import BUSY
from planner.serving.disaggregation import Workers
from planner.serving.prompts import PromptLoad, Prompts
from planner.serving.steady import Queueing, room_for, steady_state
from planner.workload.lengths import Lengths

BATCHES = 18
"""Batches whose steps are evaluated [-]."""
LOADS = 48
"""Loads of a curve [-]."""
MOST_IN_FLIGHT = 2**14
"""Requests in flight in one replica beyond which none is tried [-]."""


@dataclass(frozen=True, slots=True, eq=False)
class Curve:
    """One replica under ascending loads; arrays of shape (load,)."""

    clients: Array
    """Requests in flight; whole numbers where prompts share the replica [-]."""
    running: Array
    """Sequences decoding at once [-]."""
    ttft_s: Array
    tpot_s: Array
    requests_per_s: Array
    prompt_share: Array
    """Share of the time that prompts take [-]."""
    output_steps: float
    """Steps of a request after its first token, on average [-]."""
    room: int
    """Sequences held at once [-]."""

    def e2e_s(self, start: Array | float = 1.0, step: Array | float = 1.0) -> Array:
        """Return the time of a whole request where starts and steps take other times [s]."""
        return np.asarray(self.ttft_s * start + self.output_steps * self.tpot_s * step)


@dataclass(frozen=True, slots=True)
class Requests:
    """The requests of a question: lengths by their moments, and the share found in a cache."""

    isl: Lengths
    osl: Lengths
    prefix_hit: float = 0.0

    @property
    def context(self) -> float:
        """Tokens in the cache of a sequence at a random step [token]."""
        return self.isl.mean + self.osl.of_a_step / 2

    def room(self, deployment: Deployment) -> int:
        """Return the sequences that a replica holds at once [-]."""
        return int(room_for(deployment, np.asarray(self.isl.mean), np.asarray(self.osl.of_a_step)))


def whole_loads(most: int, count: int = LOADS) -> Array:
    """Return ascending whole loads from 1 to `most`, evenly spread in their logarithm [-]."""
    most = min(most, MOST_IN_FLIGHT)
    return np.unique(np.round(np.geomspace(1.0, most, count)))


def shared_curve(deployment: Deployment, requests: Requests) -> Curve | None:
    """Return the curve of a replica that runs prompts and decodes; None where none fits."""
    room = requests.room(deployment)
    if room < 1:
        return None
    loads = whole_loads(room)
    batches = np.unique(np.geomspace(1.0, loads[-1], BATCHES))
    isl, osl = requests.isl, requests.osl
    queue = PromptLoad(
        deployment, np.asarray(isl.mean), requests.prefix_hit, np.asarray(isl.of_a_step)
    )
    steps = between(batches, deployment.time_s(batches, requests.context))
    prompts = _between(batches, queue.at(batches, np.asarray(osl.mean)))
    state = steady_state(steps, prompts, loads, osl.mean, float(room), Queueing.of(deployment))
    return Curve(
        clients=loads,
        running=state.running,
        ttft_s=state.ttft_s,
        tpot_s=state.tpot_s,
        requests_per_s=state.requests_per_s,
        prompt_share=state.prompt_share,
        output_steps=max(osl.mean - 1.0, 0.0),
        room=room,
    )


def between(batches: Array, values: Array) -> Callable[[Array], Array]:
    """Return a function of the batch through values at some, linear in its logarithm."""
    logs, values = np.log(batches), np.broadcast_to(values, batches.shape)
    return lambda batch: np.asarray(np.interp(np.log(batch), logs, values))


def _between(batches: Array, prompts: Prompts) -> Callable[[Array], Prompts]:
    parts = {
        f.name: between(batches, np.asarray(getattr(prompts, f.name))) for f in fields(Prompts)
    }
    return lambda batch: Prompts(**{name: part(batch) for name, part in parts.items()})


@dataclass(frozen=True, slots=True, eq=False)
class DecodeAlone:
    """A decode worker at every batch, whatever prefills for it."""

    deployment: Deployment
    curve: Curve
    """Without the time before a request's cache arrives."""
    workers: Workers
    """With itself for prefill."""

    @classmethod
    def of(cls, deployment: Deployment, requests: Requests) -> DecodeAlone | None:
        """Return the worker; None where not one sequence fits."""
        room = requests.room(deployment)
        if room < 1:
            return None
        batches = whole_loads(room, BATCHES)
        workers = Workers(
            deployment,
            deployment,
            requests.isl,
            requests.osl,
            busy=BUSY,
            prefix_hit=requests.prefix_hit,
        )
        tpot_s = deployment.time_s(batches, requests.context)
        curve = Curve(
            clients=batches,
            running=batches,
            ttft_s=tpot_s,
            tpot_s=tpot_s,
            requests_per_s=batches / (requests.osl.mean * tpot_s),
            prompt_share=np.zeros_like(batches),
            output_steps=max(requests.osl.mean - 1.0, 0.0),
            room=room,
        )
        dense = whole_loads(room)
        return cls(deployment, _denser(curve, dense), workers)

    def fed_by(self, before_s: float) -> Curve:
        """Return the curve where a request's cache arrives after `before_s`, on average [s]."""
        curve = self.curve
        return replace(
            curve,
            clients=curve.running + curve.requests_per_s * before_s,
            ttft_s=before_s + curve.tpot_s,
        )


def _denser(curve: Curve, batches: Array) -> Curve:
    tpot_s = between(curve.clients, curve.tpot_s)(batches)
    requests = batches / tpot_s * (curve.requests_per_s * curve.tpot_s / curve.running)[0]
    return replace(
        curve,
        clients=batches,
        running=batches,
        ttft_s=tpot_s,
        tpot_s=tpot_s,
        requests_per_s=requests,
        prompt_share=np.zeros_like(batches),
    )
