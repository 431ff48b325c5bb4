"""Predictions of the committed rows, each made by a fit that has not seen it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from zlib import crc32

import numpy as np

from planner.calibration.intervals import NEARNESS, SERVING
from planner.calibration.subject import Subject, accelerator_tags
from planner.calibration.table import Calibration, from_json
from planner.fitting.refit import Refit
from planner.hw import get_accelerator
from planner.roofline import Array, Bools, Words
from planner.runs.groups import Group
from planner.runs.harness import as_a_user_asks
from planner.runs.predict import Prediction, predict
from planner.runs.rows import Row

FOLDS = 5
"""Parts the configurations are divided into [-]."""


@dataclass(frozen=True, slots=True)
class Held:
    """One row, predicted by a fit without it."""

    row: Row
    subject: Subject
    by: str
    """What was left out with it: config, model, gpu, engine, family, source, vendor, or `USER`."""
    fold: str
    prediction: Prediction
    doubt: str = ""
    """Why the measurement is doubted; empty for most."""

    @property
    def mode(self) -> str:
        """How the row was measured."""
        return self.subject.tags.get("mode", "") or SERVING


def subjects(groups: Sequence[Group], count: int) -> list[Subject]:
    """Return the subject of every row of some groups."""
    by_row: dict[int, Subject] = {}
    for group in groups:
        by_row.update(dict.fromkeys(group.rows.tolist(), group.deployment.subject))
    return [by_row[i] for i in range(count)]


def _configuration(row: Row, subject: Subject) -> str:
    names = ("tp", "pp", "attention_dp", "moe_ep", "n_gpus")
    split = "|".join(row.inputs.get(name, "") for name in names)
    parts = "|".join(subject.tags[t] for t in ("gpu", "engine", "model", "weights", "backend"))
    return f"{crc32(f'{parts}|{split}'.encode()) % FOLDS}"


def _key(by: str, row: Row, subject: Subject) -> str:
    if by == "config":
        return _configuration(row, subject)
    return subject.tags.get(SOURCE if by == USER else by, "")


def _whole(by: str) -> set[str]:
    """Folds that would leave out all of a kind: rows without a source, the vendor of most."""
    return {SOURCE: {""}, USER: {""}, "vendor": {MOST_MEASURED_VENDOR}}.get(by, set())


SOURCE, USER = "source", "user"
"""Leaving out sources: predicted with what is known of them, or as a user would ask."""

MOST_MEASURED_VENDOR = "nvidia"
"""Without its rows nothing is left to fit serving to."""

NEAR = dict(zip(("config", "model", "gpu", "family"), NEARNESS, strict=True))
"""The class of cases each way of leaving out stands for."""


class Holdout:
    """A fit to all rows, and the fits that leave some out."""

    def __init__(self, refit: Refit) -> None:
        """Keep the fit and what its rows are."""
        self.refit = refit
        self._held: dict[str, list[Held]] = {}
        self._fits: dict[tuple[str, str], Calibration] = {}
        self.rows = [*refit.serving.rows, *refit.decode.rows]
        self.serving = len(refit.serving.rows)
        self.subjects = [
            *subjects(refit.serving.groups, self.serving),
            *subjects(refit.decode.groups, len(refit.decode.rows)),
        ]
        states = refit.serving.states(from_json(refit.content))
        self.doubts = [*refit.serving.doubts(states), *refit.decode.doubts]
        self.sample_gpus = [one.gpu for one in refit.samples for _ in one.seconds]
        families = {g: accelerator_tags(get_accelerator(g))["family"] for g in self.sample_gpus}
        self.sample_families = [families[gpu] for gpu in self.sample_gpus]
        vendors = {g: get_accelerator(g).vendor.lower() for g in families}
        self.sample_vendors = [vendors[gpu] for gpu in self.sample_gpus]

    def keys(
        self, by: str, parts: tuple[bool, bool, bool] = (True, True, True)
    ) -> tuple[Words, list[str]]:
        """Return what is left out with each row and sample, and the folds that serving rows have.

        `parts` says whether serving rows, decode rows and kernel samples are among them.
        """
        own = [_key(by, r, s) for r, s in zip(self.rows, self.subjects, strict=True)]
        owners = {
            "gpu": self.sample_gpus,
            "family": self.sample_families,
            "vendor": self.sample_vendors,
        }.get(by, [""] * len(self.sample_gpus))
        n = self.serving
        chosen = [
            key
            for part, used in zip((own[:n], own[n:], owners), parts, strict=True)
            for key in part
            if used
        ]
        return np.array(chosen), sorted(set(own[:n]) - _whole(by) - {""})

    def held(self, by: str, serving_only: bool = False) -> list[Held]:
        """Return every row once, predicted without the rows that share its key; kept.

        `serving_only` leaves out folds that have no serving run.
        """
        keys, known = self.keys(by)
        if serving_only and by not in self._held:
            return [one for fold in known for one in self._fold(by, fold, keys == fold)]
        if by not in self._held:
            folds = sorted(set(keys[: len(self.rows)].tolist()) - _whole(by))
            self._held[by] = [one for fold in folds for one in self._fold(by, fold, keys == fold)]
        return [one for one in self._held[by] if one.fold in known or not serving_only]

    def without(self, by: str, fold: str) -> Calibration:
        """Return the fit that leaves out a fold; kept."""
        by = SOURCE if by == USER else by
        if (by, fold) not in self._fits:
            out, n, rows = self.keys(by)[0] == fold, self.serving, len(self.rows)
            samples = out[rows:] if by in ("gpu", "family", "vendor") else None
            content = self.refit.without(out[:n], out[n:rows], samples)
            self._fits[by, fold] = from_json(content)
        return self._fits[by, fold]

    def _fold(self, by: str, fold: str, out: Bools) -> Iterator[Held]:
        figures = self.without(by, fold)
        places = np.flatnonzero(out[: len(self.rows)]).tolist()
        runs = [as_a_user_asks(self.rows[i]) if by == USER else self.rows[i] for i in places]
        for place, one in zip(places, predict(runs, figures), strict=True):
            yield self._one(place, by, fold, one)

    def fitted(self) -> Iterator[Held]:
        """Yield every row as the fit to all of them predicts it."""
        predictions = predict(self.rows, from_json(self.refit.content))
        for place, one in enumerate(predictions):
            yield self._one(place, "nothing", "", one)

    def _one(self, place: int, by: str, fold: str, prediction: Prediction) -> Held:
        subject, doubt = self.subjects[place], self.doubts[place]
        return Held(self.rows[place], subject, by, fold, prediction, doubt)

    def held_samples(self) -> Iterator[HeldSample]:
        """Yield every kernel sample, predicted without anything measured on its accelerator."""
        times = self.refit.times
        owners = [*(s.tags["gpu"] for s in self.subjects), *self.sample_gpus]
        first = len(self.subjects)
        for gpu in sorted(set(self.sample_gpus)):
            out = np.array([owner == gpu for owner in owners])
            predicted = times.predicted(~out)[first:]
            place = 0
            for one in self.refit.samples:
                after = place + len(one.seconds)
                if one.gpu == gpu:
                    pure = one.features(get_accelerator(gpu))
                    roof = np.maximum(pure.compute_s, pure.memory_s).sum(axis=0)
                    kind = one.items[0].kind
                    yield HeldSample(kind, gpu, one.seconds, predicted[place:after], roof)
                place = after


@dataclass(frozen=True, slots=True)
class HeldSample:
    """Samples of one set: measured, predicted without their accelerator, and its roofline [s]."""

    kind: str
    gpu: str
    measured: Array
    predicted: Array
    datasheet: Array


REQUEST = "request_ms"
"""Time of a whole request, from its first token and those between: what rates follow from."""


def error(held: Held, name: str) -> float | None:
    """Return log(measured time/predicted time) of a row's quantity, or None without both."""
    measured, predicted = (
        _time(held.row, values, name) for values in (held.row.measured, held.prediction.values)
    )
    if not measured or not predicted:
        return None
    log_error = float(np.log(measured / predicted))
    return -log_error if held.row.inputs.get("metric") == "decode_tokens_per_s" else log_error


def _time(row: Row, values: Mapping[str, float], name: str) -> float | None:
    if name != REQUEST:
        return values.get(name)
    start, step = values.get("ttft_ms"), values.get("tpot_ms")
    return start + (float(row.inputs["osl"]) - 1.0) * step if start and step else None


def undoubted(held: Held) -> bool:
    """Return whether a row counts for intervals: neither doubted nor queued."""
    return not held.doubt and held.row.remarks.get("queued") != "1"
