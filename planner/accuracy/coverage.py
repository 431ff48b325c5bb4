"""How many left-out rows the 80% intervals hold, each taken from the other folds."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

import numpy as np

from planner.accuracy.choice import measured_rate, rate_per_gpu
from planner.accuracy.holdout import (
    HIGH,
    LOW,
    NEAR,
    QUANTITIES,
    USER,
    Held,
    Holdout,
    error,
    source_interval,
)
from planner.accuracy.tables import errors_of, flows, sound
from planner.roofline import Array

CLASSES = {**NEAR, "engine": "an engine never measured", "vendor": "a vendor never measured"}
"""What a case is of where its rows are left out, by way of leaving out."""

HEAD = f"""\
## Intervals

Share of left-out rows inside their 80% interval, when the interval is taken from the other folds
of the same class (target 75% to 87%); that of output tokens/s follows from those of TTFT and TPOT.
p10 and p90 are the {LOW:.1%} and {HIGH:.1%} quantiles of left-out errors, because folds differ.
Runs that do not queue. A set-up of a user's own is asked for without the habits of its source; its
interval is made of the other sources. A vendor never measured has decode rows alone: serving rows
of all but a few are of one vendor.
"""


def intervals_checked(holdout: Holdout, held: Mapping[str, Sequence[Held]]) -> str:
    """Return the section on intervals: the share of rows inside, by class and quantity."""
    lines = [HEAD, "| class | quantity | mode | rows | inside |", "|---|---|---|---|---|"]
    for way, near in CLASSES.items():
        left_out = list(held.get(way) or holdout.held(way))
        for mode in sorted({h.mode for h in left_out}):
            for name in ("tpot_ms", "ttft_ms", "value"):
                rows = [h for h in left_out if h.mode == mode and (flows(h) or sound(h))]
                count = len(errors_of(rows, name, lambda _: True))
                share = covered(rows, name)
                if count and share is not None:
                    lines.append(f"| {near} | {name} | {mode} | {count} | {share:.0%} |")
        serving = [h for h in left_out if flows(h)]
        if (share := covered_rates(serving)) is not None:
            lines.append(f"| {near} | output tokens/s | serving | {len(serving)} | {share:.0%} |")
    of_users = [h for h in holdout.held(USER) if flows(h)]
    for names in QUANTITIES.values():
        if (share := covered_sources(of_users, names[0])) is not None:
            cells = f"{names[0]} | serving | {len(of_users)} | {share:.0%}"
            lines.append(f"| a set-up of one's own | {cells} |")
    return "\n".join([*lines, ""])


def covered_sources(rows: Sequence[Held], name: str) -> float | None:
    """Return the share of runs inside the interval that the sources of the others make [-].

    None for less than three sources, of which no two are left to make one.
    """
    inside: list[bool] = []
    for fold in sorted({held.fold for held in rows}):
        pair = source_interval([held for held in rows if held.fold != fold], name)
        if not pair:
            return None
        low, high = np.log(pair)
        own = [e for h in rows if h.fold == fold and (e := error(h, name)) is not None]
        inside += [bool(low <= e <= high) for e in own]
    return float(np.mean(inside)) if inside else None


def covered(rows: Sequence[Held], name: str) -> float | None:
    """Return the share of rows inside the interval of a quantity [-]; None for a single fold."""
    folds = _folds(rows, (name,))
    if len(folds) < 2:
        return None
    inside = []
    for fold, errors in folds.items():
        low, high = _interval(folds, fold)[:, 0]
        inside += ((errors[:, 0] >= low) & (errors[:, 0] <= high)).tolist()
    return float(np.mean(inside))


def covered_rates(rows: Sequence[Held]) -> float | None:
    """Return the share of rows whose output tokens/s are inside the interval that follows from
    those of TTFT and TPOT [-]; None for a single fold.
    """
    folds = _folds(rows, ("ttft_ms", "tpot_ms"))
    if len(folds) < 2:
        return None
    bounds = {fold: np.exp(_interval(folds, fold)) for fold in folds}
    inside = []
    for held in rows:
        fast, slow = bounds[held.fold]
        times = held.prediction.values
        low, high = (
            rate_per_gpu(held.row.inputs, times["ttft_ms"] * ttft, times["tpot_ms"] * tpot)
            for ttft, tpot in (slow, fast)
        )
        inside.append(low <= measured_rate(held) <= high)
    return float(np.mean(inside))


def _folds(rows: Sequence[Held], names: Sequence[str]) -> dict[str, Array]:
    """Log errors of quantities by fold, shape (row, quantity)."""
    folds: dict[str, list[list[float]]] = defaultdict(list)
    for held in rows:
        values = [e for name in names if (e := error(held, name)) is not None]
        if len(values) == len(names):
            folds[held.fold].append(values)
    return {fold: np.array(errors) for fold, errors in folds.items()}


def _interval(folds: dict[str, Array], fold: str) -> Array:
    """Ends of the interval of a fold, from the others; shape (end, quantity)."""
    others = np.concatenate([errors for other, errors in folds.items() if other != fold])
    return np.asarray(np.quantile(others, [LOW, HIGH], axis=0))
