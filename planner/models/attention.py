"""Softmax attention over a per-head cache: full, sliding, grouped, shared, sparse."""

from __future__ import annotations

import math
from dataclasses import dataclass

from planner.kernels import Kernel
from planner.models.caches import Cache, LatentCache, State
from planner.models.parts import Formats, Linear, Mixer


@dataclass(frozen=True, slots=True)
class Attention(Mixer):
    """Multi-head attention with any head grouping.

    Per token and layer it caches kv_heads·(head_dim + v_head_dim) values; a step attends to
    min(context, window) of them at 2·heads·(head_dim + v_head_dim) FLOPs each
    (Ainslie et al., "GQA", 2023).
    """

    hidden: int
    heads: int
    kv_heads: int
    head_dim: int
    v_head_dim: int | None = None
    window: float = math.inf
    attended: float = math.inf
    """Most cached tokens a query attends to where an indexer picks them; all are kept [token]."""
    qkv_bias: bool = False
    out_bias: bool = False
    output_gate: bool = False
    """q_proj also produces a gate of the output's width (Qwen3-Next)."""
    gate_bias: bool = True
    """Whether that gate has a bias where q has one."""
    head_gate: bool = False
    """A projection makes one gate a head (Step-3.5)."""
    own_kv: bool = True
    """False where keys and values are another layer's: no k and v projection, no cache."""
    own_v: bool = True
    """False where values are the keys' projection (k_eq_v): no v projection, both cached."""
    norm_params: int = 0
    """Query and key norms, sinks and other vectors [-]."""

    @property
    def value_dim(self) -> int:
        """Width of a value head [-]."""
        return self.head_dim if self.v_head_dim is None else self.v_head_dim

    def linears(self) -> tuple[Linear, ...]:
        """q, k, v (one launch) and the output projection."""
        gate = self.heads * self.value_dim if self.output_gate else 0
        query = self.heads * self.head_dim + (gate if self.gate_bias else 0)
        qkv = [Linear("qkv_proj", self.hidden, query, "attention", self.qkv_bias, self.heads)]
        if gate and not self.gate_bias:
            qkv.append(Linear("qkv_proj", self.hidden, gate, "attention", ways=self.heads))
        if self.own_kv:
            widths = [self.head_dim, self.value_dim] if self.own_v else [self.head_dim]
            qkv += [
                Linear(
                    "qkv_proj",
                    self.hidden,
                    self.kv_heads * width,
                    "attention",
                    self.qkv_bias,
                    self.kv_heads,
                )
                for width in widths
            ]
        if self.head_gate:
            qkv.append(Linear("qkv_proj", self.hidden, self.heads, "attention", ways=self.heads))
        out = Linear(
            "o_proj",
            self.heads * self.value_dim,
            self.hidden,
            "attention",
            self.out_bias,
            self.heads,
            sums=True,
        )
        return (*qkv, out)

    def other_params(self) -> int:
        """Norms and sinks."""
        return self.norm_params

    def caches(self) -> tuple[Cache, ...]:
        """Keys and values, unless another layer keeps them."""
        if not self.own_kv:
            return ()
        per_token = self.kv_heads * (self.head_dim + self.value_dim)
        return (Cache(per_token, self.kv_heads, self.window),)

    def states(self) -> tuple[State, ...]:
        """None."""
        return ()

    @property
    def sharded_heads(self) -> int | None:
        """Query heads."""
        return self.heads

    @property
    def rotary_width(self) -> int | None:
        """A head's width where it computes keys; layers that share them share the table."""
        return self.head_dim if self.own_kv else None

    @property
    def cached_head_width(self) -> int | None:
        """A head's width."""
        return self.head_dim

    @property
    def latent_cache(self) -> LatentCache | None:
        """None."""
        return None

    def core_kernels(self, formats: Formats) -> tuple[Kernel, ...]:
        """One pass over the attended cache; a token reads its queries and writes its output."""
        widths = self.head_dim + self.value_dim
        name = "attention" if math.isinf(self.window) else "attention_window"
        return (
            Kernel(
                name=name if math.isinf(self.attended) else "attention_sparse",
                kind="attention",
                compute="bf16",
                activation_values_per_token=self.heads * widths,
                flops_per_cached=2.0 * self.heads * widths,
                bytes_per_cached=self.kv_heads * widths * formats.kv.bytes,
                window=min(self.window, self.attended),
                flop_ways=self.heads,
                cache_ways=self.kv_heads,
                weight_format=formats.kv.id,
            ),
        )


@dataclass(frozen=True, slots=True)
class CrossAttention(Attention):
    """Attention to the tokens of an image encoder: text adds nothing to its cache."""

    def caches(self) -> tuple[Cache, ...]:
        """None: keys and values of the image are fixed while text grows."""
        return ()

    @property
    def rotary_width(self) -> int | None:
        """None: tokens of an image have no place in the text."""
        return None

    def core_kernels(self, formats: Formats) -> tuple[Kernel, ...]:
        """None: a text-only sequence has no image tokens."""
        del formats
        return ()


@dataclass(frozen=True, slots=True)
class Indexer(Mixer):
    """Scores every cached token for sparse attention with `heads` small queries and one key.

    The key of `head_dim` values is cached per token; the scan does 2·heads·head_dim FLOPs a cached
    token (DeepSeek-V3.2 report, 2025).
    """

    hidden: int
    query_inputs: int
    """Width the index queries are projected from: the query latent, or the hidden size [-]."""
    heads: int
    head_dim: int
    norm_params: int = 0
    cache_stride: int = 1
    """Tokens per cached key [token]."""
    head_weights: bool = True
    """Whether a projection weighs the heads; MiniMax-M3's take the largest instead."""

    def linears(self) -> tuple[Linear, ...]:
        """Query, key and head-weight projections, replicated on every rank."""
        weights = Linear("indexer_proj", self.hidden, self.heads, "indexer", ways=1)
        return (
            Linear(
                "indexer_proj", self.query_inputs, self.heads * self.head_dim, "indexer", ways=1
            ),
            Linear("indexer_proj", self.hidden, self.head_dim, "indexer", ways=1),
            *((weights,) if self.head_weights else ()),
        )

    def other_params(self) -> int:
        """Norms of key and query."""
        return self.norm_params

    def caches(self) -> tuple[Cache, ...]:
        """One key per `cache_stride` tokens."""
        return (Cache(self.head_dim / self.cache_stride, 1, index=True),)

    def states(self) -> tuple[State, ...]:
        """None."""
        return ()

    @property
    def sharded_heads(self) -> int | None:
        """None: every rank runs all its heads."""
        return None

    @property
    def rotary_width(self) -> int | None:
        """Width of its key."""
        return self.head_dim

    @property
    def cached_head_width(self) -> int | None:
        """Width of its key."""
        return self.head_dim

    @property
    def latent_cache(self) -> LatentCache | None:
        """None."""
        return None

    def core_kernels(self, formats: Formats) -> tuple[Kernel, ...]:
        """The scan over all cached keys; a token reads its queries and the weights of heads.

        Scores are taken to stay on chip until the best are picked.
        """
        return (
            Kernel(
                name="indexer",
                kind="indexer",
                compute="bf16",
                activation_values_per_token=self.heads * (self.head_dim + self.head_weights),
                flops_per_cached=2.0 * self.heads * self.head_dim / self.cache_stride,
                bytes_per_cached=self.head_dim * formats.index_kv.bytes / self.cache_stride,
                flop_ways=1,
                cache_ways=1,
                weight_format=formats.index_kv.id,
            ),
        )
