"""Fitting the calibration: a robust regression in log space with priors at every level.

A row's time is linear in the times of its items, and an item's time depends on its own parameter
values alone, so that the derivative by every effect follows from one finite difference a parameter.
Levels shrink towards their parents: an effect is a log factor with a prior of mean zero.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.linalg import solve

from planner.calibration.subject import Subject
from planner.calibration.table import SCALE, SHARES, TIMES, phased
from planner.roofline import Array
from planner.step.timing import Efficiency, Features, Item, item_time

Ints = NDArray[np.int64]

NAMES = (*SHARES, *TIMES)
EPSILON = 1e-5
LONGEST_STEP = 0.5


Spread = float | Mapping[str, float]
"""A standard deviation for all kinds, or by kind; kinds left out have no effect [-]."""


def _of_kind(spread: Spread, kind: str) -> float | None:
    return spread.get(kind) if isinstance(spread, Mapping) else spread


@dataclass(frozen=True, slots=True)
class Prior:
    """What is known of a parameter before the fit."""

    values: Mapping[str, float]
    """Value by kind."""
    sd: Spread
    """Standard deviation of the log value of a kind [-]."""
    levels: tuple[tuple[tuple[str, ...], Spread], ...]
    """Tags and standard deviation of the log factor, from general to special."""


@dataclass(frozen=True, slots=True)
class Priors:
    """Priors of all parameters."""

    parameters: Mapping[str, Prior]
    sharpness: Mapping[str, float]
    routing_spread: float
    speculation: Mapping[str, float]

    @classmethod
    def of(cls, content: Mapping[str, Any]) -> Priors:
        """Return the priors a parsed file holds."""
        parameters = {
            name: Prior(row["values"], row["sd"], tuple((tuple(t), sd) for t, sd in row["levels"]))
            for name, row in content["parameters"].items()
        }
        return cls(
            parameters, content["sharpness"], content["routing_spread"], content["speculation"]
        )


@dataclass
class Effects:
    """The unknowns: log factors with their prior deviation."""

    index: dict[tuple[str, int, str], int] = field(default_factory=dict)
    """Position by (parameter, level, key); level −1 is the value of a kind."""
    sd: list[float] = field(default_factory=list)

    def at(self, name: str, level: int, key: str, sd: float) -> int:
        """Return the position of an effect, new or known."""
        place = self.index.setdefault((name, level, key), len(self.sd))
        if place == len(self.sd):
            self.sd.append(sd)
        return place


@dataclass
class Slots:
    """Distinct combinations of effects one parameter is made of."""

    base: list[float] = field(default_factory=list)
    """Log of the prior value."""
    members: list[tuple[int, ...]] = field(default_factory=list)
    known: dict[tuple[float, tuple[int, ...]], int] = field(default_factory=dict)

    def at(self, base: float, members: tuple[int, ...]) -> int:
        """Return the position of a combination, new or known."""
        place = self.known.setdefault((base, members), len(self.base))
        if place == len(self.base):
            self.base.append(base)
            self.members.append(members)
        return place

    def matrix(self, effects: int) -> Any:
        """Return which effects each combination sums, shape (slot, effect)."""
        rows = [i for i, m in enumerate(self.members) for _ in m]
        columns = [j for m in self.members for j in m]
        shape = (len(self.base), effects)
        return sparse.csr_matrix((np.ones(len(rows)), (rows, columns)), shape=shape)


class Design:
    """Rows of items to fit: features, and which effects each depends on."""

    def __init__(self, priors: Priors) -> None:
        """Start without rows."""
        self.priors = priors
        self.effects = Effects()
        self.slots = {name: Slots() for name in (*NAMES, SCALE)}
        self._parts: list[dict[str, Array]] = []

    def slot(self, name: str, subject: Subject, kind: str, format: str = "") -> int:  # noqa: A002
        """Return the combination of effects of a parameter for an item of a subject."""
        prior = self.priors.parameters[name]
        value = prior.values.get(kind)
        if value is None:
            return self.slots[name].at(0.0 if name in (*SHARES, SCALE) else -50.0, ())
        members = []
        for level, (tags, spread) in enumerate(((("kind",), prior.sd), *prior.levels), start=-1):
            key, sd = subject.key(tags, kind, format), _of_kind(spread, kind)
            if key is not None and sd is not None:
                members.append(self.effects.at(name, level, key, sd))
        return self.slots[name].at(float(np.log(value)), tuple(members))

    def add(
        self,
        items: Sequence[Item],
        subject: Subject,
        phase: str,
        features: Features,
        rows: Ints,
        coefficient: Array,
        scaled: bool = True,
    ) -> None:
        """Add items of shape (item, row) that make up `coefficient` times of `rows`."""
        shape = features.compute_s.shape
        part = {
            "row": np.broadcast_to(rows, shape),
            "coefficient": np.broadcast_to(coefficient, shape),
            "compute_s": features.compute_s,
            "memory_s": features.memory_s,
            "launches": features.launches,
            "visits": features.visits,
        }

        def column(values: Sequence[float]) -> Array:
            return np.broadcast_to(np.array(values)[:, None], shape)

        kinds = [phased(item.kind, phase) for item in items]
        for name in NAMES:
            part[name] = column(
                [self.slot(name, subject, k, i.format) for k, i in zip(kinds, items, strict=True)]
            )
        knees = self.priors.sharpness
        part["sharpness"] = column([knees.get(i.kind.split()[0], np.inf) for i in items])
        part[SCALE] = np.full(shape, self.slot(SCALE, subject, phase if scaled else ""))
        self._parts.append({key: np.ravel(value) for key, value in part.items()})

    def close(self, rows: int) -> FitProblem:
        """Return the problem of all rows added, `rows` in number."""
        columns = {
            key: np.concatenate([part[key] for part in self._parts]) for key in self._parts[0]
        }
        return FitProblem(self, columns, rows)


class FitProblem:
    """A closed design, evaluated for values of its effects."""

    def __init__(self, design: Design, columns: dict[str, Array], rows: int) -> None:
        """Stack the design's columns; shape (entry,)."""
        self.rows = rows
        self.effects = design.effects
        share, self.sd = merged(design)
        self.share = share
        self.features = Features(
            columns["compute_s"], columns["memory_s"], columns["launches"], columns["visits"]
        )
        self.row = columns["row"].astype(np.int64)
        self.coefficient = columns["coefficient"]
        self.sharpness = columns["sharpness"]
        self.at = {name: columns[name].astype(np.int64) for name in (*NAMES, SCALE)}
        count = len(design.effects.sd)
        self.matrix = {
            name: (slots.matrix(count) @ (share > 0)).astype(float).minimum(1.0)
            for name, slots in design.slots.items()
        }
        self.base = {name: np.array(slots.base) for name, slots in design.slots.items()}

    def _values(self, theta: Array) -> dict[str, Array]:
        logs = {name: self.base[name] + matrix @ theta for name, matrix in self.matrix.items()}
        return {
            name: np.exp(np.minimum(value, 0.0) if name in SHARES else value)
            for name, value in logs.items()
        }

    def _items(self, values: Mapping[str, Array]) -> Array:
        memory, compute, launch, visit = (values[name][self.at[name]] for name in NAMES)
        return item_time(self.features, Efficiency(memory, compute, launch, visit, self.sharpness))

    def predict(self, theta: Array) -> Array:
        """Return the time of every row [s]."""
        values = self._values(theta)
        times = self._items(values) * values[SCALE][self.at[SCALE]] * self.coefficient
        return self._by_row(times)

    def jacobian(self, theta: Array) -> tuple[Array, Any]:
        """Return the time of every row and its derivative by the effects, (row, effect)."""
        values = self._values(theta)
        weight = values[SCALE][self.at[SCALE]] * self.coefficient
        items = self._items(values)
        parts = self._by_slot(SCALE, items * weight)
        for name in NAMES:
            moved = dict(values)
            moved[name] = values[name] * np.exp(EPSILON)
            slope = (self._items(moved) - items) / EPSILON
            if name in SHARES:
                slope = np.where(values[name][self.at[name]] < 1.0, slope, np.minimum(slope, 0) / 2)
            parts = parts + self._by_slot(name, slope * weight)
        return self._by_row(items * weight), parts

    def _by_row(self, times: Array) -> Array:
        return np.bincount(self.row, times, self.rows).astype(np.float64)

    def _by_slot(self, name: str, values: Array) -> Any:
        matrix = self.matrix[name]
        shape = (self.rows, matrix.shape[0])
        return sparse.csr_matrix((values, (self.row, self.at[name])), shape=shape) @ matrix


def merged(design: Design) -> tuple[Any, Array]:
    """Return how unknowns split into effects, (effect, unknown), and the unknowns' deviations.

    Effects that always appear together (a part that is the only one of its family) are one unknown
    to the data: their sum, which they share in proportion to their prior variances.
    """
    members: dict[int, list[tuple[str, int]]] = defaultdict(list)
    for name, slots in design.slots.items():
        for slot, effects in enumerate(slots.members):
            for effect in effects:
                members[effect].append((name, slot))
    sd = np.array(design.effects.sd)
    known: dict[tuple[tuple[str, int], ...], int] = {}
    unknown = np.array([known.setdefault(tuple(members[i]), len(known)) for i in range(len(sd))])
    variance = np.bincount(unknown, sd**2)
    share = sd**2 / variance[unknown]
    shape = (len(sd), len(known))
    return sparse.csr_matrix((share, (np.arange(len(sd)), unknown)), shape=shape), np.sqrt(variance)


SIGMA = 0.15
"""Error of a row of weight one, against which priors are weighed [-]."""

OUTLIER = 1.5
"""Errors beyond this many sigma pull with the square root of their size [-]."""

TOL = 3e-4
"""Gain of a round, as a share of the cost, at which a fit ends [-]."""

ROUNDS = 30


FAINT = 0.02
"""Information of data over that of the prior below which an unknown is solved for alone [-]."""


class Normal:
    """The normal equations of a round; unknowns that data hardly see are taken as uncoupled."""

    def __init__(self, matrix: Any, precision: Array) -> None:
        """Keep the equations of a weighted Jacobian (row, unknown) and the priors' precision."""
        seen = np.asarray(matrix.multiply(matrix).sum(axis=0)).ravel()
        self.diagonal = seen + precision
        self.coupled = np.flatnonzero(seen > FAINT * precision)
        part = matrix.tocsc()[:, self.coupled]
        self.matrix = (part.T @ part).toarray()
        self.matrix[np.diag_indices_from(self.matrix)] += precision[self.coupled]

    def step(self, gradient: Array, damping: float) -> Array:
        """Return the step against a gradient, damped after Levenberg and Marquardt."""
        step: Array = -gradient / (self.diagonal * (1.0 + damping))
        damped = self.matrix.copy()
        damped[np.diag_indices_from(damped)] *= 1.0 + damping
        step[self.coupled] = solve(
            damped, -gradient[self.coupled], assume_a="pos", check_finite=False
        )
        return step


def fit(problem: FitProblem, measured: Array, weight: Array, start: Array | None = None) -> Array:
    """Return the effects that explain `measured` [s]; rows of weight zero are left out.

    Gauss–Newton on log errors with a pseudo-Huber loss (iteratively reweighted) and Gaussian priors
    on the effects, damped after Levenberg and Marquardt. Returns the unknowns of the problem.
    """
    use = weight > 0
    target = np.log(measured[use])
    scale = np.sqrt(weight[use]) / SIGMA
    knee = OUTLIER * SIGMA
    precision = problem.sd**-2.0

    def cost(error: Array, theta: Array) -> float:
        loss = 2 * knee**2 * (np.sqrt(1 + (error / knee) ** 2) - 1)
        return float((scale**2 * loss).sum() + (precision * theta**2).sum())

    theta = np.zeros(len(problem.sd)) if start is None else start
    times, slopes = problem.jacobian(theta)
    error = np.log(times[use]) - target
    best, damping = cost(error, theta), 1e-3
    for _ in range(ROUNDS):
        pull = scale * (1 + (error / knee) ** 2) ** -0.25
        matrix = sparse.diags(pull) @ (sparse.diags(1 / times[use]) @ slopes[use])
        normal = Normal(matrix, precision)
        gradient = matrix.T @ (pull * error) + precision * theta
        for _ in range(8):
            step = np.clip(normal.step(gradient, damping), -LONGEST_STEP, LONGEST_STEP)
            tried = np.log(problem.predict(theta + step)[use]) - target
            after = cost(tried, theta + step)
            if after < best:
                break
            damping *= 5
        else:
            break
        gain, best = best - after, after
        theta, damping = theta + step, max(damping / 5, 1e-6)
        if gain < TOL * best:
            break
        times, slopes = problem.jacobian(theta)
        error = np.log(times[use]) - target
    return theta
