"""The rows of one GPU and engine, set up once: what was measured, and predictions of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from planner.calibration import Calibration
from planner.calibration.own import LEVELS
from planner.deployment import Deployment
from planner.fitting.scaled import PHASES, ScaledRows, ScaledServing, scaled
from planner.fitting.tabulated import Tabulated
from planner.roofline import Array, Bools
from planner.runs.groups import Ints, grouped
from planner.runs.rows import Row

TTFT_WEIGHT = 0.1
"""Weight of a TTFT beside a TPOT: it varies more between runs [-]."""

FEW_REQUESTS = 32
"""Requests of a run that tell half of what many would [-]."""

STEP = 0.01
"""Difference of a log scale from which a slope is taken: the steady state is solved to a part in
ten thousand, so that a smaller one would see its rounds [-]."""

Unknown = tuple[int, str]
"""Level of `LEVELS`, and the values of its tags."""


@dataclass(frozen=True, slots=True)
class Entries:
    """Entries of rows that share a deployment."""

    rows: ScaledRows
    cells: tuple[tuple[str, Ints, Ints], ...]
    """Quantity, positions of its entries, and of their rows among those predicted."""
    split: Array
    """Which unknowns each log scale sums, shape (phase, unknown)."""


class OwnRows:
    """Measured entries (a row has one or two) of one GPU and engine, as functions of unknowns."""

    def __init__(
        self, rows: Sequence[Row], deployments: Sequence[Deployment], figures: Calibration
    ) -> None:
        """Set up rows that ran on deployments of one GPU and engine."""
        tags = deployments[0].subject.tags
        self.gpu, self.engine = tags["gpu"], tags["engine"]
        entries = [(i, name) for i, row in enumerate(rows) for name in row.measured]
        self.row: Ints = np.array([i for i, _ in entries], dtype=np.int64)
        """Row of each entry."""
        self.name = np.array([name for _, name in entries])
        self.measured = np.array([rows[i].measured[name] for i, name in entries])
        self.weight = np.array([weight_of(rows[i], name) for i, name in entries])
        self.unknowns: list[Unknown] = list(
            dict.fromkeys(
                unknown
                for row, one in zip(rows, deployments, strict=True)
                for phase in _phases(row)
                for unknown in _unknowns(one, phase)
            )
        )
        self.deviation = np.array([LEVELS[level][1] for level, _ in self.unknowns])
        """Of the prior of each unknown [-]."""
        at = {entry: position for position, entry in enumerate(entries)}
        self.parts = [
            self._part(group.deployment, [int(i) for i in group.rows], rows, figures, at)
            for group in grouped(deployments)
        ]
        self.part: Ints = np.empty(len(entries), dtype=np.int64)
        """Part of each entry."""
        for number, part in enumerate(self.parts):
            for _, places, _ in part.cells:
                self.part[places] = number
        self._tabulate()

    def _tabulate(self) -> None:
        """Set up serving rows of all deployments together."""
        numbers = [n for n, part in enumerate(self.parts) if isinstance(part.rows, ScaledServing)]
        rows = [part.rows for part in self.parts if isinstance(part.rows, ScaledServing)]
        self.serving = Tabulated(rows) if rows else None
        sizes = [len(one.clients) for one in rows]
        self.served: Ints = np.repeat(np.array(numbers, dtype=np.int64), sizes)
        """Part of each serving row."""
        starts = np.cumsum([0, *sizes])
        self.cells = [
            (name, places, among + start)
            for number, start in zip(numbers, starts, strict=False)
            for name, places, among in self.parts[number].cells
        ]
        """Of serving rows, as those of a part."""

    def _part(
        self,
        deployment: Deployment,
        members: Sequence[int],
        rows: Sequence[Row],
        figures: Calibration,
        at: dict[tuple[int, str], int],
    ) -> Entries:
        names = dict.fromkeys(name for i in members for name in rows[i].measured)
        cells = []
        for name in names:
            pairs = [(at[i, name], k) for k, i in enumerate(members) if (i, name) in at]
            places, among = np.array(pairs, dtype=np.int64).T
            cells.append((name, places, among))
        split = np.zeros((len(PHASES), len(self.unknowns)))
        for number, phase in enumerate(PHASES):
            for unknown in _unknowns(deployment, phase):
                if unknown in self.unknowns:
                    split[number, self.unknowns.index(unknown)] = 1.0
        one = scaled(deployment, [rows[i] for i in members], figures)
        return Entries(one, tuple(cells), split)

    def predict(self, theta: Array) -> Array:
        """Return every entry at log factors of shape (fit, unknown), shape (fit, entry)."""
        values = np.empty((len(theta), len(self.row)))
        for part in self.parts:
            predicted = part.rows.predict(np.exp(theta @ part.split.T))
            for name, places, among in part.cells:
                values[:, places] = predicted[name][:, among]
        return values

    def predictable(self) -> Bools:
        """Return of which rows every figure is predicted to be finite."""
        with np.errstate(all="ignore"):
            logs = self._logs(np.ones((1, len(self.parts), len(PHASES))))[0]
        good = np.ones(int(self.row.max(initial=-1)) + 1, dtype=bool)
        np.logical_and.at(good, self.row, np.isfinite(logs))
        return good

    def slopes(self, theta: Array) -> tuple[Array, Array]:
        """Return the log of every entry, (fit, entry), and its slopes, (fit, entry, unknown).

        An entry depends on the three log scales of its deployment alone, so that three differences
        give its slopes by all unknowns.
        """
        fits, moves = len(theta), np.vstack([np.zeros(len(PHASES)), STEP * np.eye(len(PHASES))])
        scales = self._scales(theta)[:, None] + moves[:, None]
        logs = self._logs(np.exp(scales.reshape(-1, *scales.shape[2:])))
        logs = logs.reshape(fits, len(moves), -1)
        by_scale = (logs[:, 1:] - logs[:, :1]) / STEP
        split = np.stack([part.split for part in self.parts])[self.part]
        return logs[:, 0], np.einsum("fpe,epu->feu", by_scale, split, optimize=True)

    def _scales(self, theta: Array) -> Array:
        """Return the log scales of parts at log factors, shape (fit, part, phase)."""
        split = np.stack([part.split for part in self.parts])
        return np.asarray(np.einsum("fu,kpu->fkp", theta, split))

    def _logs(self, scales: Array) -> Array:
        """Return the log of every entry at scales of shape (variant, part, phase)."""
        values = np.empty((len(scales), len(self.row)))
        if self.serving is not None:
            predicted = self.serving.predict(scales[:, self.served])
            for name, places, among in self.cells:
                values[:, places] = predicted[name][:, among]
        for number, part in enumerate(self.parts):
            if not isinstance(part.rows, ScaledServing):
                one = part.rows.predict(scales[:, number])
                for name, places, among in part.cells:
                    values[:, places] = one[name][:, among]
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(np.log(values))


def _phases(row: Row) -> tuple[str, ...]:
    return PHASES if row.kind == "serving" else PHASES[:1]


def _unknowns(deployment: Deployment, phase: str) -> list[Unknown]:
    """The factors that make up the scale of a phase."""
    keys = (deployment.subject.key(tags, phase) for tags, _ in LEVELS)
    return [(level, key) for level, key in enumerate(keys) if key is not None]


def weight_of(row: Row, name: str) -> float:
    """Return the weight of a measured quantity, none for a TTFT of a run that queues [-].

    A run of few requests counts less; one that does not say how many is taken to have enough.
    """
    requests = float(row.remarks.get("requests") or FEW_REQUESTS * 10)
    counted = requests / (requests + FEW_REQUESTS)
    if name == "ttft_ms":
        return 0.0 if row.remarks.get("queued") == "1" else TTFT_WEIGHT * counted
    return counted if row.measured[name] > 0 else 0.0
