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
from planner.runs.harness import mean_lengths
from planner.runs.points import decode_points
from planner.runs.room import room_of_run
from planner.runs.rows import Row, numbers
from planner.serving.steady import START, Prompts, Queueing, prompts_of, steady_state

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
    prompts, queueing, context = prompts_of(one, isl), Queueing.of(one), isl + osl / 2

    def predict(scales: Array) -> Mapping[str, Array]:
        step, prompt, start = (column[:, None] for column in scales.T)

        def decode_s(running: Array) -> Array:
            return np.asarray(step * one.time_s(running, context))

        own, held, bunched = (
            prompt * np.asarray(time) for time in (prompts.own_s, prompts.held_s, prompts.bunched_s)
        )
        state = steady_state(
            decode_s,
            Prompts(own, held, bunched),
            np.broadcast_to(clients, own.shape),
            osl,
            room,
            replace(queueing, scale=queueing.scale * start),
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
