"""Decisions on left-out rows: the option that is chosen, and the number of GPUs that is said.

Runs of one model on one accelerator under one load form a group where they differ in split, engine
or format. Of these the one with the most predicted tokens/s per GPU is chosen; what it was measured
at is compared with the best of the group. For a demand of `REPLICAS` of it, the number of GPUs with
its 80% interval is worked out as `recommend` does, and compared with the number that its measured
throughput implies. Intervals are those of the other folds, as `coverage` has them.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from planner.accuracy.choice import CLOSE, measured_rate, predicted_rate, reached_by
from planner.accuracy.holdout import HIGH, LOW, Held, error
from planner.accuracy.tables import flows
from planner.plans.curves import Curve
from planner.plans.sizing import Sizing, Wanted
from planner.plans.uncertainty import ENDS, Spread

SPLIT = ("tp", "pp", "attention_dp", "moe_ep", "gpus")
ENGINE = ("engine", "engine_version")
FORMAT = ("weight_format",)
LOAD = ("model", "gpu", "isl", "osl", "concurrency", "speculative", "source")
"""Columns in which the runs of a group agree."""

KINDS: Mapping[str, tuple[str, ...]] = {
    "split, engine or format": (*SPLIT, *ENGINE, *FORMAT),
    "split alone": SPLIT,
    "engine alone": ENGINE,
    "format alone": FORMAT,
}
"""Columns in which the options of a group may differ, by what is chosen."""

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
    runs = [held for held in rows if flows(held) and answered(held)]
    spreads = spreads_of(runs)
    return [_decision(members, spreads) for members in groups(runs, kind).values()]


def groups(rows: Sequence[Held], kind: str) -> dict[tuple[str, ...], list[Held]]:
    """Return rows by all that their group agrees in, groups of two different options at least."""
    free = KINDS[kind]
    fixed = (*LOAD, *(n for n in KINDS["split, engine or format"] if n not in free))
    members: dict[tuple[str, ...], list[Held]] = defaultdict(list)
    for held in rows:
        members[tuple(held.row.inputs.get(name, "") for name in fixed)].append(held)
    return {
        key: runs
        for key, runs in members.items()
        if len({tuple(held.row.inputs.get(name, "") for name in free) for held in runs}) > 1
    }


def answered(held: Held) -> bool:
    """Return whether both times of a run were measured and predicted."""
    return all(error(held, name) is not None for name in ("ttft_ms", "tpot_ms"))


def _decision(members: Sequence[Held], spreads: Mapping[str, Spread]) -> Decision:
    chosen, reached = reached_by(members)
    held = holds(chosen, spreads.get(chosen.fold))
    return Decision(options=len(members), reached=reached, held=held)


def spreads_of(rows: Sequence[Held]) -> dict[str, Spread]:
    """Return the 80% intervals of TTFT and TPOT of every fold, from the errors of the others."""
    errors: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for held in rows:
        ttft, tpot = (error(held, name) for name in ("ttft_ms", "tpot_ms"))
        if ttft is not None and tpot is not None:
            errors[held.fold].append((ttft, tpot))
    spreads: dict[str, Spread] = {}
    for fold in errors if len(errors) > 1 else ():
        others = np.array([e for name, rest in errors.items() if name != fold for e in rest])
        low, high = np.exp(np.quantile(others, [LOW, HIGH], axis=0)).tolist()
        spreads[fold] = Spread(ttft=(low[0], high[0]), tpot=(low[1], high[1]))
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
    runs = [held for held in rows if flows(held) and answered(held)]
    spreads = spreads_of(runs)
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
    runs = [held for held in rows if flows(held) and answered(held)]
    spreads = spreads_of(runs)
    return _share([holds(held, spreads.get(held.fold)) for held in runs])


def _share(answers: Sequence[bool | None]) -> float:
    known = [answer for answer in answers if answer is not None]
    return float(np.mean(known)) if known else math.nan
