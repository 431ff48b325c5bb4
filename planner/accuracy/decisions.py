"""Decisions on left-out rows: the option that is chosen, and the number of GPUs that is said.

Runs of one model on one accelerator under one load form a group where they differ in split, engine
or format. Of these the one with the most predicted tokens/s per GPU is chosen; what it was measured
at is compared with the best of the group. For a demand of `REPLICAS` of it, the number of GPUs with
its 80% interval is worked out as `recommend` does, and compared with the number that its measured
throughput implies. The interval is that of a request's time, made of the other folds: for a choice
of what was chosen there, for all options and runs of all runs there.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from planner.accuracy.choice import (
    CLOSE,
    answered,
    groups,
    measured_rate,
    predicted_rate,
    reached_by,
)
from planner.accuracy.coverage import without
from planner.accuracy.holdout import Held
from planner.accuracy.intervals import QUANTITIES, deciding, errors_by_fold, further
from planner.accuracy.tables import flows
from planner.plans.curves import Curve
from planner.plans.sizing import Sizing, Wanted
from planner.plans.uncertainty import ENDS, Spread

REPLICAS = 100
"""Replicas that the demand takes as predicted; of 20, rounding alone holds 4% of runs more [-]."""


@dataclass(frozen=True, slots=True)
class Decision:
    """One choice within a group."""

    options: int
    reached: float
    """Measured tokens/s per GPU of the chosen run over the best run's [-]."""
    held: bool | None
    """Whether the interval on GPUs holds the number its measured throughput implies; None where a
    single fold leaves no interval."""


@dataclass(frozen=True, slots=True)
class Summary:
    """How well the options of many groups are chosen."""

    differing: str
    groups: int
    close: float
    """Share of groups whose choice is within `CLOSE` of the best [-]."""
    median: float
    worst_tenth: float
    gpus_held: float
    """Share of the choices whose interval on GPUs holds the measured number [-]."""
    gpus_held_all: float
    """The same of every option rather than of the chosen [-]."""


def decisions(rows: Sequence[Held], kind: str) -> list[Decision]:
    """Return the choice in every group of left-out serving runs that do not queue."""
    runs = flowing(rows)
    spreads = spreads_of(deciding(runs), runs)
    return [_decision(members, spreads) for members in groups(runs, kind).values()]


def flowing(rows: Sequence[Held]) -> list[Held]:
    """Return the serving runs that do not queue and are answered."""
    return [held for held in rows if flows(held) and answered(held)]


def _decision(members: Sequence[Held], spreads: Mapping[str, Spread]) -> Decision:
    choice, reached = reached_by(members)
    held = holds(choice, spreads.get(choice.fold))
    return Decision(options=len(members), reached=reached, held=held)


def spreads_of(rows: Sequence[Held], runs: Sequence[Held]) -> dict[str, Spread]:
    """Return the 80% intervals of every fold of runs, from the errors of rows of the others."""
    columns = [errors_by_fold(rows, QUANTITIES[name]) for name in ("ttft", "tpot", "request")]
    spreads: dict[str, Spread] = {}
    for fold in {held.fold for held in runs}:
        others = [without(errors, fold) for errors in columns]
        if all(others):
            low, high = np.exp([further(errors) for errors in others]).T.tolist()
            spreads[fold] = Spread(*zip(low, high, strict=True))
    return spreads


def gpus_needed(held: Held, spread: Spread) -> tuple[int, int, int]:
    """Return the GPUs at p10, p50 and p90 for a demand of `REPLICAS` of a run as predicted.

    One replica at the run's own concurrency, sized by requests per second as `recommend` sizes it.
    """
    inputs, times = held.row.inputs, held.prediction.values
    clients, steps = float(inputs["concurrency"]), float(inputs["osl"]) - 1.0
    ttft_s, tpot_s = times["ttft_ms"] / 1e3, times["tpot_ms"] / 1e3
    one = np.array([clients])
    rate = one / (ttft_s + steps * tpot_s)
    curve = Curve(
        clients=one,
        running=one,
        ttft_s=np.array([ttft_s]),
        tpot_s=np.array([tpot_s]),
        requests_per_s=rate,
        prompt_share=np.zeros(1),
        output_steps=steps,
        room=math.ceil(clients),
    )
    wanted = Wanted({}, "requests_per_s", REPLICAS * float(rate[0]), 0.0)
    sizing = Sizing(curve, spread, wanted)
    each = round(float(inputs["gpus"]))
    low, middle, high = ((sizing.replicas(z) or 0) * each for z in ENDS)
    return low, middle, high


def gpus_implied(held: Held) -> int:
    """Return the GPUs that the same demand takes at the measured throughput."""
    ratio = predicted_rate(held) / measured_rate(held)
    return math.ceil(REPLICAS * ratio * (1 - 1e-9)) * round(float(held.row.inputs["gpus"]))


def holds(held: Held, spread: Spread | None) -> bool | None:
    """Return whether the interval on GPUs holds the number that was measured."""
    if spread is None:
        return None
    low, _, high = gpus_needed(held, spread)
    return low <= gpus_implied(held) <= high


def summary(rows: Sequence[Held], kind: str) -> Summary | None:
    """Return how well options are chosen in all groups; None where there are none."""
    made = decisions(rows, kind)
    if not made:
        return None
    runs = flowing(rows)
    spreads = spreads_of(runs, runs)
    members = [held for group in groups(runs, kind).values() for held in group]
    reached = np.array([one.reached for one in made])
    return Summary(
        differing=kind,
        groups=len(made),
        close=float((reached >= 1 - CLOSE).mean()),
        median=float(np.median(reached)),
        worst_tenth=float(np.quantile(reached, 0.1)),
        gpus_held=_share([one.held for one in made]),
        gpus_held_all=_share([holds(held, spreads.get(held.fold)) for held in members]),
    )


def every_run_held(rows: Sequence[Held]) -> float:
    """Return the share of all runs whose interval on GPUs holds the measured number [-]."""
    runs = flowing(rows)
    spreads = spreads_of(runs, runs)
    return _share([holds(held, spreads.get(held.fold)) for held in runs])


def _share(answers: Sequence[bool | None]) -> float:
    known = [answer for answer in answers if answer is not None]
    return float(np.mean(known)) if known else math.nan
