"""What replicas do at every load, each from one evaluation of its batch axis.

A search asks for thousands of loads of hundreds of deployments. Step times and what prompts add to
them are evaluated on a coarse axis of batches once, and the steady states of all loads of all
deployments are solved together on times between them, linear in the batch's logarithm. What is
recommended is evaluated again exactly.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any

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
    return np.unique(np.round(_spread(np.asarray(float(most)), count)))


def _spread(most: Array, count: int) -> Array:
    """Return loads from 1 to each of `most`, evenly spread in their logarithm, last axis [-]."""
    share = np.linspace(0.0, 1.0, count)
    return np.asarray(np.minimum(most, MOST_IN_FLIGHT)[..., None] ** share)


@dataclass(frozen=True, eq=False)
class Sampled:
    """A deployment with what its steps take at some batches; arrays of shape (batch,)."""

    deployment: Deployment
    requests: Requests
    room: int
    """Sequences held at once, at least one [-]."""

    @classmethod
    def of(cls, deployment: Deployment, requests: Requests) -> Sampled | None:
        """Return the deployment, None where not one sequence fits."""
        room = requests.room(deployment)
        return cls(deployment, requests, room) if room >= 1 else None

    @cached_property
    def batches(self) -> Array:
        """Batches, evenly spread in their logarithm [-]."""
        return _spread(np.asarray(float(self.room)), BATCHES)

    @cached_property
    def tpot_s(self) -> Array:
        """Time of a sequence's token without prompts [s]."""
        return self.deployment.time_s(self.batches, self.requests.context)

    @cached_property
    def prompts(self) -> Array:
        """The fields of `Prompts` beside every batch, shape (field, batch)."""
        isl, osl = self.requests.isl, self.requests.osl
        load = PromptLoad(
            self.deployment,
            np.asarray(isl.mean),
            self.requests.prefix_hit,
            np.asarray(isl.of_a_step),
        )
        prompts = load.at(self.batches, np.asarray(osl.mean))
        values = (getattr(prompts, name) for name in PROMPT_FIELDS)
        return np.stack([np.broadcast_to(value, self.batches.shape) for value in values])

    @cached_property
    def queueing(self) -> Queueing:
        """How its engine lets requests in."""
        return Queueing.of(self.deployment)

    @cached_property
    def workers(self) -> Workers:
        """Workers for decode, with the same for prompts."""
        one, requests = self.deployment, self.requests
        return Workers(
            one, one, requests.isl, requests.osl, busy=BUSY, prefix_hit=requests.prefix_hit
        )


PROMPT_FIELDS = tuple(f.name for f in fields(Prompts))
QUEUEING_FIELDS = tuple(f.name for f in fields(Queueing))


@dataclass(frozen=True, eq=False)
class Between:
    """Values of deployments between batches, linear in the batch's logarithm.

    The batches of each are evenly spread in it, from one to the last.
    """

    last: Array
    """Logarithm of the largest batch, shape (deployment, 1) [-]."""
    values: Array
    """Shape (…, deployment, batch)."""

    @classmethod
    def of(cls, samples: Sequence[Sampled], values: Sequence[Array]) -> Between:
        """Return the values of deployments, each of shape (…, batch)."""
        last = np.log([[sample.batches[-1]] for sample in samples])
        return cls(last, np.stack(values, axis=-2))

    def at(self, batch: Array) -> Array:
        """Return the values at batches of shape (deployment, load), of shape (…, *batch)."""
        steps = self.values.shape[-1] - 1
        with np.errstate(divide="ignore", invalid="ignore"):  # one sequence at most: log 1 = 0
            place = np.nan_to_num(np.log(batch) / self.last * steps, nan=0.0, posinf=0.0)
        place = np.clip(place, 0.0, steps)
        low = np.minimum(place.astype(np.int64), steps - 1)
        of_load = low.reshape((1,) * (self.values.ndim - 2) + low.shape)
        shape = (*self.values.shape[:-1], low.shape[-1])
        below, above = (
            np.take_along_axis(self.values, np.broadcast_to(at, shape), axis=-1)
            for at in (of_load, of_load + 1)
        )
        return np.asarray(below + (place - low) * (above - below))


def shared_curves(samples: Sequence[Sampled]) -> list[Curve]:
    """Return the curves of replicas that run prompts and decode, solved together.

    All are under the same requests; deployments may be of any accelerators.
    """
    if not samples:
        return []
    requests, rooms = samples[0].requests, _rooms(samples)
    steps = Between.of(samples, [sample.tpot_s for sample in samples])
    prompts = Between.of(samples, [sample.prompts for sample in samples])
    loads = np.round(_spread(rooms, LOADS))
    state = steady_state(
        steps.at,
        lambda batch: Prompts(*prompts.at(batch)),
        loads,
        requests.osl.mean,
        rooms[:, None],
        _queueing(samples),
    )
    figures = (loads, state.running, state.ttft_s, state.tpot_s, state.requests_per_s)
    return [
        _curve(sample, columns)
        for sample, columns in _rows(samples, (*figures, state.prompt_share))
    ]


def shared_curve(deployment: Deployment, requests: Requests) -> Curve | None:
    """Return the curve of a replica that runs prompts and decodes; None where none fits."""
    sample = Sampled.of(deployment, requests)
    return None if sample is None else shared_curves([sample])[0]


def _queueing(samples: Sequence[Sampled]) -> Queueing:
    """Return how the engines let requests in, arrays of shape (deployment, 1)."""
    columns: dict[str, Any] = {
        name: np.array([[getattr(sample.queueing, name)] for sample in samples])
        for name in QUEUEING_FIELDS
    }
    return Queueing(**columns)


def _curve(sample: Sampled, figures: Array) -> Curve:
    clients, running, ttft_s, tpot_s, requests_per_s, prompt_share = figures
    return Curve(
        clients=clients,
        running=running,
        ttft_s=ttft_s,
        tpot_s=tpot_s,
        requests_per_s=requests_per_s,
        prompt_share=prompt_share,
        output_steps=max(sample.requests.osl.mean - 1.0, 0.0),
        room=sample.room,
    )


def _rooms(samples: Sequence[Sampled]) -> Array:
    return np.array([float(sample.room) for sample in samples])


def _rows(
    samples: Sequence[Sampled], figures: tuple[Array, ...]
) -> Iterator[tuple[Sampled, Array]]:
    """Yield what each deployment does, shape (figure, load), loads that are equal taken once."""
    apart = np.diff(figures[0], axis=-1, prepend=0.0) > 0
    stacked = np.stack(figures, axis=1)
    for sample, rows, different in zip(samples, stacked, apart, strict=True):
        yield sample, rows[:, different]


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
        sample = Sampled.of(deployment, requests)
        return None if sample is None else decoding_alone([sample])[0]

    def fed_by(self, before_s: float) -> Curve:
        """Return the curve where a request's cache arrives after `before_s`, on average [s]."""
        curve = self.curve
        return replace(
            curve,
            clients=curve.running + curve.requests_per_s * before_s,
            ttft_s=before_s + curve.tpot_s,
        )


def decoding_alone(samples: Sequence[Sampled]) -> list[DecodeAlone]:
    """Return decode workers at every batch, all under the same requests."""
    if not samples:
        return []
    batches = np.round(_spread(_rooms(samples), LOADS))
    tpot_s = Between.of(samples, [sample.tpot_s for sample in samples]).at(batches)
    osl = samples[0].requests.osl.mean
    figures = (batches, batches, tpot_s, tpot_s, batches / (osl * tpot_s), np.zeros_like(batches))
    return [
        DecodeAlone(sample.deployment, _curve(sample, columns), sample.workers)
        for sample, columns in _rows(samples, figures)
    ]
