"""Predictions of measured rows as functions of three scales: of steps, of prompts and of TTFT.

What does not depend on the scales is worked out once for the rows of one deployment, so that many
values of them are tried together.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from planner.calibration import Calibration
from planner.deployment import Deployment
from planner.roofline import Array
from planner.runs.harness import habits, mean_lengths
from planner.runs.points import decode_points
from planner.runs.room import room_of_run
from planner.runs.rows import Row, numbers
from planner.serving.prompts import PromptLoad, Prompts
from planner.serving.steady import START, Queueing, steady_state

PHASES = ("decode", "prompt", START)

Scaled = Callable[[Array], Mapping[str, Array]]
"""From scales, shape (variant, 3) in the order of PHASES, to figures of shape (variant, row)."""


def scaled(deployment: Deployment, rows: Sequence[Row], figures: Calibration) -> Scaled:
    """Return predictions of rows of one kind that ran on one deployment, by their scales."""
    one = deployment.calibrated(figures, deployment.subject)
    return _BY_KIND[rows[0].kind](one, rows, figures)


def _serving(deployment: Deployment, rows: Sequence[Row], figures: Calibration) -> Scaled:
    clients = numbers(rows, "concurrency", 1.0)
    isl, osl = mean_lengths(rows)
    room = room_of_run(deployment, rows, clients, isl, osl)
    drafting = figures.speculation if deployment.subject.tags["drafting"] else None
    one = replace(deployment, speculation=drafting)
    load, queueing, context = PromptLoad(one, isl, 0.0, isl), Queueing.of(one), isl + osl / 2
    taken_in, ranks = habits(rows), one.sharding.attention_dp

    def predict(scales: Array) -> Mapping[str, Array]:
        step, prompt, start = (column[:, None] for column in scales.T)

        def prompts_at(running: Array) -> Prompts:
            shipped = load.at(running, osl, taken_in.poll)
            return replace(
                shipped,
                own_s=shipped.own_s * prompt,
                held_s=shipped.held_s * prompt,
                bunched_s=shipped.bunched_s * prompt,
            )

        state = steady_state(
            lambda running: np.asarray(step * one.time_s(running, context)),
            prompts_at,
            np.broadcast_to(clients, (len(scales), len(clients))),
            osl,
            room,
            replace(queueing, scale=queueing.scale * start),
            lambda begun: taken_in.wait(begun, ranks),
        )
        return {"ttft_ms": state.ttft_s * 1e3, "tpot_ms": state.tpot_s * 1e3}

    return predict


def _decode(deployment: Deployment, rows: Sequence[Row], figures: Calibration) -> Scaled:
    del figures
    points = decode_points(deployment, rows)
    step_s = deployment.time_s(points.batch, points.context)
    prompt_s = deployment.prompt_time_s(np.maximum(points.isl, 1.0), points.batch)
    metrics = np.array([row.inputs["metric"] for row in rows])

    def predict(scales: Array) -> Mapping[str, Array]:
        step, prompt = scales[:, :1] * step_s, scales[:, 1:2] * prompt_s
        whole = points.repeats * (prompt + np.maximum(points.osl - 1, 1) * step)
        rate = points.batch / step
        value = np.where(metrics == "request_latency_s", whole, step * 1e3)
        return {"value": np.where(metrics == "decode_tokens_per_s", rate, value)}

    return predict


_BY_KIND: dict[str, Callable[[Deployment, Sequence[Row], Calibration], Scaled]] = {
    "serving": _serving,
    "decode": _decode,
}
