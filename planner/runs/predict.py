"""Predictions of rows, made from their inputs alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from planner.calibration import Calibration, current
from planner.deployment import Deployment
from planner.errors import one_line
from planner.roofline import Array
from planner.runs.groups import Group, grouped
from planner.runs.harness import habits, mean_lengths
from planner.runs.points import decode_points
from planner.runs.room import room_of_run
from planner.runs.rows import Row, numbers
from planner.runs.setup import setup
from planner.runs.startups import StartUp, predict_start
from planner.serving.steady import serve


@dataclass
class Prediction:
    """What the model says of one row; empty where it is refused."""

    row: str
    values: dict[str, float] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    nearness: str = ""


Columns = Mapping[str, Array]


def predict(rows: Sequence[Row], calibration: Calibration | None = None) -> list[Prediction]:
    """Return the prediction of every row, in order; one that cannot be made says why."""
    figures = calibration or current()
    predictions = [Prediction(row.inputs["row"]) for row in rows]
    deployments: list[Deployment] = []
    places: list[int] = []
    for place, row in enumerate(rows):
        if row.kind == "memory":
            _start(predictions[place], row)
            continue
        try:
            known = setup(row)
        except ValueError as error:
            predictions[place].notes.append(one_line(error))
            continue
        predictions[place].notes += known.notes
        deployments.append(known.deployment)
        places.append(place)
    for group in grouped(deployments):
        one = group.deployment.calibrated(figures, group.deployment.subject)
        here = [places[i] for i in group.rows]
        chosen = [rows[place] for place in here]
        columns = _ANSWERS[chosen[0].kind](Group(one, group.rows), chosen, figures)
        for i, place in enumerate(here):
            predictions[place].values = {name: float(column[i]) for name, column in columns.items()}
            predictions[place].nearness = figures.intervals.nearness(one.subject)
    return predictions


def _start(answer: Prediction, row: Row) -> None:
    """Put what an engine prints when it starts into `answer`, or why that cannot be said."""
    try:
        started = predict_start(StartUp.of(row.inputs))
    except ValueError as error:
        answer.notes.append(one_line(error))
        return
    answer.values = {"weights_gib": started.weights_gib, "kv_gib": started.kv_gib}
    if started.kv_tokens is not None:
        answer.values["kv_tokens"] = float(started.kv_tokens)
    if started.note:
        answer.notes.append(started.note)


def _serving(group: Group, rows: Sequence[Row], figures: Calibration) -> Columns:
    clients = numbers(rows, "concurrency", 1.0)
    isl, osl = mean_lengths(rows)
    room = room_of_run(group.deployment, rows, clients, isl, osl)
    drafting = figures.speculation if group.deployment.subject.tags["drafting"] else None
    one = replace(group.deployment, speculation=drafting)
    state = serve(one, clients, isl, osl, room=room, habits=habits(rows))
    values = {"ttft_ms": state.ttft_s * 1e3, "tpot_ms": state.tpot_s * 1e3}
    for name in ("ttft", "tpot"):
        low, high = group.deployment.interval(name)
        values[f"{name}_p10_ms"] = values[f"{name}_ms"] * low
        values[f"{name}_p90_ms"] = values[f"{name}_ms"] * high
    return values


def _decode(group: Group, rows: Sequence[Row], figures: Calibration) -> Columns:
    del figures
    points = decode_points(group.deployment, rows)
    step = group.deployment.time_s(points.batch, points.context)
    prompt = group.deployment.prompt_time_s(np.maximum(points.isl, 1.0), points.batch)
    by_metric = {
        "decode_tokens_per_s": points.batch / step,
        "tpot_ms": step * 1e3,
        "request_latency_s": points.repeats * (prompt + np.maximum(points.osl - 1, 1) * step),
    }
    metrics = [row.inputs["metric"] for row in rows]
    value = np.array([by_metric.get(m, by_metric["tpot_ms"])[i] for i, m in enumerate(metrics)])
    low, high = group.deployment.interval()
    rate = np.array([m == "decode_tokens_per_s" for m in metrics])
    return {
        "value": value,
        "value_p10": value * np.where(rate, 1 / high, low),
        "value_p90": value * np.where(rate, 1 / low, high),
    }


_ANSWERS: dict[str, Callable[[Group, Sequence[Row], Calibration], Columns]] = {
    "serving": _serving,
    "decode": _decode,
}
