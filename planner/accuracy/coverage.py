"""How many left-out rows the 80% intervals hold, each taken from the other folds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from planner.accuracy.choice import measured_rate, rate_per_gpu
from planner.accuracy.holdout import NEAR, REQUEST, USER, Held, Holdout
from planner.accuracy.intervals import (
    ENDS,
    HIGH,
    LOW,
    QUANTITIES,
    Ends,
    deciding,
    errors_by_fold,
    further,
    source_interval,
)
from planner.accuracy.tables import errors_of, flows, sound
from planner.roofline import Array, Bools

CLASSES = {**NEAR, "engine": "an engine never measured", "vendor": "a vendor never measured"}
"""What a case is of where its rows are left out, by way of leaving out."""

HEAD = f"""\
## Intervals

Share of left-out rows inside their 80% interval, when the interval is taken from the other folds
of the same class (target 75% to 87%); that of output tokens/s follows from those of TTFT and TPOT.
request_ms is the time of a whole request, of options that are chosen where they are of three folds
at least: the number of GPUs follows from it. Runs that do not queue.

A fold is what was left out together, and is off together. The interval of a further one is made of
two draws: an offset from the medians of the folds, by their rows, and what rows differ by from
the median of their fold. As folds are a sample, offsets are widened by √((1 + 1/K)·K/(K − 1)),
with K the number of folds of equal size that they are worth. p10 and p90 are the {LOW:.1%} and
{HIGH:.1%} quantiles of the sum. Nothing in it was chosen by class.

* A vendor never measured has decode rows alone (serving rows of all but a few are of one vendor),
  and of two vendors one is left when the other is left out, which says nothing of the way a further
  one is off: the interval is as wide either way, the {HIGH - LOW:.0%} quantile of what the other
  vendor's rows are off by.
* An answer about an engine, a vendor or a set-up never measured takes the wider of this interval
  and that of its accelerator's class.
"""


SOURCES = """\
A set-up of a user's own is asked for without the habits of its source. It is a draw from sources
and not from their runs, of which one source published most, so that every source counts alike in
its interval (random effects, Student's t), which is then wider than the runs of that one need.
"""


def intervals_checked(holdout: Holdout, held: Mapping[str, Sequence[Held]]) -> str:
    """Return the section on intervals: the share of rows inside, by class and quantity."""
    lines = [HEAD, "| class | quantity | mode | rows | inside |", "|---|---|---|---|---|"]
    for way, near in CLASSES.items():
        left_out, ends = list(held.get(way) or holdout.held(way)), ENDS.get(way, further)
        for mode in sorted({h.mode for h in left_out}):
            for name in ("tpot_ms", "ttft_ms", REQUEST, "value"):
                rows = [h for h in left_out if h.mode == mode and (flows(h) or sound(h))]
                if name == REQUEST:
                    rows = deciding(rows)
                count = len(errors_of(rows, name, lambda _: True))
                share = covered(rows, name, ends)
                if count and share is not None:
                    lines.append(f"| {near} | {name} | {mode} | {count} | {share:.0%} |")
        serving = [h for h in left_out if flows(h)]
        if (share := covered_rates(serving, ends)) is not None:
            lines.append(f"| {near} | output tokens/s | serving | {len(serving)} | {share:.0%} |")
    lines.append("")
    of_users = [h for h in holdout.held(USER) if flows(h)]
    lines += [SOURCES, "| quantity | runs | of all runs | sources alike |", "|---|---|---|---|"]
    for names in QUANTITIES.values():
        if shares := covered_sources(of_users, names[0]):
            of_all, alike = shares
            lines.append(f"| {names[0]} | {len(of_users)} | {of_all:.0%} | {alike:.0%} |")
    return "\n".join([*lines, ""])


def covered_sources(rows: Sequence[Held], name: str) -> tuple[float, float] | None:
    """Return the share of runs inside the interval that the other sources make [-].

    Of all runs, and with every source counting alike, as it does where the interval is made. None
    for less than three sources, of which no two are left to make one.
    """
    folds = errors_by_fold(rows, (name,))
    inside: list[Bools] = []
    for fold, errors in folds.items():
        pair = source_interval([held for held in rows if held.fold != fold], name)
        if not pair:
            return None
        low, high = np.log(pair)
        inside.append((errors >= low) & (errors <= high))
    if not inside:
        return None
    alike = float(np.mean([one.mean() for one in inside]))
    return float(np.concatenate(inside).mean()), alike


def covered(rows: Sequence[Held], name: str, ends: Ends = further) -> float | None:
    """Return the share of rows inside the interval that the other folds make [-].

    None for a single fold.
    """
    folds = errors_by_fold(rows, (name,))
    if len(folds) < 2:
        return None
    inside: list[bool] = []
    for fold, errors in folds.items():
        low, high = ends(without(folds, fold))
        inside += ((errors >= low) & (errors <= high)).tolist()
    return float(np.mean(inside))


def covered_rates(rows: Sequence[Held], ends: Ends = further) -> float | None:
    """Return the share of rows whose output tokens/s are inside the interval that follows from
    those of TTFT and TPOT [-]; None for a single fold.
    """
    times = [errors_by_fold(rows, (name,)) for name in ("ttft_ms", "tpot_ms")]
    if len(times[0]) < 2:
        return None
    bounds = {
        fold: np.exp(np.stack([ends(without(folds, fold)) for folds in times], axis=1))
        for fold in times[0]
    }
    inside = []
    for held in rows:
        fast, slow = bounds[held.fold]
        values = held.prediction.values
        low, high = (
            rate_per_gpu(held.row.inputs, values["ttft_ms"] * ttft, values["tpot_ms"] * tpot)
            for ttft, tpot in (slow, fast)
        )
        inside.append(low <= measured_rate(held) <= high)
    return float(np.mean(inside))


def without(folds: Mapping[str, Array], fold: str) -> list[Array]:
    """Return the errors of all folds but one."""
    return [errors for other, errors in folds.items() if other != fold]
