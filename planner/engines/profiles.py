"""Serving engines as data: what each reserves, defaults to and allows.

A profile is a table of figures, each with its source and confidence (documented, source_code,
fitted, assumed). A figure is a value, a table of values by device and split, or a default of the
engine's own, taken from what its package says at a version (`planner.engines.defaults`). Figures
that drift otherwise are rows of overrides by version. No code knows an engine by name.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

from planner.engines.defaults import Release, Rows, release_of
from planner.engines.loading import Loading
from planner.engines.names import NEUTRAL, device_data, engine_data, engine_names
from planner.engines.overheads import Overheads, Reserve
from planner.engines.pages import Paging
from planner.engines.rows import GIB, condition, is_table, row_anywhere, row_for
from planner.engines.versions import Version, numbers, version_of
from planner.errors import InvalidInput
from planner.hw import Accelerator

__all__ = ["GIB", "Engine", "Sourced", "UnknownEngine", "engines", "get_engine", "reported_bytes"]


class UnknownEngine(InvalidInput):
    """An engine that has no profile."""


@dataclass(frozen=True, slots=True)
class Sourced:
    """Where a figure of a profile comes from."""

    source: str
    confidence: str
    default_of: str = ""
    """The release it is a default of, and for which devices: `vLLM 0.33.0 default from 70 GiB`."""
    argument: str = ""
    """The engine's own name for it."""


@dataclass(frozen=True, slots=True, eq=False)
class Engine:
    """The profile of an engine at a version, on a device once `on` was called."""

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
    checks_longest: bool = False
    """Whether it refuses to start where no sequence of the longest context fits."""
    eager_layer_s: float = 0.0
    """What each layer takes longer where no graph is captured [s]."""
    host_bytes_per_s: float = 0.0
    """Bandwidth of host memory, for layers that are kept there [byte/s]."""
    host_flops_per_s: float = 0.0
    """What the host computes for them [FLOP/s]."""
    kv_by_weights: Mapping[str, str] = field(default_factory=dict)
    """Cache format by weight format, where it is not `kv_default`."""
    kv_default: str | None = None
    """Cache format otherwise; None is the model's own 16-bit type."""
    kv_by_type: Mapping[str, str] = field(default_factory=dict)
    """Cache format by model type, where it is not by weights, and where 8 bits are asked for."""
    index_by_type: Mapping[str, str] = field(default_factory=dict)
    """Format of an indexer's cached keys by model type; that of the cache otherwise."""
    lacks: Mapping[str, str] = field(default_factory=dict)
    """Settings it does not have, and where they are accepted."""
    backends: Mapping[str, str] = field(default_factory=dict)
    """What it runs with, by vendor and kind of device (`AMD gpu`); empty: on any device."""
    not_on: tuple[str, ...] = ()
    """Architectures of such devices that no build takes."""
    profiled_with: str = ""
    """Which of `backends` the other figures were read or measured with."""
    versions: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    """First and last version at which what it takes of memory was measured, by what a version is:
    `release`, `date` or `build`."""
    measured: tuple[str, ...] = ()
    """How runs of it on record were measured: serving, static, bench; empty where none is."""
    release: str = ""
    """The release whose defaults these are; empty where no package was read."""
    reserve: Reserve | None = None
    """The rule for what is kept free, where it replaces the fraction."""
    loading: Loading = field(default_factory=Loading)
    overheads: Overheads = field(default_factory=Overheads)
    paging: Paging = field(default_factory=Paging)
    figures: Mapping[str, Sourced] = field(default_factory=dict)
    """Source and confidence of each figure, by its name (`overheads.graph_bytes`)."""
    tables: Mapping[str, tuple[Rows, Sourced]] = field(default_factory=dict)
    """Figures that depend on the device or the split, by name; none once `on` was called."""

    def on(self, accelerator: Accelerator, tp: int = 1) -> Engine:
        """Return the profile with the figures set that depend on the device and on how many GPUs
        share a layer, `tp` [-]."""
        return _on(self, accelerator, tp) if self.tables else self

    def value(self, name: str) -> Any:
        """Return a figure by its name in `figures`."""
        owner, _, attribute = name.rpartition(".")
        return getattr(getattr(self, owner) if owner else self, attribute)

    def stated(self, name: str) -> str:
        """Return a figure and where it comes from: `0.92 (vLLM 0.33.0 default)`, `16 (vLLM:
        documented)`."""
        figure = self.figures[name]
        origin = figure.default_of or f"{self.name}: {figure.confidence.replace('_', ' ')}"
        return f"{self.value(name)} ({origin})"

    def kv_format(
        self, weights: Iterable[str], model_type: str = "", wanted: str | None = None
    ) -> str | None:
        """Return the cache format for these weight formats, or as `wanted`; None leaves it to the
        model.

        A type of model whose cache has a layout of its own keeps it, unless other than 8 bits are
        wanted.
        """
        own = self.kv_by_type.get(model_type)
        if own and (wanted is None or wanted.strip().lower().startswith("fp8")):
            return own
        if wanted is not None:
            return wanted
        by_weights = (self.kv_by_weights[name] for name in weights if name in self.kv_by_weights)
        return next(by_weights, self.kv_default)


def engines() -> Mapping[str, Engine]:
    """Return all profiles by id, of the newest version."""
    return {name: get_engine(name) for name in engine_data()["engines"]}


def never_measured(name: str) -> bool:
    """Return whether an engine has a profile but no run on record; other names are of runs."""
    return name in engine_names() and not get_engine(name).measured


def get_engine(name: str | None, version: str | None = None) -> Engine:
    """Return the profile of an engine; None is the engine-neutral one.

    `version` is as `version_of` reads it; without one, or one that it does not read, it is the
    newest whose defaults were read. Raises UnknownEngine naming what is accepted.
    """
    key = NEUTRAL if name is None else name.strip().lower()
    if key not in engine_data()["engines"]:
        accepted = ", ".join(engine_names())
        raise UnknownEngine(f"engine: unknown engine {name!r}; accepted: {accepted}")
    return _profile(key, version_of(version))


@lru_cache(maxsize=128)
def _profile(key: str, version: Version | None) -> Engine:
    entry = engine_data()["engines"][key]
    figures = dict(entry["figures"])
    for drift in entry.get("by_version", ()):
        before = drift.get(DRIFTS[version[0]]) if version else None
        if version and before and version[1] < numbers(before):
            for part in drift.get("without", ()):
                figures = {name: one for name, one in figures.items() if _owner(name) != part}
            figures.update(drift["figures"])
    release = release_of(key, version)
    named = f"{entry['name']} {release.version} default" if release else ""
    known = {name: _sourced(figure, release, named) for name, figure in figures.items()}
    profile = Engine(id=key, name=entry["name"], release=release.version if release else "")
    tables = {name: (rows, text) for name, (rows, text) in known.items() if is_table(rows)}
    chosen = {name: (row_anywhere(rows), text) for name, (rows, text) in known.items()}
    return replace(_with(profile, chosen), tables=tables)


DRIFTS = {"release": "before", "date": "before_date", "build": "before_build"}
"""Key of a drift row by what a version is."""


def _owner(name: str) -> str:
    return name.rpartition(".")[0]


def _sourced(
    figure: Mapping[str, Any], release: Release | None, named: str
) -> tuple[Rows, Sourced]:
    """Return the rows of a figure, and where they come from: an argument's default where the
    release states one, else what the data says."""
    argument = figure.get("argument", "")
    rows = release.rows(argument) if release and argument else ()
    if release and rows:
        return rows, Sourced(release.place(argument), "source_code", named, argument)
    text = Sourced(engine_data()["sources"][figure["source"]], figure["confidence"], "", argument)
    return tuple(figure.get("rows", ())) or ({"value": figure["value"]},), text


_PARTS = {"reserve": Reserve, "loading": Loading, "overheads": Overheads, "paging": Paging}
"""Groups of figures, by what their dotted names begin with."""


def _with(engine: Engine, chosen: Mapping[str, tuple[Mapping[str, Any] | None, Sourced]]) -> Engine:
    """Return a profile with these figures set; one without a row is left as it is."""
    parts: dict[str, dict[str, Any]] = {}
    figures = dict(engine.figures)
    for name, (row, text) in chosen.items():
        if row is None:
            continue
        owner, _, attribute = name.rpartition(".")
        value = row["value"]
        parts.setdefault(owner, {})[attribute] = tuple(value) if isinstance(value, list) else value
        where = f"{text.default_of} {condition(row)}".strip() if text.default_of else ""
        figures[name] = replace(text, default_of=where)
    own = parts.pop("", {})
    groups = {owner: _group(engine, owner, values) for owner, values in parts.items()}
    return replace(engine, figures=figures, **own, **groups)


def _group(engine: Engine, owner: str, values: Mapping[str, Any]) -> Any:
    before = getattr(engine, owner)
    return _PARTS[owner](**values) if before is None else replace(before, **values)


@lru_cache(maxsize=1024)
def _on(engine: Engine, accelerator: Accelerator, tp: int) -> Engine:
    tables = engine.tables.items()
    chosen = {name: (row_for(rows, accelerator, tp), text) for name, (rows, text) in tables}
    return replace(_with(engine, chosen), tables={})


def reported_bytes(accelerator: Accelerator) -> float:
    """Return the memory a driver reports to a process on an accelerator [byte].

    Raises MissingFigure where the accelerator's memory is not on record.
    """
    shares = device_data()
    row = shares["devices"].get(accelerator.part)
    if row is None:
        kind = accelerator.memory_type or ""
        default = shares["default"]
        row = next((default[k] for k in ("HBM", "GDDR") if kind.startswith(k)), default["other"])
    return accelerator.memory() * float(row["share"])
