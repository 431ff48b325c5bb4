"""Predictions of measured rows as functions of three scales: of steps, of prompts and of TTFT.

What does not depend on the scales is worked out once for the rows of one deployment, so that many
values of them are tried together.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Protocol

import numpy as np

from planner.calibration import Calibration
from planner.deployment import Deployment
from planner.roofline import Array, Numeric
from planner.runs.harness import habits, mean_lengths
from planner.runs.points import decode_points
from planner.runs.room import room_of_run
from planner.runs.rows import Row, numbers
from planner.serving.prompts import PromptLoad, Prompts
from planner.serving.steady import START, Queueing, steady_state

PHASES = ("decode", "prompt", START)


class ScaledRows(Protocol):
    """Rows of one kind that ran on one deployment."""

    def predict(self, scales: Array) -> Mapping[str, Array]:
        """Return figures, shape (variant, row), at scales, shape (variant, 3), in PHASES' order."""


def scaled(deployment: Deployment, rows: Sequence[Row], figures: Calibration) -> ScaledRows:
    """Return rows of one kind that ran on one deployment, ready for any scales."""
    one = deployment.calibrated(figures, deployment.subject)
    return _BY_KIND[rows[0].kind](one, rows, figures)


class ScaledServing:
    """Serving runs of one deployment."""

    def __init__(self, deployment: Deployment, rows: Sequence[Row], figures: Calibration) -> None:
        self.clients = numbers(rows, "concurrency", 1.0)
        isl, self.osl = mean_lengths(rows)
        self.room = room_of_run(deployment, rows, self.clients, isl, self.osl)
        drafting = figures.speculation if deployment.subject.tags["drafting"] else None
        self.deployment = replace(deployment, speculation=drafting)
        self.load = PromptLoad(self.deployment, isl, 0.0, isl)
        self.queueing = Queueing.of(self.deployment)
        self.context = isl + self.osl / 2
        self.habits, self.ranks = habits(rows), self.deployment.sharding.attention_dp

    @property
    def admitted(self) -> Array:
        """Sequences that run at most, shape (row,)."""
        return np.minimum(self.clients, np.maximum(self.room, 1.0))

    @property
    def bends(self) -> Array:
        """Batches at which prompts begin to share steps, are held until every rank has one, and
        fill the steps, shape (4, row)."""
        ranks, held = self.ranks, np.asarray(self.habits.rank_wait) * (self.ranks > 1)
        shared = self.osl / self.habits.poll
        waits = self.osl / np.maximum(held, 1e-9)
        begin, gathered = (np.where(held > 0, waits * n, shared * ranks) for n in (1, ranks))
        return np.stack([begin, gathered, shared, shared * ranks * self.load.most])

    def curves(self, running: Array) -> tuple[Array, Numeric, Numeric]:
        """Return what batches of shape (node, row) take, and how prompts fill steps.

        The first has shape (4, node, row): the time of a step, and the three of prompts [s].
        """
        prompts = self.load.at(running, self.osl, self.habits.poll, self.habits.rank_wait)
        step_s = self.deployment.time_s(running, self.context)
        times = (step_s, prompts.own_s, prompts.held_s, prompts.bunched_s)
        return (
            np.stack([np.broadcast_to(each, running.shape) for each in times]),
            prompts.spread,
            prompts.most,
        )

    def predict(self, scales: Array) -> Mapping[str, Array]:
        """Return figures, shape (variant, row), at scales, shape (variant, 3), in PHASES' order."""
        step, prompt, start = (column[:, None] for column in scales.T)

        def prompts_at(running: Array) -> Prompts:
            taken_in = self.habits
            shipped = self.load.at(running, self.osl, taken_in.poll, taken_in.rank_wait)
            return replace(
                shipped,
                own_s=shipped.own_s * prompt,
                held_s=shipped.held_s * prompt,
                bunched_s=shipped.bunched_s * prompt,
            )

        state = steady_state(
            lambda running: np.asarray(step * self.deployment.time_s(running, self.context)),
            prompts_at,
            np.broadcast_to(self.clients, (len(scales), len(self.clients))),
            self.osl,
            self.room,
            replace(self.queueing, scale=self.queueing.scale * start),
            lambda begun: self.habits.wait(begun, self.ranks),
        )
        return {"ttft_ms": state.ttft_s * 1e3, "tpot_ms": state.tpot_s * 1e3}


class ScaledDecode:
    """Runs of decode alone of one deployment."""

    def __init__(self, deployment: Deployment, rows: Sequence[Row], _figures: Calibration) -> None:
        self.points = decode_points(deployment, rows)
        self.step_s = deployment.time_s(self.points.batch, self.points.context)
        prompts = np.maximum(self.points.isl, 1.0)
        self.prompt_s = deployment.prompt_time_s(prompts, self.points.batch)
        self.metrics = np.array([row.inputs["metric"] for row in rows])

    def predict(self, scales: Array) -> Mapping[str, Array]:
        """Return figures, shape (variant, row), at scales, shape (variant, 3), in PHASES' order."""
        points = self.points
        step, prompt = scales[:, :1] * self.step_s, scales[:, 1:2] * self.prompt_s
        whole = points.repeats * (prompt + np.maximum(points.osl - 1, 1) * step)
        rate = points.batch / step
        value = np.where(self.metrics == "request_latency_s", whole, step * 1e3)
        return {"value": np.where(self.metrics == "decode_tokens_per_s", rate, value)}


_BY_KIND: dict[str, Callable[[Deployment, Sequence[Row], Calibration], ScaledRows]] = {
    "serving": ScaledServing,
    "decode": ScaledDecode,
}
