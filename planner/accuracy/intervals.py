"""The intervals of a calibration file: how far off rows are that were left out of the fit.

What was left out together (a model, an accelerator, an engine) is off together: errors of a fold
are an offset of its own and what its rows differ by. A further fold is a draw of either.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from scipy.stats import t as student

from planner.accuracy.choice import chosen
from planner.accuracy.holdout import NEAR, REQUEST, USER, Held, error, undoubted
from planner.calibration.intervals import SERVING
from planner.roofline import Array

LOW, HIGH = 0.075, 0.925
"""Quantiles of the left-out errors that make an 80% interval: folds differ, so that the tenth and
ninetieth percentile of other folds hold 75% of a fold's rows [-]."""

UNSEEN_VENDOR = 1.5
"""Factor on the width of the interval of a vendor never measured in a mode in which fewer than two
vendors were (assumption: what cannot be left out cannot be checked) [-]."""

FEWEST = 30
"""Rows below which a class takes the next nearer class's interval, widened [-]."""

WIDER = 1.25
"""Factor on the width of an interval borrowed from a nearer class [-]."""

Ends = Callable[[Sequence[Array]], Array]
"""From the log errors of folds to the ends of the interval of a further one."""


def further(folds: Sequence[Array]) -> Array:
    """Return the ends of the interval of a row of a further fold, on its logarithm [-].

    An offset drawn from the medians mₖ of the folds and, apart from it, a difference drawn from all
    rows to the median of their fold. As the K folds are a sample, offsets lie
    √((1 + 1/K)·K/(K − 1)) as far from their mean: a variance of weighted folds and of their mean,
    K = (Σnₖ)²/Σnₖ² being the folds that rows are worth (Kish 1965). Of one fold its quantiles.
    """
    counts = np.array([len(fold) for fold in folds], float)
    medians = np.array([np.median(fold) for fold in folds])
    share = counts / counts.sum()
    worth = 1.0 / float((share**2).sum())
    wider = np.sqrt((worth + 1.0) / (worth - 1.0)) if len(folds) > 1 else 1.0
    middle = float((share * medians).sum())
    offsets = middle + (medians - middle) * wider
    within = np.concatenate([fold - median for fold, median in zip(folds, medians, strict=True)])
    errors = (offsets[:, None] + within).ravel()
    return _quantiles(errors, np.repeat(share, len(within)))


def either_way(folds: Sequence[Array]) -> Array:
    """Return the ends of an interval that is as wide either way, on its logarithm [-].

    The `HIGH` − `LOW` quantile of what rows are off by, whatever its sign: of two vendors one alone
    is left when the other is left out, and which way a further one is off it does not tell.
    """
    reach = float(np.quantile(np.abs(np.concatenate(folds)), HIGH - LOW))
    return np.array([-reach, reach])


def a_further_source(folds: Sequence[Array]) -> Array:
    """Return the ends of the interval of a run of a further source, on its logarithm [-].

    Every source counts alike, however many runs it published: a further one is a draw from a normal
    distribution of which the k medians are a sample, and a run one from the runs of a source:
    m ± t·√(τ²·(1 + 1/k) + w²), the predictive interval of random effects with Student's t of k − 1
    degrees (Higgins, Thompson, Spiegelhalter 2009).
    """
    medians = np.array([np.median(fold) for fold in folds])
    within = np.array([np.median(np.abs(fold - np.median(fold))) for fold in folds])
    variance = medians.var(ddof=1) * (1 + 1 / len(medians)) + ((MAD * within) ** 2).mean()
    reach = float(student.ppf(0.9, len(medians) - 1) * np.sqrt(variance))
    return np.array([medians.mean() - reach, medians.mean() + reach])


MAD = 1.4826
"""Standard deviation over the median absolute deviation of a normal distribution [-]."""


def _quantiles(values: Array, weights: Array) -> Array:
    """Quantiles LOW and HIGH of weighted values, each in the middle of its weight."""
    order = np.argsort(values)
    weight = weights[order]
    places = (np.cumsum(weight) - weight / 2) / weight.sum()
    return np.asarray(np.interp([LOW, HIGH], places, values[order]))


ENDS: Mapping[str, Ends] = {"vendor": either_way}
"""How the interval is made, by way of leaving out where it is not by `further`."""

QUANTITIES = {"tpot": ("tpot_ms", "value"), "ttft": ("ttft_ms",), "request": (REQUEST,)}
"""Columns of rows by quantity."""


def intervals(rows: Sequence[Held]) -> dict[str, Any]:
    """Return the intervals of the calibration file.

    `rows` are held out in all ways of `NEAR`, by source, by engine and by vendor.
    """
    factors: dict[str, Any] = {}
    modes = sorted({held.mode for held in rows})
    for quantity in QUANTITIES:
        factors[quantity] = {}
        for mode in modes:
            classes: dict[str, list[float]] = {}
            for by, near in NEAR.items():
                errors = _errors(rows, quantity, mode, by)
                classes[near] = _factors(errors, by) or _wider([*classes.values()])
            classes = {near: pair for near, pair in classes.items() if pair}
            if classes:
                factors[quantity][mode] = classes
    return {
        "coverage": _coverage(rows),
        "factors": factors,
        "engines": _engines(rows),
        "unseen_vendor": UNSEEN_VENDOR,
        "sources": {
            quantity: pair
            for quantity, names in QUANTITIES.items()
            if (pair := source_interval([h for h in rows if h.by == USER], names[0]))
        },
        "unseen_engines": _of_modes(rows, modes, "engine"),
        "vendors": _of_modes(rows, modes, "vendor"),
    }


def errors_by_fold(rows: Sequence[Held], names: Sequence[str]) -> dict[str, Array]:
    """Return the log errors of rows that have one of the quantities, by fold."""
    folds: dict[str, list[float]] = defaultdict(list)
    for held in rows:
        folds[held.fold] += [e for name in names if (e := error(held, name)) is not None]
    return {fold: np.array(errors) for fold, errors in folds.items() if errors}


def source_interval(rows: Sequence[Held], name: str) -> list[float]:
    """Return the factors to p10 and p90 over sources left out; empty for less than two.

    `rows` are asked for as a user would, who says nothing of a source's habits.
    """
    folds = errors_by_fold([held for held in rows if undoubted(held)], (name,))
    return _rounded(a_further_source([*folds.values()])) if len(folds) > 1 else []


def deciding(rows: Sequence[Held]) -> list[Held]:
    """Return the rows of which the interval of a request's time is made: what is chosen of groups.

    Where choices are of fewer than `FEWEST_FOLDS` folds, all of them. That time is what the number
    of GPUs follows from, which is asked for a choice.
    """
    choices = chosen(rows)
    return choices if len({held.fold for held in choices}) >= FEWEST_FOLDS else list(rows)


FEWEST_FOLDS = 3
"""Folds that choices are of, at least: of two, one alone makes the interval of the other [-]."""


def _errors(rows: Sequence[Held], quantity: str, mode: str, by: str) -> dict[str, Array]:
    left_out = [h for h in rows if h.by == by and h.mode == mode and undoubted(h)]
    known = deciding(left_out) if quantity == "request" else left_out
    return errors_by_fold(known, QUANTITIES[quantity])


def _of_modes(
    rows: Sequence[Held], modes: Sequence[str], by: str
) -> dict[str, dict[str, list[float]]]:
    by_quantity: dict[str, dict[str, list[float]]] = {}
    for quantity in QUANTITIES:
        for mode in modes:
            if pair := _factors(_errors(rows, quantity, mode, by), by):
                by_quantity.setdefault(quantity, {})[mode] = pair
    return by_quantity


def _factors(folds: Mapping[str, Array], by: str) -> list[float]:
    """The factors to p10 and p90; none of a class with few rows."""
    if sum(map(len, folds.values())) < FEWEST:
        return []
    return _rounded(ENDS.get(by, further)([*folds.values()]))


def _wider(nearer: Sequence[list[float]]) -> list[float]:
    """The next nearer class's factors, wider."""
    if not (nearer and nearer[-1]):
        return []
    return _rounded(np.log(nearer[-1]) * WIDER)


def _rounded(ends: Array) -> list[float]:
    return [float(f"{end:.4g}") for end in np.exp(ends).tolist()]


def _coverage(rows: Sequence[Held]) -> dict[str, Any]:
    by_mode: dict[str, dict[str, set[str]]] = {}
    for held in rows:
        tags = held.subject.tags
        names = ("pairs", "gpus", "families", "vendors")
        mode = by_mode.setdefault(held.mode, {name: set() for name in names})
        mode["pairs"].add(f"{tags['gpu']}|{tags['model']}")
        mode["gpus"].add(tags["gpu"])
        mode["families"].add(tags["family"])
        mode["vendors"].add(tags["vendor"])
    return {mode: {k: sorted(v) for k, v in sets.items()} for mode, sets in by_mode.items()}


def _engines(rows: Sequence[Held]) -> dict[str, str]:
    serving = {held.subject.tags["engine"] for held in rows if held.mode == SERVING}
    others = {held.subject.tags["engine"]: held.mode for held in rows if held.mode != SERVING}
    return {engine: mode for engine, mode in sorted(others.items()) if engine not in serving}
