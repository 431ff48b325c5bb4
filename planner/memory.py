"""What fits: weights per GPU, cache bytes per sequence, the pool, the largest batch and context."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from planner.engines import Engine
from planner.hw import Accelerator
from planner.models.parts import Formats
from planner.models.spec import ModelSpec
from planner.parallel import Sharding
from planner.roofline import Numeric


@dataclass(frozen=True, slots=True)
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

    @property
    def kv_pool_tokens(self) -> int | None:
        """Tokens of one long sequence the replica's pools hold; None where nothing grows."""
        growth = self.gpu_sequence_bytes.per_token
        if growth == 0:
            return None
        return self.attention_dp * max(0, math.floor(self.kv_pool_bytes_per_gpu / growth))

    def max_batch(self, context: float) -> int:
        """Return the sequences of `context` tokens the replica holds at once [-]."""
        each = float(self.gpu_sequence_bytes.at(context))
        fit = (
            math.floor(max(0.0, self.kv_pool_bytes_per_gpu) / each) if each else self.max_sequences
        )
        if self.kv_pool_bytes_per_gpu < 0:
            return 0
        return min(fit, self.max_sequences) * self.attention_dp

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


@dataclass(frozen=True, slots=True)
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


def plan_memory(spec: ModelSpec, accelerator: Accelerator, sharding: Sharding, formats: Formats,
                engine: Engine) -> Memory:  # fmt: skip
    """Return what fits on an accelerator under a sharding.

    Pool = fraction·memory − reserve − weights. KV heads replicate when TP exceeds them, a latent is
    never split; a pipeline divides layers, attention DP divides sequences.
    """
    weights = spec.weights_bytes(formats, sharding.tp, sharding.ranks) / sharding.pp
    usable = engine.memory_fraction * accelerator.memory() - engine.reserve_bytes
    return Memory(
        weights_bytes_per_gpu=weights,
        kv_pool_bytes_per_gpu=usable - weights,
        kv_bytes_per_token=spec.kv_elements_per_token * formats.kv.bytes,
        state_bytes_per_sequence=spec.state_elements * formats.state.bytes,
        gpu_sequence_bytes=sequence_bytes(spec, sharding, formats),
        attention_dp=sharding.attention_dp,
        max_sequences=engine.max_sequences,
    )


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
