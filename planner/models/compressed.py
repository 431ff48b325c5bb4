"""Attention over compressed entries (DeepSeek-V4) and the residual streams around it.

DeepSeek-V4 report, 2026, section 2: one shared key-value vector a token (multi-query with K = V) in
a short sliding window, and beyond it one entry per `ratio` tokens. At a ratio of 4 an indexer picks
`top_k` entries (compressed sparse attention), at 128 all are attended (heavily compressed).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from planner.kernels import Kernel
from planner.models.caches import Cache, LatentCache, State
from planner.models.parts import Auxiliary, Formats, Linear, Mixer


@dataclass(frozen=True, slots=True)
class Picker:
    """The indexer of compressed sparse attention: it scores compressed entries, not tokens."""

    heads: int
    head_dim: int
    top_k: int
    """Entries attended at most [-]."""


@dataclass(frozen=True, slots=True)
class CompressedAttention(Mixer):
    """Multi-query attention with K = V over a window and over compressed entries.

    Per token it caches head_dim/ratio values for ever and head_dim in the window; a step does
    4·heads·head_dim FLOPs for each window token and each of min(context/ratio, top_k) entries.
    """

    hidden: int
    heads: int
    head_dim: int
    q_rank: int
    o_groups: int
    o_rank: int
    window: int
    ratio: int = 0
    """Tokens per compressed entry; 0 keeps the window alone [token]."""
    picker: Picker | None = None

    @property
    def _series(self) -> int:
        """Overlapping series compressed side by side: two where entries are picked [-]."""
        return 2 if self.picker else 1

    def linears(self) -> tuple[Linear, ...]:
        """Query and key-value latents, queries, grouped output; compressor and indexer."""
        width = self.heads * self.head_dim
        out = self.o_groups * self.o_rank
        linears = [
            Linear("kv_a_proj", self.hidden, self.q_rank, "attention", ways=1),
            Linear("kv_a_proj", self.hidden, self.head_dim, "attention", ways=1),
            Linear("q_b_proj", self.q_rank, width, "attention", ways=self.heads),
            Linear(
                "o_a_proj",
                width // self.o_groups,
                out,
                "attention",
                ways=self.o_groups,
                input_values=width,
            ),
            Linear("o_proj", out, self.hidden, "attention", ways=self.o_groups, sums=True),
        ]
        if self.ratio:
            entry = 2 * self._series * self.head_dim
            linears.append(Linear("compressor", self.hidden, entry, "attention", ways=1))
        if self.picker:
            keys, heads = self.picker.head_dim, self.picker.heads
            linears += [
                Linear("indexer_proj", self.hidden, 4 * keys, "indexer", ways=1),
                Linear("indexer_proj", self.q_rank, heads * keys, "indexer", ways=1),
                Linear("indexer_proj", self.hidden, heads, "indexer", ways=1),
            ]
        return tuple(linears)

    def other_params(self) -> int:
        """Norms of latents and entries, sinks, and the position biases of the compressors."""
        params = self.q_rank + self.head_dim + self.heads
        if self.ratio:
            params += (self.ratio * self._series + 1) * self.head_dim
        if self.picker:
            params += (self.ratio * self._series + 1) * self.picker.head_dim
        return params

    def caches(self) -> tuple[Cache, ...]:
        """The window; entries, and their index keys, of which each stands for `ratio` tokens."""
        caches = [Cache(self.head_dim, 1, self.window)]
        if self.ratio:
            caches.append(Cache(self.head_dim / self.ratio, 1))
        if self.picker:
            caches.append(Cache(self.picker.head_dim / self.ratio, 1, index=True))
        return tuple(caches)

    def states(self) -> tuple[State, ...]:
        """Values and gates of the last full window, which the next entry overlaps."""
        if not self.picker:
            return ()
        return (State(2 * self.ratio * (self.head_dim + self.picker.head_dim), 1),)

    @property
    def sharded_heads(self) -> int | None:
        """Query heads."""
        return self.heads

    @property
    def rotary_width(self) -> int | None:
        """Width of an entry."""
        return self.head_dim

    @property
    def cached_head_width(self) -> int | None:
        """Width of an entry."""
        return self.head_dim

    @property
    def latent_cache(self) -> LatentCache | None:
        """None: its entries are keys and values as they are."""
        return None

    def core_kernels(self, formats: Formats) -> tuple[Kernel, ...]:
        """One pass over window and entries, and the scan of the index keys."""
        kernels = [self._pass(formats, "attention_window", 1, self.window, launches=1)]
        if self.ratio:
            attended = self.picker.top_k * self.ratio if self.picker else math.inf
            kernels.append(
                self._pass(formats, "attention_compressed", self.ratio, attended, launches=0)
            )
        if self.picker:
            kernels.append(
                Kernel(
                    name="indexer",
                    kind="indexer",
                    compute="bf16",
                    activation_values_per_token=self.picker.heads * (self.picker.head_dim + 1),
                    flops_per_cached=2.0 * self.picker.heads * self.picker.head_dim / self.ratio,
                    bytes_per_cached=self.picker.head_dim * formats.index_kv.bytes / self.ratio,
                    flop_ways=1,
                    cache_ways=1,
                    weight_format=formats.kv.id,
                )
            )
        return tuple(kernels)

    def _pass(
        self, formats: Formats, name: str, stride: int, window: float, launches: int
    ) -> Kernel:
        return Kernel(
            name=name,
            kind="latent",
            compute="bf16",
            # Query and output; the compressed part is of the window's launch, which has both.
            activation_values_per_token=2.0 * self.heads * self.head_dim * launches,
            launches=launches,
            flops_per_cached=4.0 * self.heads * self.head_dim / stride,
            bytes_per_cached=self.head_dim * formats.kv.bytes / stride,
            window=window,
            flop_ways=self.heads,
            cache_ways=1,
            weight_format=formats.kv.id,
        )


@dataclass(frozen=True, slots=True)
class HyperConnection(Auxiliary):
    """Weights that mix `streams` residual streams into a sublayer and out again (mHC).

    The flattened streams are projected to (2 + streams)·streams weights (Xie et al., 2026).
    """

    hidden: int
    streams: int

    def linears(self) -> tuple[Linear, ...]:
        """The projection of the flattened streams."""
        outputs = (2 + self.streams) * self.streams
        return (Linear("hyper_proj", self.streams * self.hidden, outputs, "other", ways=1),)

    def other_params(self) -> int:
        """Bias of each weight and the three scales."""
        return (2 + self.streams) * self.streams + 3
