"""Multi-head latent attention (MLA)."""

from __future__ import annotations

import math
from dataclasses import dataclass

from planner.kernels import Kernel
from planner.models.caches import Cache, LatentCache, State
from planner.models.parts import Formats, Linear, Mixer


@dataclass(frozen=True, slots=True)
class LatentAttention(Mixer):
    """Attention whose cache is one latent of kv_rank + rope_dim values per token, for all heads.

    Decode runs absorbed: the up-projections act on queries and outputs, and a head does
    2·(2·kv_rank + rope_dim) FLOPs a cached token. A prompt runs expanded, at
    2·(nope_dim + rope_dim + v_dim) a head (DeepSeek-V2 report, 2024, section 2.1).
    """

    hidden: int
    heads: int
    kv_rank: int
    rope_dim: int
    nope_dim: int
    v_dim: int
    q_rank: int | None
    """Rank of the query's latent; None projects queries from the hidden state directly [-]."""
    window: float = math.inf
    """Cached tokens attended at most: the top-k of a sparse indexer [token]."""
    norm_params: int = 0
    bias: bool = False
    output_gate: bool = False

    def linears(self) -> tuple[Linear, ...]:
        """Down-projections (replicated), up-projections and output, split over heads."""
        query = self.heads * (self.nope_dim + self.rope_dim)
        out = self.heads * self.v_dim
        down = [
            Linear(
                "kv_a_proj", self.hidden, self.kv_rank + self.rope_dim, "attention", self.bias, 1
            )
        ]
        if self.q_rank is None:
            up = [Linear("q_proj", self.hidden, query, "attention", ways=self.heads)]
        else:
            down.insert(0, Linear("kv_a_proj", self.hidden, self.q_rank, "attention", self.bias, 1))
            up = [Linear("q_b_proj", self.q_rank, query, "attention", ways=self.heads)]
        gate = (
            [Linear("gate_proj", self.hidden, out, "attention", ways=self.heads)]
            if self.output_gate
            else []
        )
        return (
            *down,
            *up,
            *gate,
            Linear(
                "kv_b_proj",
                self.kv_rank,
                self.heads * (self.nope_dim + self.v_dim),
                "attention",
                ways=self.heads,
                # Keys: nope_dim to kv_rank on the query; values: kv_rank to v_dim on the output.
                absorbed_values=self.heads * (self.nope_dim + 2 * self.kv_rank + self.v_dim),
            ),
            Linear("o_proj", out, self.hidden, "attention", self.bias, self.heads, sums=True),
        )

    def other_params(self) -> int:
        """Norms of the latents."""
        return self.norm_params

    def caches(self) -> tuple[Cache, ...]:
        """The latent and the shared rotary key; tensor parallelism cannot split them."""
        return (Cache(self.kv_rank + self.rope_dim, 1),)

    def states(self) -> tuple[State, ...]:
        """None."""
        return ()

    @property
    def sharded_heads(self) -> int | None:
        """Query heads."""
        return self.heads

    @property
    def rotary_width(self) -> int | None:
        """Width of the rotary part of a head."""
        return self.rope_dim

    @property
    def cached_head_width(self) -> int | None:
        """None: all heads share the latent."""
        return None

    @property
    def latent_cache(self) -> LatentCache | None:
        """The latent, and keys and values of every head."""
        width = self.nope_dim + self.rope_dim + self.v_dim
        expanded = Cache(self.heads * width, self.heads)
        return LatentCache(self.kv_rank, expanded)

    def core_kernels(self, formats: Formats) -> tuple[Kernel, ...]:
        """One absorbed pass over the latents; queries and outputs are in the latent's space."""
        latent = self.kv_rank + self.rope_dim
        return (self._pass(formats, latent + self.kv_rank, latent + self.kv_rank),)

    def prompt_kernels(self, formats: Formats) -> tuple[Kernel, ...]:
        """One expanded pass over the keys and values that kv_b_proj makes of the same tokens.

        A token reads its query, keys and values (the rotary key comes with the cache) and writes
        its output.
        """
        key, value = self.nope_dim + self.rope_dim, self.v_dim
        return (self._pass(formats, key + value, key + self.nope_dim + 2 * value),)

    def _pass(self, formats: Formats, width: int, moved: int) -> Kernel:
        """The pass at 2·width FLOPs a head and cached token, and `moved` values a head."""
        return Kernel(
            name="attention_latent",
            kind="latent",
            compute="bf16",
            activation_values_per_token=self.heads * moved,
            flops_per_cached=2.0 * self.heads * width,
            bytes_per_cached=(self.kv_rank + self.rope_dim) * formats.kv.bytes,
            window=self.window,
            flop_ways=self.heads,
            cache_ways=1,
            weight_format=formats.kv.id,
        )
