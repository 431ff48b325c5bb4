"""A local refit: a few factors on top of the shipped calibration, from a user's own rows.

Times of decode and of prompts and TTFT each take a factor per (GPU, engine), per size of model, per
format and per model there: what bounds a small model is not what bounds a large one, so that most
of what a run says is about models of its size. They are log factors with a Gaussian prior around
zero, so that few rows, and runs of few requests, move little and many rows move as far as they
agree. Nothing else of the calibration changes.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from planner.calibration import Calibration
from planner.calibration.own import LEVELS
from planner.deployment import Deployment
from planner.errors import InvalidInput
from planner.fitting.own_rows import OwnRows, weight_of
from planner.fitting.own_solver import solve
from planner.plans.progress import tracked
from planner.roofline import Array
from planner.runs.predict import predict
from planner.runs.rows import Row
from planner.runs.setup import setup

FOLDS = 5

Factors = tuple[dict[str, float], ...]


@dataclass(frozen=True, slots=True)
class GroupError:
    """Median error of one quantity over the rows of one GPU and engine [-]."""

    gpu: str
    engine: str
    quantity: str
    rows: int
    before: float
    after: float


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
    groups: tuple[GroupError, ...] = ()
    """The errors by GPU and engine."""


@dataclass(frozen=True, slots=True)
class Member:
    """A row with the deployment it ran on, and its number among the rows that are fitted."""

    row: Row
    deployment: Deployment
    number: int = 0


def refit(rows: Sequence[Row], shipped: Calibration) -> Fit:
    """Return the local factors that rows ask for.

    Raises InvalidInput, one line, where none of the rows can be predicted.
    """
    sets, notes = _predictable(rows, shipped)
    count = sum(len(several) for several, _ in sets)
    if not sets:
        raise InvalidInput(f"results: no row can be predicted: {notes[0] if notes else 'no rows'}")
    factors: Factors = tuple({} for _ in LEVELS)
    before, after, left_out = _Errors(), _Errors(), _Errors()
    groups: list[GroupError] = []
    folds = FOLDS if count >= 2 * FOLDS else 0
    for several, measured in tracked(sets, len(sets)):
        number = np.array([one.number for one in several])[measured.row]
        out = number % FOLDS == np.arange(folds)[:, None]
        theta = solve(measured, np.vstack([measured.weight, np.where(out, 0.0, measured.weight)]))
        rounded = _add(factors, measured, theta[0])
        at_first, fitted_to, *apart = _off(
            measured, np.vstack([np.zeros_like(rounded), rounded, theta[1:]])
        )
        before.add(measured, at_first)
        after.add(measured, fitted_to)
        for misses, mask in zip(apart, out, strict=True):
            left_out.add(measured, misses, mask)
        groups += _group_errors(measured, at_first, fitted_to)
    return Fit(
        edition=shipped.edition,
        factors=factors,
        rows=count,
        before=before.medians(),
        after=after.medians(),
        left_out=left_out.medians(),
        notes=tuple(notes),
        groups=tuple(groups),
    )


def fitted(rows: Sequence[Row], shipped: Calibration) -> Factors:
    """Return the factors of rows, fitted on their own for each GPU and engine."""
    factors: Factors = tuple({} for _ in LEVELS)
    for several in _sets([Member(row, setup(row).deployment) for row in rows]):
        measured = _own_rows(several, shipped)
        _add(factors, measured, solve(measured, measured.weight[None])[0])
    return factors


def errors(rows: Sequence[Row], calibration: Calibration) -> dict[str, float]:
    """Return the median error of each quantity over rows [-]; TTFT of runs that do not queue."""
    misses: dict[str, list[float]] = defaultdict(list)
    for row, prediction in zip(rows, predict(rows, calibration), strict=True):
        for name, measured in row.measured.items():
            if weight_of(row, name):
                misses[name].append(abs(prediction.values[name] / measured - 1))
    return {name: float(np.median(values)) for name, values in misses.items()}


class _Errors:
    """Errors collected by quantity."""

    def __init__(self) -> None:
        self.values: dict[str, list[Array]] = defaultdict(list)

    def add(self, rows: OwnRows, misses: Array, use: Array | None = None) -> None:
        """Add the errors of the entries that count, of those in `use`."""
        counted = rows.weight > 0 if use is None else (rows.weight > 0) & use.astype(bool)
        for name in dict.fromkeys(rows.name[counted].tolist()):
            self.values[name].append(misses[counted & (rows.name == name)])

    def medians(self) -> dict[str, float]:
        """Return the median of each quantity."""
        return {name: float(np.median(np.concatenate(x))) for name, x in self.values.items()}


def _off(rows: OwnRows, theta: Array) -> Array:
    """Relative errors of the entries at log factors, shape (fit, entry)."""
    measured = np.where(rows.measured > 0, rows.measured, np.inf)
    return np.abs(rows.predict(theta) / measured - 1)


def _add(factors: Factors, rows: OwnRows, theta: Array) -> Array:
    """Put factors of a set among the others, four digits of each; return the logs of those."""
    rounded = [float(f"{np.exp(value):.4g}") for value in theta]
    for (level, key), value in zip(rows.unknowns, rounded, strict=True):
        factors[level][key] = value
    return np.log(rounded)


def _group_errors(rows: OwnRows, before: Array, after: Array) -> list[GroupError]:
    counted = rows.weight > 0
    names = dict.fromkeys(rows.name[counted].tolist())
    chosen = {name: counted & (rows.name == name) for name in names}
    return [
        GroupError(
            rows.gpu,
            rows.engine,
            name,
            int(mask.sum()),
            float(np.median(before[mask])),
            float(np.median(after[mask])),
        )
        for name, mask in chosen.items()
    ]


def _own_rows(several: Sequence[Member], shipped: Calibration) -> OwnRows:
    return OwnRows([one.row for one in several], [one.deployment for one in several], shipped)


def _sets(members: Sequence[Member]) -> list[list[Member]]:
    """Rows of each GPU and engine."""
    sets: dict[tuple[str, str], list[Member]] = defaultdict(list)
    for one in members:
        tags = one.deployment.subject.tags
        sets[tags["gpu"], tags["engine"]].append(one)
    return list(sets.values())


def _predictable(
    rows: Sequence[Row], shipped: Calibration
) -> tuple[list[tuple[list[Member], OwnRows]], list[str]]:
    """Rows of each GPU and engine that are predicted, numbered, and why the others are not."""
    members, notes = [], []
    for place, row in enumerate(rows):
        try:
            members.append(Member(row, setup(row).deployment, place))
        except ValueError as error:
            notes.append(f"row {row.inputs['row']}: {error}")
    sets: list[tuple[list[Member], OwnRows]] = []
    impossible: list[Member] = []
    for several in _sets(members):
        with np.errstate(all="ignore"):
            measured = _own_rows(several, shipped)
            finite = measured.predictable()
        if not finite.all():
            impossible += [one for one, good in zip(several, finite, strict=True) if not good]
            several = [one for one, good in zip(several, finite, strict=True) if good]
            measured = _own_rows(several, shipped) if several else measured
        if several:
            sets.append((several, measured))
    impossible.sort(key=lambda member: member.number)
    notes += [
        f"row {one.row.inputs['row']}: no finite time is predicted for it" for one in impossible
    ]
    places = sorted(one.number for several, _ in sets for one in several)
    numbers = {place: number for number, place in enumerate(places)}
    numbered = [
        ([replace(one, number=numbers[one.number]) for one in several], measured)
        for several, measured in sets
    ]
    return numbered, list(dict.fromkeys(notes))
