"""What a command line says of an engine's memory, and what the engine takes where it says nothing.

A setting that is None is the engine's default at its version. `resolve` checks the settings against
model, device and split, and returns the engine's profile with them, and a list of the values used
with where each comes from.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from planner.engines.names import NEUTRAL
from planner.engines.profiles import Engine
from planner.errors import InvalidInput
from planner.hw import Accelerator
from planner.models.spec import ModelSpec
from planner.step.parallel import Sharding


class InvalidSetting(InvalidInput):
    """A setting that the engine, the model or the split does not allow; names the field."""


@dataclass(frozen=True, slots=True)
class Lora:
    """Adapters that are held beside the weights."""

    adapters: int
    rank: int


@dataclass(frozen=True, slots=True)
class MemorySettings:
    """MemorySettings of an engine's memory as given; None is its default."""

    memory_fraction: float | None = None
    """Share of memory the engine plans with [-]."""
    kv_pool_bytes: float | None = None
    """Cache pool of one GPU, whatever the share [byte]."""
    max_sequences: int | None = None
    """Sequences of one rank that may run at once [-]."""
    max_batched_tokens: int | None = None
    """Tokens of a step [token]."""
    max_model_len: int | None = None
    """Longest context of a sequence; of llama.cpp the cache of all of them [token]."""
    block_size: int | None = None
    """Tokens of a cache block [token]."""
    prefix_caching: bool | None = None
    chunked_prefill: bool | None = None
    graphs: str | int | None = None
    """`on`, `off`, or the largest batch that is captured."""
    kv_offload_bytes: float | None = None
    """Host memory for caches, over all GPUs of a replica [byte]."""
    decode_cp: int | None = None
    """Ranks of tensor parallelism that share the tokens of a sequence [-]."""
    nodes: int | None = None
    """Hosts one replica spans [-]."""
    lora: Lora | None = None
    layers_on_gpu: int | None = None
    """Layers on the GPU, the rest in host memory [-]."""
    vision: bool | None = None
    """Whether encoders of images and sound are loaded."""

    @classmethod
    def of(cls, source: Any) -> MemorySettings:
        """Return the settings that an object has as attributes of the same names."""
        values = {each.name: getattr(source, each.name) for each in fields(cls)}
        if (lora := values["lora"]) is not None:
            values["lora"] = Lora(lora.adapters, lora.rank)
        return cls(**values)


DEFAULTS = MemorySettings()
"""Nothing given."""


@dataclass(frozen=True, slots=True)
class Setting:
    """The value that was used, and where it comes from."""

    name: str
    value: float | int | str | bool | None
    source: str


@dataclass(frozen=True, slots=True, eq=False)
class Resolved:
    """An engine as it is run."""

    engine: Engine
    used: tuple[Setting, ...]
    longest: int
    """Longest context of a sequence [token]."""
    given: MemorySettings
    prefix_caching: bool
    decode_cp: int
    vision: bool


UNKNOWN_LENGTH = 2**17
"""Longest context taken where a model states none (assumption) [token]."""


def resolve(engine: Engine, spec: ModelSpec, sharding: Sharding, given: MemorySettings) -> Resolved:
    """Return an engine, as it is on a device, with the settings given.

    Raises InvalidSetting, one line that names the field and what is accepted.
    """
    _check(engine, spec, sharding, given)
    longest = given.max_model_len or spec.max_context or UNKNOWN_LENGTH
    prefix_caching = True if given.prefix_caching is None else given.prefix_caching
    chunk = given.max_batched_tokens or engine.chunk_tokens
    if given.chunked_prefill is False:
        chunk = max(chunk, longest)
    graphs = _graph_sequences(engine, given.graphs)
    vision = engine.loading.encoder if given.vision is None else given.vision
    changed = replace(
        engine,
        memory_fraction=given.memory_fraction or engine.memory_fraction,
        reserve=None if given.memory_fraction else engine.reserve,
        chunk_tokens=chunk,
        max_sequences=given.max_sequences or engine.max_sequences,
        kv_block_tokens=given.block_size or engine.kv_block_tokens,
        graph_sequences=graphs,
        loading=replace(engine.loading, encoder=vision),
        tables={},
    )
    defaults: dict[str, Any] = {
        "memory_fraction": None if engine.reserve else engine.memory_fraction,
        "kv_pool_bytes": None,
        "max_sequences": engine.max_sequences,
        "max_batched_tokens": chunk,
        "max_model_len": spec.max_context,
        "block_size": engine.kv_block_tokens,
        "prefix_caching": prefix_caching,
        "chunked_prefill": True,
        "graphs": engine.graph_sequences or "off",
        "kv_offload_bytes": 0,
        "decode_cp": 1,
        "nodes": 1,
        "lora": None,
        "layers_on_gpu": None,
        "vision": vision,
    }
    used = _used(engine, given, defaults)
    cp = given.decode_cp or 1
    return Resolved(changed, used, longest, given, prefix_caching, cp, vision)


FIGURES = {
    "memory_fraction": "memory_fraction",
    "max_sequences": "max_sequences",
    "max_batched_tokens": "chunk_tokens",
    "block_size": "kv_block_tokens",
    "graphs": "graph_sequences",
}
"""Figures of a profile by the setting whose default they are."""


def _used(
    engine: Engine, given: MemorySettings, defaults: Mapping[str, Any]
) -> tuple[Setting, ...]:
    """List what applies to the engine: what was given, and the defaults with their origin."""
    used = []
    for name, default in defaults.items():
        value = getattr(given, name)
        if value is not None:
            shown = f"{value.adapters}:{value.rank}" if isinstance(value, Lora) else value
            used.append(Setting(name, shown, "given"))
        elif default is not None and name not in engine.lacks:
            used.append(Setting(name, default, _origin(engine, name)))
    return tuple(used)


def _origin(engine: Engine, name: str) -> str:
    """Say whose default a setting is."""
    if name == "max_model_len":
        return "the model's"
    if engine.id == NEUTRAL:
        return "no engine: assumed"
    figure = engine.figures.get(FIGURES.get(name, ""))
    if figure and figure.default_of:
        return figure.default_of
    return " ".join(filter(None, (engine.name, engine.release, "default")))


def _graph_sequences(engine: Engine, graphs: str | int | None) -> int:
    if graphs == "off":
        return 0
    return graphs if isinstance(graphs, int) else engine.graph_sequences


def _check(engine: Engine, spec: ModelSpec, sharding: Sharding, given: MemorySettings) -> None:
    for each in fields(given):
        if each.name in engine.lacks and getattr(given, each.name) is not None:
            accepted = engine.lacks[each.name]
            raise InvalidSetting(f"{each.name}: not of {engine.name}; accepted: {accepted}")
    _check_lengths(spec, given)
    _check_split(spec, sharding, given)
    layers = given.layers_on_gpu
    if layers is not None and layers > spec.layers + 1:
        raise InvalidSetting(
            f"layers_on_gpu: {layers} exceeds the {spec.layers} layers of {spec.id} and its head; "
            f"accepted: 0 to {spec.layers + 1}"
        )


def _check_lengths(spec: ModelSpec, given: MemorySettings) -> None:
    longest, chunk = given.max_model_len, given.max_batched_tokens
    if longest and spec.max_context and longest > spec.max_context:
        raise InvalidSetting(
            f"max_model_len: {longest} exceeds the {spec.max_context} tokens of {spec.id}; "
            f"accepted: 1 to {spec.max_context}"
        )
    if given.chunked_prefill is False and longest and chunk and chunk < longest:
        raise InvalidSetting(
            f"max_batched_tokens: {chunk} without chunked_prefill holds no prompt "
            f"of max_model_len; accepted: {longest} or more"
        )


def _check_split(spec: ModelSpec, sharding: Sharding, given: MemorySettings) -> None:
    if given.nodes and sharding.gpus % given.nodes:
        accepted = [n for n in range(1, sharding.gpus + 1) if sharding.gpus % n == 0]
        raise InvalidSetting(
            f"nodes: {given.nodes} does not divide the {sharding.gpus} GPUs of a replica; "
            f"accepted: {', '.join(map(str, accepted))}"
        )
    cp = given.decode_cp or 1
    caches = [c for g in spec.groups for p in g.block.parts for c in p.caches()]
    ways = max((cache.ways for cache in caches), default=1)
    copies = max(1, sharding.tp // min(sharding.tp, ways))
    accepted = [n for n in range(1, copies + 1) if sharding.tp % n == 0 and copies % n == 0]
    if cp not in accepted:
        raise InvalidSetting(
            f"decode_cp: {cp} does not divide the {copies} copies that tp={sharding.tp} makes of "
            f"the cache of {spec.id}; accepted: {', '.join(map(str, accepted))}"
        )
    if cp > 1 and any(cache.window < float("inf") for cache in caches):
        raise InvalidSetting(f"decode_cp: {cp} with the sliding windows of {spec.id}; accepted: 1")


def gpus_per_node(accelerator: Accelerator, sharding: Sharding, nodes: int | None) -> int:
    """Return the GPUs of a replica that share a host's links [-]."""
    if nodes:
        return sharding.gpus // nodes
    return min(sharding.gpus, accelerator.domain_size or 1)
