"""Times of single kernels, kept as the items they are made of."""

from __future__ import annotations

import csv
import gzip
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import as_file
from pathlib import Path

import numpy as np

from planner.calibration.subject import Subject, accelerator_tags, engine_tags
from planner.calibration.table import EDITION
from planner.fitting.committed import FITTING
from planner.fitting.fit import Design
from planner.hw import Accelerator, get_accelerator
from planner.roofline import Array
from planner.step.parallel import link_bandwidth
from planner.step.timing import Features, Item

COLUMNS = (
    "sample",
    "kind",
    "format",
    "gpu",
    "engine",
    "version",
    "compute",
    "flops",
    "bytes",
    "launches",
    "visits",
    "seconds",
)
"""One line an item; the items of one sample were timed together."""


@dataclass(frozen=True, slots=True)
class Samples:
    """Samples of one accelerator, engine and combination of kinds and formats."""

    gpu: str
    engine: str
    version: str
    items: tuple[Item, ...]
    computes: tuple[str, ...]
    figures: Array
    """Shape (item, sample, figure): FLOPs, bytes, launches, visits."""
    seconds: Array

    def features(self, accelerator: Accelerator) -> Features:
        """Return what the items ask of the datasheet, shape (item, sample)."""
        flops, moved, launches, visits = np.moveaxis(self.figures, -1, 0)
        peaks = [
            accelerator.peak(accelerator.compute_format(c)[0]) if c else np.inf
            for c in self.computes
        ]
        rates = [
            accelerator.bandwidth_bytes_per_s if c else link_bandwidth(accelerator)
            for c in self.computes
        ]
        return Features(
            compute_s=flops / np.array(peaks)[:, None],
            memory_s=moved / np.array(rates)[:, None],
            launches=launches,
            visits=visits,
        )


def read_samples() -> list[Samples]:
    """Return the kept samples by set."""
    with as_file(FITTING.joinpath(f"kernels-{EDITION}.csv.gz")) as path:
        return _sets(path)


def _sets(path: Path) -> list[Samples]:
    grouped: dict[str, list[dict[str, str]]] = defaultdict(list)
    with gzip.open(path, "rt", encoding="utf-8", newline="") as file:
        for line in csv.DictReader(file):
            grouped[line["sample"]].append(line)
    sets: dict[tuple[tuple[str, ...], ...], list[list[dict[str, str]]]] = defaultdict(list)
    for lines in grouped.values():
        key = tuple(
            tuple(line[c] for c in ("gpu", "engine", "version", "kind", "format", "compute"))
            for line in lines
        )
        sets[key].append(lines)
    return [_samples(key, members) for key, members in sets.items()]


def _samples(key: tuple[tuple[str, ...], ...], members: list[list[dict[str, str]]]) -> Samples:
    gpu, engine, version = key[0][:3]
    names = ("flops", "bytes", "launches", "visits")
    figures = [[[float(line[n]) for n in names] for line in lines] for lines in members]
    return Samples(
        gpu,
        engine,
        version,
        tuple(Item(kind, name) for _, _, _, kind, name, _ in key),
        tuple(compute for *_, compute in key),
        np.swapaxes(np.array(figures), 0, 1),
        np.array([float(lines[0]["seconds"]) for lines in members]),
    )


ALONE = "alone"
"""Tag of kernels timed on their own: with their host launches, and with steps such as
quantisation that an engine fuses with others."""


def add_samples(design: Design, sets: Sequence[Samples], offset: int) -> tuple[Array, Array]:
    """Add samples as rows from `offset` on; return their times [s] and weights [-].

    A set weighs as one row, whatever its size.
    """
    times, weights = [], []
    for one in sets:
        accelerator = get_accelerator(one.gpu)
        tags = {**accelerator_tags(accelerator), **engine_tags(one.engine, one.version)}
        subject = Subject({**tags, "timed": ALONE})
        n = len(one.seconds)
        design.add(
            one.items,
            subject,
            "",
            one.features(accelerator),
            np.arange(n) + offset,
            np.ones(n),
            scaled=False,
        )
        offset += n
        times.append(one.seconds)
        weights.append(np.full(n, 1.0 / n))
    return np.concatenate([[], *times]), np.concatenate([[], *weights])
