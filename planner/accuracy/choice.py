"""Choosing well: how good the option is that predictions would choose, by what was measured."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import log

from planner.accuracy.holdout import REQUEST, Held, error
from planner.accuracy.tables import flows

DIFFER = {
    "split": ("tp", "pp", "attention_dp", "moe_ep", "gpus"),
    "engine": ("engine", "engine_version"),
    "weight format": ("weight_format",),
    "accelerator": ("gpu",),
}
"""Columns in which the options of a choice may differ, by what is chosen."""

KINDS: Mapping[str, tuple[str, ...]] = {
    "split, engine or format": (*DIFFER["split"], *DIFFER["engine"], *DIFFER["weight format"]),
    "split alone": DIFFER["split"],
    "engine alone": DIFFER["engine"],
    "format alone": DIFFER["weight format"],
}
"""Columns in which the options of a group on one accelerator may differ, by what is chosen."""

WIDEST = "split, engine or format"
"""The kind of groups whose options differ in all that is chosen on an accelerator."""

LOAD = ("model", "gpu", "isl", "osl", "concurrency", "speculative", "source")
"""Columns in which the runs of such a group agree."""

LIMITS_MS = (10.0, 15.0, 20.0, 30.0, 50.0, 100.0)
"""Limits on TPOT that choices are made under [ms]."""

CLOSE = 0.03
"""Share of the best rate that a choice may lack to count as good [-]."""


@dataclass(frozen=True, slots=True)
class Choice:
    """One choice among measured runs of a model at given lengths under a limit."""

    model: str
    isl: str
    osl: str
    limit_ms: float
    options: int
    reached: float
    """Measured tokens/s per GPU of the chosen run, over the best run's [-]."""


def rate_per_gpu(row: Mapping[str, str], ttft_ms: float, tpot_ms: float) -> float:
    """Return the output tokens per second and GPU of a closed loop [token/s]."""
    osl = float(row["osl"])
    request_s = (ttft_ms + (osl - 1.0) * tpot_ms) / 1e3
    return float(row["concurrency"]) * osl / request_s / float(row["gpus"])


def choices(rows: Sequence[Held]) -> list[Choice]:
    """Return the choices that predictions make among the measured runs that meet each limit.

    Runs of one model, input and output length on any accelerator, engine, format and split; only
    those whose measured TPOT meets the limit are options, and at least three of them.
    """
    groups: dict[tuple[str, str, str], list[Held]] = defaultdict(list)
    for held in rows:
        if held.row.kind == "serving":
            inputs = held.row.inputs
            groups[inputs["model"], inputs["isl"], inputs["osl"]].append(held)
    results = []
    for (model, isl, osl), members in sorted(groups.items()):
        for limit in LIMITS_MS:
            options = [h for h in members if h.row.measured["tpot_ms"] <= limit]
            if len(options) < 3:
                continue
            _, reached = reached_by(options)
            results.append(Choice(model, isl, osl, limit, len(options), reached))
    return results


def measured_rate(held: Held) -> float:
    """Return the output tokens per second and GPU that were measured [token/s]."""
    times = held.row.measured
    return rate_per_gpu(held.row.inputs, times["ttft_ms"], times["tpot_ms"])


def predicted_rate(held: Held) -> float:
    """Return those that are predicted [token/s]."""
    times = held.prediction.values
    return rate_per_gpu(held.row.inputs, times["ttft_ms"], times["tpot_ms"])


def reached_by(options: Sequence[Held]) -> tuple[Held, float]:
    """Return the option of the highest predicted rate, and its measured rate over the best [-]."""
    chosen = max(options, key=predicted_rate)
    return chosen, measured_rate(chosen) / max(map(measured_rate, options))


SAME = ("model", "isl", "osl", "concurrency", "source")
"""Columns in which runs at the same load agree, on any accelerator."""


def ratios(rows: Sequence[Held], of: str) -> list[float]:
    """Return the errors of ratios between runs that differ in one thing alone [-].

    log(predicted ratio/measured ratio) of the output rates per GPU of every pair of runs at the
    same load, that agree in all of `DIFFER` but `of`. What is off for both does not count.
    """
    same = (*SAME, *(name for what, names in DIFFER.items() if what != of for name in names))
    groups: dict[tuple[str, ...], list[Held]] = defaultdict(list)
    for held in rows:
        groups[tuple(held.row.inputs.get(name, "") for name in same)].append(held)
    differences = []
    for members in groups.values():
        off = [log(predicted_rate(held) / measured_rate(held)) for held in members]
        option = [tuple(held.row.inputs.get(name, "") for name in DIFFER[of]) for held in members]
        pairs = combinations(range(len(members)), 2)
        differences += [off[i] - off[j] for i, j in pairs if option[i] != option[j]]
    return differences


def groups(rows: Sequence[Held], kind: str) -> dict[tuple[str, ...], list[Held]]:
    """Return rows by all that their group agrees in, groups of two different options at least."""
    free = KINDS[kind]
    fixed = (*LOAD, *(name for name in KINDS[WIDEST] if name not in free))
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
    return error(held, REQUEST) is not None


def chosen(rows: Sequence[Held]) -> list[Held]:
    """Return the option that predictions choose of every group of runs that do not queue."""
    runs = [held for held in rows if flows(held) and answered(held)]
    return [reached_by(members)[0] for members in groups(runs, WIDEST).values()]
