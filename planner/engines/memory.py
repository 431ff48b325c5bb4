"""What fits: weights per GPU, cache bytes per sequence, the pool, the largest batch and context."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from planner.engines.loading import loaded_bytes
from planner.engines.overheads import activation_bytes, buffer_bytes, graph_bytes
from planner.engines.pages import kinds, printed_tokens
from planner.engines.profiles import GIB, Engine, reported_bytes
from planner.hw import Accelerator
from planner.models.parts import Formats
from planner.models.spec import ModelSpec
from planner.roofline import Numeric
from planner.step.parallel import Sharding


@dataclass(frozen=True, slots=True, eq=False)
class Memory:
    """The memory of one replica; `per_gpu` figures are the mean over its pipeline stages."""

    weights_bytes_per_gpu: float
    kv_pool_bytes_per_gpu: float
    """What is left for caches and states; negative where the weights do not fit [byte]."""
    kv_bytes_per_token: float
    """One sequence's growth per token over all layers, before sharding [byte/token]."""
    state_bytes_per_sequence: float
    gpu_sequence_bytes: SequenceBytes
    attention_dp: int
    max_sequences: int
    activation_bytes_per_gpu: float = 0.0
    """The profiled peak of a step [byte]."""
    buffer_bytes_per_gpu: float = 0.0
    """Context, libraries and the buffers of collectives [byte]."""
    graph_bytes_per_gpu: float = 0.0
    """CUDA graphs [byte]."""
    block_tokens: int = 1
    """Tokens of a cache block; a sequence takes whole ones [token]."""
    state_share: float = 0.0
    """Share of the pool set aside for recurrent states; 0 where sequences share all of it [-]."""

    @property
    def kv_pool_tokens(self) -> int | None:
        """Tokens of one long sequence the replica's pools hold; None where nothing grows."""
        growth = self.gpu_sequence_bytes.per_token
        if growth == 0:
            return None
        pool = max(0.0, self.kv_pool_bytes_per_gpu) * (1.0 - self.state_share)
        return (
            self.attention_dp * math.floor(pool / (growth * self.block_tokens)) * self.block_tokens
        )

    def max_batch(self, context: float) -> int:
        """Return the sequences of `context` tokens the replica holds at once [-]."""
        if self.kv_pool_bytes_per_gpu < 0:
            return 0
        whole = math.ceil(context / self.block_tokens) * self.block_tokens
        each, state = float(self.gpu_sequence_bytes.at(whole)), self.gpu_sequence_bytes.state
        needs = [(1.0, each)]
        if self.state_share:
            needs = [(1.0 - self.state_share, each - state), (self.state_share, state)]
        fits = [math.floor(self.kv_pool_bytes_per_gpu * of / need) for of, need in needs if need]
        return min([*fits, self.max_sequences]) * self.attention_dp

    def max_context(self, batch: float, most: int) -> int:
        """Return the longest context at which `batch` sequences fit, `most` at most [token]."""
        low, high = 0, most
        while low < high:
            middle = (low + high + 1) // 2
            if self.max_batch(middle) >= batch:
                low = middle
            else:
                high = middle - 1
        return low


@dataclass(frozen=True, slots=True, eq=False)
class SequenceBytes:
    """Cache and state of one sequence on one GPU."""

    per_token: float
    windows: tuple[tuple[float, float], ...]
    """Bytes per token and length of each sliding window [byte, token]."""
    state: float

    def at(self, context: Numeric) -> Numeric:
        """Return the bytes of a sequence of `context` tokens [byte]."""
        windows = sum(each * np.minimum(context, length) for each, length in self.windows)
        return self.per_token * context + windows + self.state

    def reserved(self, share: float) -> SequenceBytes:
        """Return the same where windows are given `share` tokens for each growing one [-]."""
        if not self.per_token:
            return self
        growing = self.per_token + share * sum(each for each, _ in self.windows)
        return SequenceBytes(growing, (), self.state)


@dataclass(frozen=True, slots=True, eq=False)
class EngineMemory:
    """What an engine prints when it starts [GiB], on one GPU unless `whole_model`."""

    weights_gib: float
    kv_gib: float
    kv_tokens: int | None
    """Tokens of the cache of one replica; None where nothing grows [token]."""
    activation_gib: float
    non_torch_gib: float
    graph_gib: float
    requested_gib: float
    """The fraction of memory planned with."""
    note: str = ""


def plan_memory(
    spec: ModelSpec,
    accelerator: Accelerator,
    sharding: Sharding,
    formats: Formats,
    engine: Engine,
    fraction: float | None = None,
) -> Memory:
    """Return what fits on an accelerator under a sharding, as the engine plans it.

    Pool = fraction·(memory − what it takes before) − what it takes after, the engine's rule or
    `fraction` (its gpu_memory_utilization, mem_fraction_static …) [-]. KV heads replicate when TP
    exceeds them, a latent is never split; a pipeline divides layers, attention DP sequences.
    """
    engine = engine.on(accelerator, sharding.tp)
    taken = {
        "weights": loaded_bytes(spec, formats, sharding, engine.loading),
        "activation": activation_bytes(
            spec, formats, sharding, engine.overheads, engine.chunk_tokens, engine.max_sequences
        ),
        "buffers": buffer_bytes(sharding, engine.overheads, _linked(accelerator, sharding)),
        "graphs": graph_bytes(spec, sharding, engine.overheads),
    }
    pool = requested_bytes(accelerator, sharding, engine, fraction, taken)
    sequence = sequence_bytes(spec, sharding, formats)
    if engine.paging.window_share is not None:
        sequence = sequence.reserved(engine.paging.window_share)
    return Memory(
        weights_bytes_per_gpu=taken["weights"],
        kv_pool_bytes_per_gpu=pool - sum(taken[name] for name in engine.after_fraction),
        kv_bytes_per_token=spec.kv_elements_per_token * formats.kv.bytes,
        state_bytes_per_sequence=spec.state_elements * formats.state.bytes,
        gpu_sequence_bytes=sequence,
        attention_dp=sharding.attention_dp,
        max_sequences=engine.max_sequences,
        activation_bytes_per_gpu=taken["activation"],
        buffer_bytes_per_gpu=taken["buffers"],
        graph_bytes_per_gpu=taken["graphs"],
        block_tokens=engine.kv_block_tokens,
        state_share=engine.paging.state_share if sequence.state and sequence.per_token else 0.0,
    )


def requested_bytes(
    accelerator: Accelerator,
    sharding: Sharding,
    engine: Engine,
    fraction: float | None,
    taken: dict[str, float],
) -> float:
    """Return the memory an engine plans weights and cache in, on one GPU [byte]."""
    total = reported_bytes(accelerator) if engine.as_reported else float(accelerator.memory())
    share = engine.memory_fraction if fraction is None else fraction
    if engine.reserve and fraction is None:
        kept = engine.reserve.of(
            total, engine.chunk_tokens, engine.graph_sequences, sharding.tp * sharding.pp
        )
        share = max(0.0, 1.0 - kept / total)
    return share * (total - sum(taken[name] for name in engine.before_fraction))


def _linked(accelerator: Accelerator, sharding: Sharding) -> bool:
    return (accelerator.domain_size or 1) >= sharding.gpus > 1


def sequence_bytes(spec: ModelSpec, sharding: Sharding, formats: Formats) -> SequenceBytes:
    """Return the cache and state bytes of one sequence on one GPU of the replica that holds it."""
    growing, state = 0.0, 0.0
    windows: dict[float, float] = {}
    for group in spec.groups:
        for part in group.block.parts:
            for cache in part.caches():
                share = group.count / sharding.pp / min(sharding.tp, cache.ways)
                each = cache.elements_per_token * formats.kv.bytes * share
                if math.isinf(cache.window):
                    growing += each
                else:
                    windows[cache.window] = windows.get(cache.window, 0.0) + each
            for kept in part.states():
                share = group.count / sharding.pp / min(sharding.tp, kept.ways)
                state += kept.elements * formats.state.bytes * share
    return SequenceBytes(growing, tuple((each, length) for length, each in windows.items()), state)


def engine_report(
    spec: ModelSpec,
    accelerator: Accelerator,
    sharding: Sharding,
    formats: Formats,
    engine: Engine,
    fraction: float | None = None,
    max_model_len: int | None = None,
    latent: str = "latent",
) -> EngineMemory:
    """Return what an engine prints when it starts, in its own units.

    `fraction` is the memory fraction it was started with, None its default; `max_model_len` the
    longest context, None the model's [token]; `latent` how it keeps a latent cache (`pages.kinds`).
    An engine of `whole_model` reports the bytes of the file and the cache of one sequence of
    `max_model_len`, over all devices.
    """
    longest = max_model_len or spec.max_context or 2**17
    if engine.whole_model:
        return _whole_report(spec, formats, engine, longest, latent)
    engine = engine.on(accelerator, sharding.tp)
    found = plan_memory(spec, accelerator, sharding, formats, engine, fraction)
    pool = found.kv_pool_bytes_per_gpu
    tokens = printed_tokens(
        pool,
        kinds(spec, sharding, formats, latent),
        engine.paging,
        engine.kv_block_tokens,
        engine.chunk_tokens,
        longest,
    )
    taken = {
        "weights": found.weights_bytes_per_gpu,
        "activation": found.activation_bytes_per_gpu,
        "buffers": found.buffer_bytes_per_gpu,
    }
    return EngineMemory(
        weights_gib=found.weights_bytes_per_gpu / GIB,
        kv_gib=pool / GIB,
        kv_tokens=None if tokens is None else tokens * sharding.attention_dp,
        activation_gib=found.activation_bytes_per_gpu / GIB,
        non_torch_gib=found.buffer_bytes_per_gpu / GIB,
        graph_gib=found.graph_bytes_per_gpu / GIB,
        requested_gib=requested_bytes(accelerator, sharding, engine, fraction, taken) / GIB,
        note="" if pool > 0 else "nothing is left for the cache: the engine refuses to start",
    )


def _whole_report(
    spec: ModelSpec, formats: Formats, engine: Engine, longest: int, latent: str
) -> EngineMemory:
    alone = Sharding()
    cache = sum(
        kind.layers * (kind.token_bytes * longest + kind.state_bytes)
        for kind in kinds(spec, alone, formats, latent)
    )
    activation = activation_bytes(
        spec, formats, alone, engine.overheads, engine.chunk_tokens, engine.max_sequences
    )
    return EngineMemory(
        weights_gib=loaded_bytes(spec, formats, alone, engine.loading) / GIB,
        kv_gib=cache / GIB,
        kv_tokens=longest,
        activation_gib=activation / GIB,
        non_torch_gib=engine.overheads.process_bytes / GIB,
        graph_gib=0.0,
        requested_gib=0.0,
    )
