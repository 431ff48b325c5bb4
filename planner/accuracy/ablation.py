"""What each source of data and each part of the law is worth."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from planner.accuracy.holdout import Holdout
from planner.accuracy.tables import errors_of, flows, shares
from planner.fitting.decode_rows import DecodeRows
from planner.fitting.refit import Refit


def ablation(holdout: Holdout) -> str:
    """Return the errors of fits that lack a source of data or a part of the law."""
    refit = holdout.refit
    plain = replace(
        refit.priors,
        parameters={n: replace(p, levels=()) for n, p in refit.priors.parameters.items()},
    )
    none = DecodeRows.of(())
    variants = {
        "as shipped": refit,
        "without decode rows": Refit(refit.serving, none, refit.samples, refit.priors, ""),
        "without kernel samples": Refit(refit.serving, refit.decode, (), refit.priors, ""),
        "one set of parameters for all": Refit(refit.serving, none, refit.samples, plain, ""),
    }
    lines = [
        "## Ablation\n",
        "TPOT of runs that do not queue: median and mean error.\n",
        "| | within the fit | one model left out | one gpu left out |\n|---|---|---|---|",
    ]
    for name, variant in variants.items():
        other = Holdout(variant)
        cells = []
        for rows in (other.fitted(), other.held("model", True), other.held("gpu", True)):
            share = shares(errors_of(rows, "tpot_ms", flows))
            cells.append(f"{np.median(share):.1%}, {share.mean():.1%}")
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join([*lines, ""])
