"""How far a prediction may be off: 80% intervals by how near the case is to measured ones."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from planner.calibration.subject import Subject
from planner.engines.profiles import never_measured

NEARNESS = ("measured accelerator and model", "measured accelerator", "family", "datasheet only")
"""Classes of cases: what is measured, from near to far."""

COVERED = ("pairs", "gpus", "families", "vendors")

UNSEEN_LEVEL = 2.0
"""Factor on the width of the interval where collectives pass a level of links that no row of the
fit has, on its logarithm (assumption) [-]."""

SERVING = "serving"
"""Mode of a case that no benchmark's loop explains: an engine that serves."""


@dataclass(frozen=True, slots=True)
class Coverage:
    """What was measured in one mode (serving, a benchmark's loop, a static batch)."""

    pairs: frozenset[str]
    """Accelerator and model joined by a bar."""
    gpus: frozenset[str]
    families: frozenset[str]
    vendors: frozenset[str]

    def nearness(self, subject: Subject) -> str:
        """Return the class of a subject."""
        tags = subject.tags
        if f"{tags['gpu']}|{tags['model']}" in self.pairs:
            return NEARNESS[0]
        if tags["gpu"] in self.gpus:
            return NEARNESS[1]
        return NEARNESS[2] if tags["family"] in self.families else NEARNESS[3]


@dataclass(frozen=True, slots=True)
class Intervals:
    """Intervals of every quantity, from rows that were left out of the fit."""

    coverage: Mapping[str, Coverage]
    """By mode."""
    factors: Mapping[str, Mapping[str, Mapping[str, tuple[float, float]]]]
    """From a prediction to its p10 and p90, by quantity, mode and nearness [-]."""
    engines: Mapping[str, str]
    """Mode of engines that were never measured serving."""
    unseen_vendor: float = 1.0
    """Factor on the width of the interval where nothing of a vendor, or in a mode, was measured,
    on its logarithm [-]."""
    sources: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    """From a prediction to its p10 and p90 by quantity, over runs of sources left out [-]: what a
    set-up of one's own may be off by, which is a draw from the set-ups of sources."""
    vendors: Mapping[str, Mapping[str, tuple[float, float]]] = field(default_factory=dict)
    """The same over runs of accelerators left out by vendor, by quantity and mode [-]."""
    unseen_engines: Mapping[str, Mapping[str, tuple[float, float]]] = field(default_factory=dict)
    """The same over runs of engines left out, by quantity and mode [-]."""

    @classmethod
    def of(cls, content: Mapping[str, Any]) -> Intervals:
        """Return the intervals a parsed calibration file holds."""
        return cls(
            coverage={
                mode: Coverage(*(frozenset(row.get(n, ())) for n in COVERED))
                for mode, row in content.get("coverage", {}).items()
            },
            factors={
                quantity: {
                    mode: {near: (pair[0], pair[1]) for near, pair in classes.items()}
                    for mode, classes in modes.items()
                }
                for quantity, modes in content.get("factors", {}).items()
            },
            engines=content.get("engines", {}),
            unseen_vendor=content.get("unseen_vendor", 1.0),
            sources={name: (p[0], p[1]) for name, p in content.get("sources", {}).items()},
            vendors=_by_mode(content.get("vendors", {})),
            unseen_engines=_by_mode(content.get("unseen_engines", {})),
        )

    def mode(self, subject: Subject) -> str:
        """Return the mode of a subject: the row's own, or that of its engine."""
        stated = subject.tags.get("mode", "")
        return stated or self.engines.get(subject.tags.get("engine", ""), SERVING)

    def nearness(self, subject: Subject) -> str:
        """Return how near a subject is to what was measured, one of `NEARNESS`.

        Under an engine of which no run is on record it is near to nothing, whatever the device.
        """
        if self._unseen_engine(subject):
            return NEARNESS[-1]
        coverage = self.coverage.get(self.mode(subject))
        return coverage.nearness(subject) if coverage else NEARNESS[-1]

    def measures(self, quantity: str, subject: Subject) -> bool:
        """Return whether a time was measured in the subject's own mode."""
        return self.mode(subject) in self.factors.get(quantity, {})

    def borrowed(self, quantity: str, subject: Subject) -> bool:
        """Return whether a time was measured in other modes than the subject's alone."""
        modes, mode = self.factors.get(quantity, {}), self.mode(subject)
        return mode in self.coverage and mode not in modes and SERVING in modes

    def of_case(
        self, quantity: str, subject: Subject, between_nodes: bool = False
    ) -> tuple[float, float]:
        """Return the factors from a predicted time to its p10 and p90 [-].

        Those of serving, widened as for an unseen vendor, where the subject's mode has none. Never
        narrower than over engines or vendors left out where the subject's was never measured, nor
        than over sources left out where it is no run of a source. A replica that spans nodes is
        wider: no row of the fit does.
        """
        low, high = self._of_class(quantity, subject)
        if self.own_setup(subject):
            low, high = _widest((low, high), self.sources.get(quantity))
        wider = UNSEEN_LEVEL if between_nodes else 1.0
        return low**wider, high**wider

    def own_setup(self, subject: Subject) -> bool:
        """Return whether a subject serves and is no run of a source that was measured."""
        return self.mode(subject) == SERVING and not subject.tags.get("source")

    def described(self, subject: Subject) -> str:
        """Return the class of a subject, and which others left out set its least width."""
        floors = [
            name
            for name, holds in (
                ("a source", self.sources and self.own_setup(subject)),
                ("an engine", self.unseen_engines and self._unseen_engine(subject)),
            )
            if holds
        ]
        near = self.nearness(subject)
        if not floors:
            return near
        return f"{near}, and not narrower than those of {' or '.join(floors)} left out"

    def _unseen_engine(self, subject: Subject) -> bool:
        return never_measured(subject.tags.get("engine", ""))

    def _of_class(self, quantity: str, subject: Subject) -> tuple[float, float]:
        mode = self.mode(subject)
        if mode not in self.coverage:
            return 1.0, 1.0
        borrowed = self.borrowed(quantity, subject)
        classes = self.factors.get(quantity, {}).get(SERVING if borrowed else mode, {})
        low, high = classes.get(self.nearness(subject), (1.0, 1.0))
        if self._unseen_engine(subject):
            low, high = _widest((low, high), self.unseen_engines.get(quantity, {}).get(mode))
        if subject.tags["vendor"] in self.coverage[mode].vendors and not borrowed:
            return low, high
        unseen = self.vendors.get(quantity, {}).get(mode)
        if unseen is None:
            return low**self.unseen_vendor, high**self.unseen_vendor
        return _widest((low, high), unseen)


def _widest(pair: tuple[float, float], other: tuple[float, float] | None) -> tuple[float, float]:
    """The interval that holds both."""
    low, high = other or pair
    return min(pair[0], low), max(pair[1], high)


def _by_mode(content: Mapping[str, Any]) -> dict[str, dict[str, tuple[float, float]]]:
    return {
        name: {mode: (pair[0], pair[1]) for mode, pair in modes.items()}
        for name, modes in content.items()
    }
