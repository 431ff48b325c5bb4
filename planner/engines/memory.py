"""What fits: weights per GPU, the pool, the largest batch and context, and what an engine prints.

`plan`, `recommend`, `sweep`, `validate` and the service all ask `plan_memory`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import overload

import numpy as np

from planner.engines.loading import adapter_bytes, loaded_bytes
from planner.engines.overheads import activation_bytes, buffer_bytes, graph_bytes
from planner.engines.pages import PageRules, kinds, pool_of
from planner.engines.pool import UNBOUNDED, Pool
from planner.engines.profiles import Engine, reported_bytes
from planner.engines.settings import (
    DEFAULTS,
    MemorySettings,
    Resolved,
    Setting,
    gpus_per_node,
    resolve,
)
from planner.engines.tuples import compressed_pool
from planner.hw import Accelerator
from planner.models.parts import Formats
from planner.models.spec import ModelSpec
from planner.roofline import Array, Numeric
from planner.step.parallel import Sharding


@dataclass(frozen=True, eq=False)
class Memory:
    """The memory of one replica; `per_gpu` figures are the mean over its pipeline stages."""

    weights_bytes_per_gpu: float
    kv_pool_bytes_per_gpu: float
    """What is left for caches and states; negative where the weights do not fit [byte]."""
    kv_bytes_per_token: float
    """One sequence's growth per token over all layers, before sharding [byte/token]."""
    written_bytes_per_token: float
    """What a token takes of all layers' caches until windows drop it, before sharding
    [byte/token]."""
    window_bytes_per_sequence: float
    """What one sequence keeps in full windows, before sharding [byte]."""
    state_bytes_per_sequence: float
    gpu_sequence_bytes: SequenceBytes
    pool: Pool
    """Blocks of one rank, by the engine's page rule."""
    attention_dp: int
    max_sequences: int
    """Sequences of one rank that the engine runs at once [-]."""
    longest: int
    """Longest context of a sequence: the one that was given, else the model's [token]."""
    length_given: bool
    """Whether longer ones are refused because a limit was given."""
    activation_bytes_per_gpu: float
    """The profiled peak of a step [byte]."""
    buffer_bytes_per_gpu: float
    """Context, libraries and the buffers of collectives [byte]."""
    graph_bytes_per_gpu: float
    """CUDA graphs [byte]."""
    adapter_bytes_per_gpu: float
    """Adapters held beside the weights [byte]."""
    requested_bytes_per_gpu: float
    """The memory planned with [byte]."""
    engine: Engine
    """The profile with the settings in it."""
    settings: tuple[Setting, ...]
    printed_bytes_per_token: float | None
    """Bytes of the pool over the tokens that the engine prints for it, before sharding
    [byte/token]."""

    @property
    def kv_pool_tokens(self) -> int | None:
        """Tokens of the replica's pools as the engine prints them; None where nothing grows."""
        return None if self.pool.printed is None else self.attention_dp * self.pool.printed

    @cached_property
    def most_tokens(self) -> int:
        """Longest context that is let in: of a limit that was given [token]."""
        return self.longest if self.length_given else UNBOUNDED

    @overload
    def max_batch(self, context: float) -> int: ...
    @overload
    def max_batch(self, context: Array) -> Array: ...
    def max_batch(self, context: float | Array) -> int | Array:
        """Return the sequences of `context` tokens the replica holds at once [-].

        An array of contexts gives an array of its shape.
        """
        if isinstance(context, np.ndarray):
            rooms = np.minimum(self.pool.sequences_of(context), self.max_sequences)
            admitted = (context <= self.most_tokens) & (self.kv_pool_bytes_per_gpu >= 0)
            return np.asarray(np.where(admitted, rooms, 0.0) * self.attention_dp)
        if self.kv_pool_bytes_per_gpu < 0 or context > self.most_tokens:
            return 0
        room = self.pool.sequences(context)
        room = room if room < self.max_sequences else self.max_sequences
        return int(room) * self.attention_dp

    def capped(self, context: float) -> bool:
        """Return whether the engine's cap on sequences binds before memory does."""
        return self.pool.sequences(context) > self.max_sequences

    def max_context(self, batch: float, most: int) -> int:
        """Return the longest context at which `batch` sequences fit, `most` at most [token]."""
        each = math.ceil(batch / self.attention_dp)
        if self.kv_pool_bytes_per_gpu < 0 or each > self.max_sequences:
            return 0
        return self.pool.longest(each, min(most, self.most_tokens))


@dataclass(frozen=True, slots=True, eq=False)
class SequenceBytes:
    """Cache and state of one sequence on one GPU, without the rounding of pages."""

    per_token: float
    windows: tuple[tuple[float, float], ...]
    """Bytes per token and length of each sliding window [byte, token]."""
    state: float

    def at(self, context: Numeric) -> Numeric:
        """Return the bytes of a sequence of `context` tokens [byte]."""
        windows = sum(each * np.minimum(context, length) for each, length in self.windows)
        return self.per_token * context + windows + self.state


@dataclass(frozen=True, slots=True, eq=False)
class _Taken:
    """What is taken of one GPU's memory before the pool [byte]."""

    weights: float
    adapters: float
    activation: float
    buffers: float
    graphs: float

    def of(self, names: tuple[str, ...]) -> float:
        """Return the sum of some of them; adapters are loaded with the weights [byte]."""
        more = self.adapters if "weights" in names else 0.0
        return more + sum(float(getattr(self, name)) for name in names)


def plan_memory(
    spec: ModelSpec,
    accelerator: Accelerator,
    sharding: Sharding,
    formats: Formats,
    engine: Engine,
    settings: MemorySettings = DEFAULTS,
    latent: str = "latent",
    drafts: int = 0,
) -> Memory:
    """Return what fits on an accelerator under a sharding, as the engine plans it.

    Pool = fraction·(memory − what it takes before) − what it takes after, the engine's rule or the
    share or pool of `settings`. KV heads replicate when TP exceeds them, a latent is never split; a
    pipeline divides layers, attention DP sequences. `latent` says how a latent cache is kept
    (`pages.kinds`); `drafts` tokens are drafted a step. Raises InvalidSetting.
    """
    run = resolve(engine.on(accelerator, sharding.ranks), spec, sharding, settings)
    taken = _taken(spec, accelerator, sharding, formats, run)
    requested = _requested_bytes(spec, accelerator, sharding, run, taken, drafts)
    pool_bytes = requested - taken.of(run.engine.after_fraction)
    if settings.kv_pool_bytes is not None:
        pool_bytes = settings.kv_pool_bytes
    pool = _pool(pool_bytes, spec, sharding, formats, run, latent, drafts)
    return Memory(
        weights_bytes_per_gpu=taken.weights,
        kv_pool_bytes_per_gpu=pool_bytes,
        kv_bytes_per_token=_bytes_per_token(spec, formats, windows=False),
        written_bytes_per_token=_bytes_per_token(spec, formats, windows=True),
        window_bytes_per_sequence=spec.window_elements * formats.kv.bytes,
        state_bytes_per_sequence=spec.state_elements * formats.state.bytes,
        gpu_sequence_bytes=sequence_bytes(spec, sharding, formats),
        pool=pool,
        attention_dp=sharding.attention_dp,
        max_sequences=run.engine.max_sequences,
        longest=run.longest,
        length_given=settings.max_model_len is not None,
        activation_bytes_per_gpu=taken.activation,
        buffer_bytes_per_gpu=taken.buffers,
        graph_bytes_per_gpu=taken.graphs,
        adapter_bytes_per_gpu=taken.adapters,
        requested_bytes_per_gpu=requested,
        engine=run.engine,
        settings=run.used,
        printed_bytes_per_token=_printed_bytes(spec, formats, run, latent),
    )


def _taken(
    spec: ModelSpec, accelerator: Accelerator, sharding: Sharding, formats: Formats, run: Resolved
) -> _Taken:
    engine, given = run.engine, run.given
    linked = gpus_per_node(accelerator, sharding, given.nodes) >= sharding.gpus > 1
    on_gpu = None if given.layers_on_gpu is None else given.layers_on_gpu
    return _Taken(
        weights=loaded_bytes(spec, formats, sharding, engine.loading, on_gpu),
        adapters=adapter_bytes(spec, sharding, given.lora.adapters, given.lora.rank)
        if given.lora
        else 0.0,
        activation=activation_bytes(
            spec,
            formats,
            sharding,
            engine.overheads,
            engine.chunk_tokens,
            min(engine.max_sequences, engine.chunk_tokens),
        ),
        buffers=buffer_bytes(sharding, engine.overheads, linked),
        graphs=graph_bytes(spec, sharding, engine.overheads) if given.graphs != "off" else 0.0,
    )


def _requested_bytes(
    spec: ModelSpec,
    accelerator: Accelerator,
    sharding: Sharding,
    run: Resolved,
    taken: _Taken,
    drafts: int,
) -> float:
    """Return the memory an engine plans weights and cache in, on one GPU [byte]."""
    engine = run.engine
    total = reported_bytes(accelerator) if engine.as_reported else float(accelerator.memory())
    share = engine.memory_fraction
    if engine.reserve:
        reserve = engine.reserve.of(
            total, engine.chunk_tokens, engine.graph_sequences, sharding, spec.latent, drafts
        )
        share = max(0.0, round(1.0 - reserve / total, engine.reserve.decimals))
        if run.vision:
            share *= engine.reserve.with_encoder(spec.vision_params)
    return share * (total - taken.of(engine.before_fraction))


def _pool(
    pool_bytes: float,
    spec: ModelSpec,
    sharding: Sharding,
    formats: Formats,
    run: Resolved,
    latent: str,
    drafts: int = 0,
) -> Pool:
    paging, given = run.engine.paging, run.given
    whole = run.engine.whole_model
    rules = PageRules(
        paging=paging,
        block_tokens=run.engine.kv_block_tokens,
        chunk_tokens=run.engine.chunk_tokens,
        longest=run.longest,
        model_type=spec.model_type,
        decode_cp=run.decode_cp,
        prefix_caching=run.prefix_caching,
        drafts=drafts,
        cells=given.max_model_len if whole else None,
    )
    if paging.layout_of(spec.model_type) == "tuples":
        return compressed_pool(max(0.0, pool_bytes), spec, formats, rules, sharding.pp)
    layers = kinds(spec, sharding, formats, latent, paging)
    if given.layers_on_gpu is not None:
        share = min(1.0, given.layers_on_gpu / spec.layers)
        layers = [replace(kind, layers=kind.layers * share) for kind in layers if share]
    return pool_of(pool_bytes, layers, rules)


_VAST = 2.0**56
"""A pool in which the rounding of blocks does not show [byte]."""


def _printed_bytes(spec: ModelSpec, formats: Formats, run: Resolved, latent: str) -> float | None:
    """Return the bytes of an unsplit pool over the tokens printed for it [byte/token]."""
    unlimited = replace(run, given=replace(run.given, max_model_len=None), decode_cp=1)
    printed = _pool(_VAST, spec, Sharding(), formats, unlimited, latent).printed
    return round(_VAST / printed, 3) if printed else None


def _bytes_per_token(spec: ModelSpec, formats: Formats, windows: bool) -> float:
    """Return what a token adds to the caches of one sequence, before sharding [byte/token]."""
    return sum(
        group.count * cache.elements_per_token * formats.of_cache(cache).bytes
        for group in spec.groups
        for part in group.block.parts
        for cache in part.caches()
        if windows or math.isinf(cache.window)
    )


def sequence_bytes(spec: ModelSpec, sharding: Sharding, formats: Formats) -> SequenceBytes:
    """Return the cache and state bytes of one sequence on one GPU of the replica that holds it."""
    growing, state = 0.0, 0.0
    windows: dict[float, float] = {}
    for kind in kinds(spec, sharding, formats):
        each = kind.layers * kind.token_bytes
        if kind.grows:
            growing += each
        elif each:
            windows[kind.window] = windows.get(kind.window, 0.0) + each
        state += kind.layers * kind.state_bytes
    return SequenceBytes(growing, tuple((each, length) for length, each in windows.items()), state)
