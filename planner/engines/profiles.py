"""Serving engines as data: what each reserves, defaults to and allows.

A profile is a table of figures, each with its source and confidence (documented, source_code,
fitted, assumed). Figures that depend on the device's memory or drift with versions are rows of
overrides beside it; no code knows an engine by name.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from planner.engines.loading import Loading
from planner.engines.overheads import Overheads, Reserve
from planner.engines.pages import Paging
from planner.hw import Accelerator

EDITION = "2026-11-29"
GIB = 2.0**30


class UnknownEngine(ValueError):
    """An engine that has no profile."""


@dataclass(frozen=True, slots=True)
class Sourced:
    """Where a figure of a profile comes from."""

    source: str
    confidence: str


@dataclass(frozen=True, slots=True, eq=False)
class Engine:
    """The profile of an engine, on a device once `on` was called."""

    id: str
    name: str
    memory_fraction: float = 0.9
    """Share of memory the engine plans with [-]."""
    before_fraction: tuple[str, ...] = ()
    """What is taken from memory before the fraction: weights, activation, buffers."""
    after_fraction: tuple[str, ...] = ("weights",)
    """What is taken from the fraction; the rest is the cache pool."""
    as_reported: bool = False
    """Whether memory is what the driver reports rather than the nominal size."""
    whole_model: bool = False
    """Whether it reports weights and cache of the whole model, the cache for one context."""
    kv_block_tokens: int = 1
    """Tokens of a cache block [token]."""
    chunk_tokens: int = 8192
    """Tokens a step may hold: the chunked-prefill budget [token]."""
    mixes_prompts: bool = True
    """Whether prompts share the steps of sequences that decode; else they stop them."""
    max_sequences: int = 2**20
    """Sequences that may run at once on one rank [-]."""
    output_reserved: float = 0.5
    """Share of its output a sequence has place for when it is let in: 1 where none is ever evicted,
    half where sequences may be, as they are half done on average [-]."""
    graph_sequences: int = 0
    """Largest batch that runs as a CUDA graph; 0 where none is captured [-]."""
    kv_by_weights: Mapping[str, str] = field(default_factory=dict)
    """Cache format by weight format, where it is not `kv_default`."""
    kv_default: str | None = None
    """Cache format otherwise; None is the model's own 16-bit type."""
    backends: Mapping[str, str] = field(default_factory=dict)
    """What it runs with, by vendor and kind of device (`AMD gpu`); empty: on any device."""
    not_on: tuple[str, ...] = ()
    """Architectures of such devices that no build takes."""
    profiled_with: str = ""
    """Which of `backends` the other figures were read or measured with."""
    versions: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    """First and last version they were read or measured at: `release`, `date` or `build`."""
    reserve: Reserve | None = None
    """The rule for what is kept free, where it replaces the fraction."""
    loading: Loading = field(default_factory=Loading)
    overheads: Overheads = field(default_factory=Overheads)
    paging: Paging = field(default_factory=Paging)
    figures: Mapping[str, Sourced] = field(default_factory=dict)
    """Source and confidence of each figure, by its name (`overheads.graph_bytes`)."""
    by_memory: tuple[Mapping[str, Any], ...] = ()

    def on(self, accelerator: Accelerator) -> Engine:
        """Return the profile with the figures that depend on a device's memory set for it."""
        return _on(self, accelerator) if self.by_memory else self

    def kv_format(self, weights: Iterable[str]) -> str | None:
        """Return the cache format for these weight formats; None leaves it to the model."""
        found = (self.kv_by_weights[name] for name in weights if name in self.kv_by_weights)
        return next(found, self.kv_default)


@cache
def _data() -> dict[str, Any]:
    path = Path(__file__).with_name("data") / f"engines-{EDITION}.json"
    found: dict[str, Any] = json.loads(path.read_text("utf-8"))
    return found


def engines() -> Mapping[str, Engine]:
    """Return all profiles by id, of the newest version."""
    return {name: get_engine(name) for name in _data()["engines"]}


def get_engine(name: str | None, version: str | None = None) -> Engine:
    """Return the profile of an engine; None is the engine-neutral one.

    `version` is as `release_of` reads it; without one, or one that it does not read, it is the
    newest. Raises UnknownEngine naming what is accepted.
    """
    key = "neutral" if name is None else name.strip().lower()
    if key not in _data()["engines"]:
        accepted = ", ".join(known for known in _data()["engines"] if known != "neutral")
        raise UnknownEngine(f"engine: unknown engine {name!r}; accepted: {accepted}")
    return _profile(key, release_of(version or ""))


@lru_cache(maxsize=128)
def _profile(key: str, release: tuple[str, tuple[int, ...]] | None) -> Engine:
    entry = _data()["engines"][key]
    figures = dict(entry["figures"])
    for drift in entry.get("by_version", ()):
        before = drift.get(DRIFTS[release[0]]) if release else None
        if release and before and release[1] < _numbers(before):
            figures.update(drift["figures"])
    return _built(key, entry, figures)


@lru_cache(maxsize=256)
def _on(engine: Engine, accelerator: Accelerator) -> Engine:
    figures = {name: _stated(engine, name) for name in engine.figures}
    for row in engine.by_memory:
        excluded = any(word in accelerator.id for word in row.get("except", ()))
        if (accelerator.memory_bytes or 0) >= row["at_least_gib"] * GIB and not excluded:
            figures.update(row["figures"])
    return _built(engine.id, {"name": engine.name}, figures)


def _stated(engine: Engine, name: str) -> dict[str, Any]:
    """Return a figure of a profile in the data's own form."""
    owner, _, attribute = name.rpartition(".")
    value = getattr(getattr(engine, owner) if owner else engine, attribute)
    return {"value": value, "text": engine.figures[name]}


def _built(key: str, entry: Mapping[str, Any], figures: Mapping[str, Any]) -> Engine:
    """Return the profile of a table of figures; dotted names belong to its parts."""
    parts: dict[str, dict[str, Any]] = {}
    for name, figure in figures.items():
        owner, _, attribute = name.rpartition(".")
        value = figure["value"]
        parts.setdefault(owner, {})[attribute] = tuple(value) if isinstance(value, list) else value
    return Engine(
        id=key,
        name=entry["name"],
        figures={name: _sourced(figure) for name, figure in figures.items()},
        by_memory=tuple(entry.get("by_memory", ())),
        reserve=Reserve(**parts["reserve"]) if "reserve" in parts else None,
        loading=Loading(**parts.get("loading", {})),
        overheads=Overheads(**parts.get("overheads", {})),
        paging=Paging(**parts.get("paging", {})),
        **parts.get("", {}),
    )


def _sourced(figure: Mapping[str, Any]) -> Sourced:
    kept: Sourced | None = figure.get("text")
    return kept or Sourced(_data()["sources"][figure["source"]], figure["confidence"])


_RELEASE = re.compile(r"^v?(\d+(?:\.\d+)+)")
_DATE = re.compile(r"(20\d\d)-?(0[1-9]|1[0-2])")
_BUILD = re.compile(r"^b?(\d{3,5})\b")
DRIFTS = {"release": "before", "date": "before_date", "build": "before_build"}
"""Key of a drift row by what a version is."""


def release_of(version: str) -> tuple[str, tuple[int, ...]] | None:
    """Return what a version is and its numbers, which compare; None where it cannot be read.

    A release ("0.17.0", "1.0.0rc3"), the date of a build ("2025-07", "nightly-dev-20260402") or
    its number ("b6118", "6118").
    """
    version = version.strip()
    if found := _RELEASE.match(version):
        return "release", _numbers(found[1])
    if found := _DATE.search(version):
        return "date", (int(found[1]), int(found[2]))
    if found := _BUILD.match(version):
        return "build", (int(found[1]),)
    return None


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.split(r"[.-]", version))


@cache
def _shares() -> dict[str, Any]:
    path = Path(__file__).with_name("data") / f"device-memory-{EDITION}.json"
    found: dict[str, Any] = json.loads(path.read_text("utf-8"))
    return found


def reported_bytes(accelerator: Accelerator) -> float:
    """Return the memory a driver reports to a process on an accelerator [byte].

    Raises MissingFigure where the accelerator's memory is not on record.
    """
    shares = _shares()
    row = shares["devices"].get(accelerator.part)
    if row is None:
        kind = accelerator.memory_type or ""
        default = shares["default"]
        row = next((default[k] for k in ("HBM", "GDDR") if kind.startswith(k)), default["other"])
    return accelerator.memory() * float(row["share"])
