"""A local refit: a few factors on top of the shipped calibration, from a user's own rows.

Times of decode and of prompts and TTFT each take a factor per (GPU, engine), per size of model, per
format and per model there: what bounds a small model is not what bounds a large one, so that most
of what a run says is about models of its size. They are log factors with a Gaussian prior around
zero, so that few rows, and runs of few requests, move little and many rows move as far as they
agree. Nothing else of the calibration changes.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import least_squares

from planner.calibration import Calibration
from planner.calibration.own import LEVELS, applied
from planner.errors import InvalidInput
from planner.roofline import Array
from planner.runs.predict import predict
from planner.runs.rows import Row
from planner.runs.setup import setup
from planner.serving.steady import START

PHASES = ("decode", "prompt", START)

SIGMA = 0.1
"""Error of a row against which the priors are weighed; of its logarithm [-]."""

KNEE = 1.5
"""Errors beyond this many sigma pull with the square root of their size [-]."""

TTFT_WEIGHT = 0.1
"""Weight of a TTFT beside a TPOT: it varies more between runs [-]."""

FEW_REQUESTS = 32
"""Requests of a run that tell half of what many would [-]."""

MOST = 1.6
"""Largest log factor, about five times [-]."""

FOLDS = 5

Factors = tuple[dict[str, float], ...]


@dataclass(frozen=True, slots=True)
class Fit:
    """Factors by level, and the median error of each measured quantity around it [-]."""

    edition: str
    """Edition of the shipped calibration the factors belong to."""
    factors: Factors
    rows: int
    before: Mapping[str, float]
    after: Mapping[str, float]
    left_out: Mapping[str, float]
    """After, each row predicted by a fit without its fifth of the rows; empty for few rows."""
    notes: tuple[str, ...] = ()
    """Rows that cannot be predicted, and so take no part."""


@dataclass(frozen=True, slots=True)
class GroupError:
    """Median error of one quantity over the rows of one GPU and engine [-]."""

    gpu: str
    engine: str
    quantity: str
    rows: int
    before: float
    after: float


def refit(rows: Sequence[Row], shipped: Calibration) -> Fit:
    """Return the local factors that rows ask for.

    Raises InvalidInput, one line, where none of the rows can be predicted.
    """
    known, notes = _known(rows, shipped)
    if not known:
        raise InvalidInput(f"results: no row can be predicted: {notes[0] if notes else 'no rows'}")
    factors = fitted(known, shipped)
    return Fit(
        edition=shipped.edition,
        factors=factors,
        rows=len(known),
        before=errors(known, shipped),
        after=errors(known, applied(shipped, factors)),
        left_out=_left_out(known, shipped),
        notes=tuple(notes),
    )


def errors(rows: Sequence[Row], calibration: Calibration) -> dict[str, float]:
    """Return the median error of each quantity over rows [-]; TTFT of runs that do not queue."""
    found: dict[str, list[float]] = defaultdict(list)
    for row, prediction in zip(rows, predict(rows, calibration), strict=True):
        for name, measured in row.measured.items():
            if _weight(row, name):
                found[name].append(abs(prediction.values[name] / measured - 1))
    return {name: float(np.median(values)) for name, values in found.items()}


def by_group(
    rows: Sequence[Row], shipped: Calibration, factors: Sequence[Mapping[str, float]]
) -> list[GroupError]:
    """Return the errors of the rows of each GPU and engine, with the factors and without."""
    local, found = applied(shipped, factors), []
    for (gpu, engine), members in _sets(_known(rows, shipped)[0]).items():
        before, after = errors(members, shipped), errors(members, local)
        found += [
            GroupError(
                gpu,
                engine,
                name,
                sum(name in row.measured and _weight(row, name) > 0 for row in members),
                before[name],
                after[name],
            )
            for name in before
        ]
    return found


def _sets(rows: Iterable[Row]) -> dict[tuple[str, str], list[Row]]:
    """Rows by GPU and engine."""
    found: dict[tuple[str, str], list[Row]] = defaultdict(list)
    for row in rows:
        tags = setup(row).deployment.subject.tags
        found[tags["gpu"], tags["engine"]].append(row)
    return found


def _known(rows: Iterable[Row], shipped: Calibration) -> tuple[list[Row], list[str]]:
    """Rows that are predicted, and why the others are not."""
    known, notes = [], []
    for row in rows:
        try:
            setup(row)
        except ValueError as error:
            notes.append(f"row {row.inputs['row']}: {error}")
        else:
            known.append(row)
    with np.errstate(all="ignore"):
        predictions = predict(known, shipped)
    possible = []
    for row, prediction in zip(known, predictions, strict=True):
        if all(0 < prediction.values[name] < np.inf for name in row.measured):
            possible.append(row)
        else:
            notes.append(f"row {row.inputs['row']}: no finite time is predicted for it")
    return possible, list(dict.fromkeys(notes))


def fitted(rows: Sequence[Row], shipped: Calibration) -> Factors:
    """Return the factors of rows, fitted on their own for each GPU and engine."""
    factors: Factors = tuple({} for _ in LEVELS)
    for members in _sets(rows).values():
        for whole, part in zip(factors, _fit_set(members, shipped), strict=True):
            whole |= part
    return factors


def _fit_set(rows: Sequence[Row], shipped: Calibration) -> Factors:
    keys = _keys(rows)
    deviations = np.array([LEVELS[level][1] for level, _ in keys])

    def factors(theta: Array) -> Factors:
        found: Factors = tuple({} for _ in LEVELS)
        for (level, key), value in zip(keys, theta, strict=True):
            found[level][key] = float(np.exp(value))
        return found

    def residuals(moved: Array) -> Array:
        theta = moved - 1.0
        misfits = _misfits(rows, applied(shipped, factors(theta)))
        return np.concatenate([misfits, theta / deviations])

    # SciPy's difference step is relative to the value, so the unknowns are kept around one.
    ones = np.ones(len(keys))
    solved = least_squares(
        residuals, ones, bounds=(1 - MOST, 1 + MOST), diff_step=0.01 * ones, xtol=1e-4
    )
    return tuple(
        {key: float(f"{value:.4g}") for key, value in level.items()}
        for level in factors(solved.x - 1.0)
    )


def _keys(rows: Sequence[Row]) -> list[tuple[int, str]]:
    """The unknowns of rows: (level, key) of every factor they depend on."""
    found: dict[tuple[int, str], None] = {}
    for row in rows:
        subject = setup(row).deployment.subject
        for phase in PHASES if row.kind == "serving" else PHASES[:1]:
            for level, (tags, _) in enumerate(LEVELS):
                key = subject.key(tags, phase)
                if key is not None:
                    found[level, key] = None
    return list(found)


def _misfits(rows: Sequence[Row], calibration: Calibration) -> Array:
    """Log errors in units of sigma, those of outliers drawn in (pseudo-Huber)."""
    found = []
    for row, prediction in zip(rows, predict(rows, calibration), strict=True):
        for name, measured in row.measured.items():
            weight = _weight(row, name)
            if weight:
                error = np.sqrt(weight) / SIGMA * np.log(prediction.values[name] / measured)
                huber = 2 * KNEE**2 * (np.sqrt(1 + (error / KNEE) ** 2) - 1)
                found.append(np.sign(error) * np.sqrt(huber))
    return np.array(found)


def _weight(row: Row, name: str) -> float:
    requests = float(row.remarks.get("requests") or FEW_REQUESTS * 10)
    told = requests / (requests + FEW_REQUESTS)
    if name == "ttft_ms":
        return 0.0 if row.remarks.get("queued") == "1" else TTFT_WEIGHT * told
    return told if row.measured[name] > 0 else 0.0


def _left_out(rows: Sequence[Row], shipped: Calibration) -> dict[str, float]:
    if len(rows) < 2 * FOLDS:
        return {}
    found: dict[str, list[float]] = defaultdict(list)
    for fold in range(FOLDS):
        kept = [row for i, row in enumerate(rows) if i % FOLDS != fold]
        left = [row for i, row in enumerate(rows) if i % FOLDS == fold]
        local = applied(shipped, fitted(kept, shipped))
        for row, prediction in zip(left, predict(left, local), strict=True):
            for name, measured in row.measured.items():
                if _weight(row, name):
                    found[name].append(abs(prediction.values[name] / measured - 1))
    return {name: float(np.median(values)) for name, values in found.items()}
