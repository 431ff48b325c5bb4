"""How many left-out rows the 80% intervals hold, each taken from the other folds."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from planner.accuracy.choice import rate_per_gpu
from planner.accuracy.holdout import HIGH, LOW, Held, error
from planner.roofline import Array


def covered(rows: Sequence[Held], name: str) -> float | None:
    """Return the share of rows inside the interval of a quantity [-]; None for a single fold."""
    folds = _folds(rows, (name,))
    if len(folds) < 2:
        return None
    found = []
    for fold, errors in folds.items():
        low, high = _interval(folds, fold)[:, 0]
        found += ((errors[:, 0] >= low) & (errors[:, 0] <= high)).tolist()
    return float(np.mean(found))


def covered_rates(rows: Sequence[Held]) -> float | None:
    """Return the share of rows whose output tokens/s are inside the interval that follows from
    those of TTFT and TPOT [-]; None for a single fold.
    """
    folds = _folds(rows, ("ttft_ms", "tpot_ms"))
    if len(folds) < 2:
        return None
    bounds = {fold: np.exp(_interval(folds, fold)) for fold in folds}
    found = []
    for held in rows:
        fast, slow = bounds[held.fold]
        said, got = held.prediction.values, held.row.measured
        low, high = (
            rate_per_gpu(held.row.inputs, said["ttft_ms"] * ttft, said["tpot_ms"] * tpot)
            for ttft, tpot in (slow, fast)
        )
        found.append(low <= rate_per_gpu(held.row.inputs, got["ttft_ms"], got["tpot_ms"]) <= high)
    return float(np.mean(found))


def _folds(rows: Sequence[Held], names: Sequence[str]) -> dict[str, Array]:
    """Log errors of quantities by fold, shape (row, quantity)."""
    folds: dict[str, list[list[float]]] = defaultdict(list)
    for held in rows:
        found = [e for name in names if (e := error(held, name)) is not None]
        if len(found) == len(names):
            folds[held.fold].append(found)
    return {fold: np.array(errors) for fold, errors in folds.items()}


def _interval(folds: dict[str, Array], fold: str) -> Array:
    """Ends of the interval of a fold, from the others; shape (end, quantity)."""
    others = np.concatenate([errors for other, errors in folds.items() if other != fold])
    return np.asarray(np.quantile(others, [LOW, HIGH], axis=0))
