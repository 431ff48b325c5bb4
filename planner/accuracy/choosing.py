"""How well predictions choose: among all options, among splits, and the ratios between options."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from planner.accuracy.choice import CLOSE, DIFFER, choices, ratios
from planner.accuracy.decisions import decisions
from planner.accuracy.holdout import Held
from planner.accuracy.tables import flows, shares

WAYS = ("model", "gpu")

HEAD = """\
## Choosing well

Among the measured runs of one model, input and output length that meet a limit on TPOT, the run
with the highest predicted tokens/s per GPU is chosen; its measured rate is compared with the best
run's. Splits are chosen among runs that agree in everything else, the load included.
"""

RATIOS = """\
Ratios of output tokens/s per GPU between two runs at the same load that differ in one thing alone;
what is off for both does not count.
"""


def choosing(held: Mapping[str, Sequence[Held]]) -> str:
    """Return the section on choices, of rows left out by model and by accelerator."""
    lines = [
        HEAD,
        f"| left out | chosen | groups | within {CLOSE:.0%} of the best | median | worst tenth |",
        "|---|---|---|---|---|---|",
    ]
    runs = {way: [one for one in held[way] if flows(one)] for way in WAYS}
    for way in WAYS:
        lines.append(_chosen(way, "any option", [c.reached for c in choices(runs[way])]))
        splits = decisions(runs[way], "split alone")
        lines.append(_chosen(way, "the split", [one.reached for one in splits]))
    lines += [
        "",
        RATIOS,
        "| left out | options differ in | pairs | median | mean | bias |",
        "|---|---|---|---|---|---|",
    ]
    lines += [_ratio(way, of, ratios(runs[way], of)) for way in WAYS for of in DIFFER]
    return "\n".join([*lines, ""])


def _chosen(way: str, what: str, reached: Sequence[float]) -> str:
    if not reached:
        return f"| one {way} | {what} | 0 | – | – | – |"
    rates = np.array(reached)
    return (
        f"| one {way} | {what} | {len(rates)} | {(rates >= 1 - CLOSE).mean():.0%} | "
        f"{np.median(rates):.1%} | {np.quantile(rates, 0.1):.1%} |"
    )


def _ratio(way: str, of: str, errors: Sequence[float]) -> str:
    if not errors:
        return f"| one {way} | {of} | 0 | – | – | – |"
    share = shares(errors)
    return (
        f"| one {way} | {of} | {len(errors)} | {np.median(share):.1%} | {share.mean():.1%} | "
        f"{np.median(errors):+.1%} |"
    )
