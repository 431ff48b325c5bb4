"""The calibration file, and what it says an item of a step reaches."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from planner.calibration.intervals import Intervals
from planner.calibration.subject import PHASED, PROMPT, Subject
from planner.step.timing import Efficiency, Item

EDITION = "2026-12-01"

SHARES = ("memory", "compute")
TIMES = ("launch_s", "visit_s")
DEFAULTS = {"memory": 1.0, "compute": 1.0, "launch_s": 0.0, "visit_s": 0.0}
"""Figures of an item, by what one without a figure has."""
SCALE = "scale"
QUEUEING = "queueing"


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter of the law: a value by kind, times the factors of every level that is known."""

    levels: tuple[tuple[str, ...], ...]
    """Tags by which deviations are told apart, from general to special."""
    values: Mapping[str, float]
    """Value by kind of item."""
    factors: tuple[Mapping[str, float], ...]
    """By level: factor by the tags' values joined with a bar."""

    def of(self, subject: Subject, kind: str, format: str = "") -> float | None:  # noqa: A002
        """Return the value for an item, or None for a kind it does not apply to."""
        value = self.values.get(kind)
        if value is None:
            return None
        for level, factors in zip(self.levels, self.factors, strict=True):
            key = subject.key(level, kind, format)
            if key is not None:
                value *= factors.get(key, 1.0)
        return value


@dataclass(frozen=True, slots=True)
class Speculation:
    """Multi-token prediction: a draft layer guesses tokens that one step of the model verifies."""

    drafts: int
    """Tokens guessed a step [-]."""
    accepted: float
    """Tokens a step yields on average, the model's own included: 1 to 1 + drafts [-]."""


@dataclass(frozen=True, slots=True, eq=False)
class Calibration:
    """Everything fitted, with where it came from; what is cached is cached by the object itself."""

    edition: str
    parameters: Mapping[str, Parameter]
    sharpness: Mapping[str, float]
    routing_spread: float
    """How unequally tokens choose experts, see `kernels.skewed_distinct_experts` [-]."""
    speculation: Speculation
    """Multi-token prediction as fitted to runs that had it on."""
    intervals: Intervals
    provenance: Mapping[str, Any]

    def efficiency(self, items: Sequence[Item], subject: Subject, phase: str) -> Efficiency:
        """Return what `items` reach for a subject in a phase (decode or prompt).

        Kinds without a figure run at the datasheet's; shares never exceed one.
        """
        return _efficiency(self, tuple(items), tuple(subject.tags.items()), phase)

    def looked_up(self, items: Sequence[Item], subject: Subject, phase: str) -> Efficiency:
        """Return the same as `efficiency`, which keeps it."""
        tags = tuple(subject.tags.items())
        figures = [_figures(self, item, tags, phase) for item in items]
        memory, compute, launch_s, visit_s = np.array(figures).reshape(-1, len(DEFAULTS)).T
        return Efficiency(
            memory=np.minimum(memory, 1.0),
            compute=np.minimum(compute, 1.0),
            launch_s=launch_s,
            visit_s=visit_s,
            sharpness=np.array(
                [self.sharpness.get(item.kind.split()[0], math.inf) for item in items]
            ),
            scale=self.scale(subject, phase),
        )

    def interval(
        self, quantity: str, subject: Subject, between_nodes: bool = False
    ) -> tuple[float, float]:
        """Return the factors from a predicted time to its p10 and p90 [-]; kept."""
        return _interval(self, quantity, tuple(subject.tags.items()), between_nodes)

    def scale(self, subject: Subject, kind: str) -> float:
        """Return the factor on a whole step (decode or prompt) or on TTFT (start) [-]."""
        value = _value(self, SCALE, tuple(subject.tags.items()), kind)
        return 1.0 if value is None else value

    def number(self, name: str, subject: Subject) -> float:
        """Return a figure of how an engine lets requests in: first [s], burst, wait [-]."""
        value = _value(self, QUEUEING, tuple(subject.tags.items()), name)
        if value is None:
            raise KeyError(name)
        return value


@lru_cache(maxsize=4096)
def _efficiency(
    calibration: Calibration, items: tuple[Item, ...], tags: tuple[tuple[str, str], ...], phase: str
) -> Efficiency:
    """Return what items reach, kept: the splits of a model have the same items and tags."""
    return calibration.looked_up(items, Subject(dict(tags)), phase)


@lru_cache(maxsize=4096)
def _interval(
    calibration: Calibration, quantity: str, tags: tuple[tuple[str, str], ...], between_nodes: bool
) -> tuple[float, float]:
    return calibration.intervals.of_case(quantity, Subject(dict(tags)), between_nodes)


@lru_cache(maxsize=4096)
def _value(
    calibration: Calibration, parameter: str, tags: tuple[tuple[str, str], ...], kind: str
) -> float | None:
    """Return a parameter that is of no item, kept: the splits of a model have the same tags."""
    return calibration.parameters[parameter].of(Subject(dict(tags)), kind)


@lru_cache(maxsize=4096)
def _figures(
    calibration: Calibration, item: Item, tags: tuple[tuple[str, str], ...], phase: str
) -> tuple[float, ...]:
    """Return the figures of one item, kept: splits differ in few of theirs."""
    subject, kind = Subject(dict(tags)), phased(item.kind, phase)
    values = (calibration.parameters[name].of(subject, kind, item.format) for name in DEFAULTS)
    return tuple(
        default if value is None else value
        for value, default in zip(values, DEFAULTS.values(), strict=True)
    )


def phased(kind: str, phase: str) -> str:
    """Return the kind under which an item of a phase is calibrated."""
    return f"{kind} {PROMPT}" if phase == PROMPT and kind in PHASED else kind


def from_json(content: Mapping[str, Any]) -> Calibration:
    """Return the calibration a parsed file holds."""
    return Calibration(
        edition=content["edition"],
        parameters={
            name: Parameter(
                tuple(tuple(level) for level in row["levels"]), row["values"], tuple(row["factors"])
            )
            for name, row in content["parameters"].items()
        },
        sharpness=content["sharpness"],
        routing_spread=content["routing_spread"],
        speculation=Speculation(**content["speculation"]),
        intervals=Intervals.of(content["intervals"]),
        provenance=content["provenance"],
    )
