"""Rows of closed-loop serving, as parts of a fit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from planner.calibration.table import Calibration
from planner.deployment import Deployment
from planner.fitting.decode_rows import EARLY, FASTEST
from planner.fitting.observations import set_weights
from planner.roofline import Array, Bools
from planner.runs.groups import Group, grouped
from planner.runs.harness import habits, harness_of, mean_lengths
from planner.runs.room import room_of_run
from planner.runs.rows import Row, numbers
from planner.runs.setup import setup
from planner.serving.prompts import PromptLoad
from planner.serving.steady import Queueing, Steady, serve

SET = ("model", "gpu", "engine", "weight_format")
"""Columns that make rows one set: they share most of their error."""

SET_SIZE = 20
"""Rows beyond this many in a set do not add weight [-]."""


@dataclass(frozen=True)
class ServingRows:
    """Serving rows as arrays."""

    rows: Sequence[Row]
    groups: Sequence[Group]

    @classmethod
    def of(cls, rows: Sequence[Row]) -> ServingRows:
        """Resolve the deployments of rows; those of models that are not known are left out."""
        known, deployments = [], []
        for row in rows:
            try:
                deployments.append(setup(row).deployment)
            except ValueError:
                continue
            known.append(row)
        return cls(known, grouped(deployments))

    def input(self, name: str) -> Array:
        """Return an input column as numbers."""
        return numbers(self.rows, name, 1.0)

    @cached_property
    def lengths(self) -> tuple[Array, Array]:
        """Mean input and output lengths [token]."""
        return mean_lengths(self.rows)

    def measured(self, name: str) -> Array:
        """Return a measured column [s]."""
        return np.array([row.measured[name] for row in self.rows]) / 1e3

    @cached_property
    def weight(self) -> Array:
        """Weight of each row, less where its set is large, none where it tells little [-].

        How many sequences a row that queues held at once depends on limits that it does not state.
        """
        none = self.early | self.queued
        return np.where(none, 0.0, set_weights(self.rows, SET, SET_SIZE))

    @cached_property
    def mixes(self) -> Bools:
        """Whether the engines run prompts in the steps that decode."""
        return self._of_deployments(lambda one: one.engine.mixes_prompts) > 0

    @cached_property
    def in_step(self) -> Bools:
        """Whether equal lengths kept the clients in step."""
        return np.array([bool(harness_of(row).arrivals) for row in self.rows])

    @cached_property
    def ranks(self) -> Array:
        """Attention-DP ranks [-]."""
        return self._of_deployments(lambda one: one.sharding.attention_dp)

    def _of_deployments(self, read: Callable[[Deployment], float]) -> Array:
        values = np.ones(len(self.rows))
        for group in self.groups:
            values[group.rows] = read(group.deployment)
        return values

    def states(self, calibration: Calibration) -> States:
        """Return what a calibration predicts of every row."""
        clients, (isl, osl) = self.input("concurrency"), self.lengths
        states = States(*(np.zeros(len(self.rows)) for _ in range(7)))
        for group in self.groups:
            at = group.rows
            one = group.deployment.calibrated(calibration, group.deployment.subject)
            rows = [self.rows[i] for i in at]
            room = room_of_run(one, rows, clients[at], isl[at], osl[at])
            state = serve(one, clients[at], isl[at], osl[at], room=room, habits=habits(rows))
            states.running[at] = state.running
            states.queued[at] = state.queued
            states.decode_s[at] = state.decode_s
            states.own_s[at] = state.prompts.own_s
            states.bunched_s[at] = state.prompts.bunched_s
            states.held[at], states.queue_s[at] = _others(
                state, Queueing.of(one).burst, clients[at]
            )
        return states

    @cached_property
    def loads(self) -> list[tuple[Group, PromptLoad]]:
        """The prompts of every group's rows."""
        isl, _ = self.lengths
        return [
            (group, PromptLoad(group.deployment, isl[group.rows], 0.0, isl[group.rows]))
            for group in self.groups
        ]

    def together(self, running: Array) -> tuple[Array, Array]:
        """Prompts that share a step of `running` sequences, and those that hold it up alone [-]."""
        prompts, alone = np.ones(len(self.rows)), np.ones(len(self.rows))
        taken_in = habits(self.rows)
        polls, waits = np.asarray(taken_in.poll), np.asarray(taken_in.rank_wait)
        for group, load in self.loads:
            at = group.rows
            osl = self.lengths[1][at]
            prompts[at] = load.together(running[at], osl, polls[at], waits[at])
            alone[at] = np.maximum(prompts[at], group.deployment.sharding.pp)
        return prompts, alone

    def doubts(self, states: States) -> list[str]:
        """Return why a row is doubted; empty for most.

        A request waits at most for the prompts of all other clients while the pool has room; one
        that waits several times as long met a limit that its row does not state.
        """
        clients = self.input("concurrency")
        most = states.own_s + clients * states.own_s / self.ranks
        late = (self.measured("ttft_ms") > LATEST * most) & (states.queued < 1)
        flags = zip(self.early.tolist(), late.tolist(), self.slow_start.tolist(), strict=True)
        texts = (EARLY, LATE, SLOW_START)
        return [next((t for t, flag in zip(texts, row, strict=True) if flag), "") for row in flags]

    @cached_property
    def slow_start(self) -> Bools:
        """Whether a run alike in all but its output length needs far less for its first token."""
        alike = ["|".join(row.inputs[c] for c in ALIKE) for row in self.rows]
        ttft = self.measured("ttft_ms")
        _, at = np.unique(alike, return_inverse=True)
        least = np.full(at.max() + 1, np.inf)
        np.minimum.at(least, at, ttft)
        return np.asarray((ttft > SLOWEST_START * least[at]) & ~self.queued)

    @cached_property
    def tuned(self) -> Bools:
        """Whether a row's engine was set up for the benchmark."""
        return np.array([harness_of(row).tuned for row in self.rows])

    @cached_property
    def queued(self) -> Bools:
        """Whether a row is marked as one that queues."""
        return np.array([row.remarks.get("queued") == "1" for row in self.rows])

    @cached_property
    def early(self) -> Bools:
        """Whether a row's TPOT is too short to read weights and cache of its running batch.

        The running batch is the one its own times imply: clients·OSL·TPOT/(TTFT + OSL·TPOT).
        """
        (isl, osl), tpot = self.lengths, self.measured("tpot_ms")
        busy = osl * tpot
        running = self.input("concurrency") * busy / (busy + self.measured("ttft_ms"))
        impossible = np.zeros(len(self.rows), dtype=bool)
        for group in self.groups:
            at, one = group.rows, group.deployment
            points = one.step.at(np.maximum(running[at], 1.0), isl[at] + osl[at] / 2)
            impossible[at] = tpot[at] < FASTEST * points.roofline_s
        return impossible


LATEST = 2.5
"""Times the prompts of all clients beyond which a TTFT is doubted [-]."""

SLOWEST_START = 1.5
"""Times the least TTFT among runs of the same prompts beyond which one is doubted [-]."""

ALIKE = (
    "model",
    "gpu",
    "engine",
    "engine_version",
    "measured_on",
    "weight_format",
    "tp",
    "pp",
    "attention_dp",
    "moe_ep",
    "isl",
    "concurrency",
)
"""Columns in which runs of the same prompts agree."""

SLOW_START = "its first token takes far longer than in a run alike in all but output length"

LATE = "waits longer than all clients' prompts take, though the pool has room"


@dataclass(frozen=True, slots=True)
class States:
    """Predicted steady states of rows."""

    running: Array
    queued: Array
    decode_s: Array
    own_s: Array
    bunched_s: Array
    held: Array
    """Prompts of others that hold up a token [-]."""
    queue_s: Array
    """Time in the queue for the engine."""


def _others(state: Steady, burst: float, clients: Array) -> tuple[Array, Array]:
    """Prompts of others that hold up a token [-], and the time a prompt queues for theirs [s]."""
    admitted = clients - state.queued
    others = (admitted - 1.0) / admitted
    return (1.0 - burst) * others * state.requests_per_s * state.tpot_s, state.queue_s
