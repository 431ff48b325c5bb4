"""Inkling and Inkling 2: short convolutions on keys, values and branches, learned relative
positions, and in Inkling 2 gated outputs, sinks by token and layers run in loops."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from planner.models.attention import Attention
from planner.models.caches import State
from planner.models.decoder import (
    Importer,
    Moe,
    Shape,
    Traits,
    read_decoder,
    read_dense,
    read_experts,
    read_shape,
    sparse_layers,
)
from planner.models.mlp import Experts, Projection
from planner.models.parts import Block, Linear, Part
from planner.models.reader import ConfigError, ConfigReader
from planner.models.spec import ModelSpec
from planner.models.windows import slides, window_size

_ONE = Traits(moe=Moe(("moe_intermediate_size",)))
_TWO = Traits(moe=Moe(("moe_intermediate_size",)))


@dataclass(frozen=True, slots=True)
class ConvolvedAttention(Attention):
    """Attention whose keys and values pass a short convolution, with relative position scores.

    Each head's position query of `rank` values meets a table of `extent` distances.
    """

    rank: int = 16
    extent: int = 0
    taps: int = 4
    sink_proj: bool = False

    def linears(self) -> tuple[Linear, ...]:
        """q, k, v and gate; position queries; sinks; output."""
        beside = [
            Linear("rel_proj", self.hidden, self.heads * self.rank, "attention", ways=self.heads)
        ]
        if self.sink_proj:
            beside.append(Linear("rel_proj", self.hidden, self.heads, "attention", ways=self.heads))
        return (*Attention.linears(self), *beside)

    def states(self) -> tuple[State, ...]:
        """The convolutions' last inputs."""
        width = self.kv_heads * (self.head_dim + self.value_dim)
        return (State(self.taps * width, self.kv_heads, (self.taps - 1) * width),)


def _heads(reader: ConfigReader, shape: Shape, near: bool) -> tuple[int, int, int]:
    """Return query heads, KV heads and head size of a full or sliding layer."""
    if not near:
        return shape.heads, shape.kv_heads, shape.head_dim
    return (
        reader.size("swa_num_attention_heads", default=shape.heads),
        reader.size("swa_num_key_value_heads", default=shape.kv_heads),
        reader.size("swa_head_dim", default=shape.head_dim),
    )


def _near(reader: ConfigReader, layers: int) -> list[bool]:
    kinds = reader.pattern(layers, "layer_types")
    if kinds is None:
        return [(index + 1) % 6 != 0 for index in range(layers)]
    return [slides(kind) for kind in kinds]


def read_inkling(reader: ConfigReader) -> ModelSpec:
    """Read an Inkling: experts with shared ones the router scores too."""
    shape = read_shape(reader)
    taps = reader.size("conv_kernel_size", default=4)
    window = window_size(reader, 512)
    shared = reader.size("n_shared_experts", default=0, zero=True)
    mixers: dict[bool, Part] = {}
    for near in (False, True):
        heads, kv_heads, head_dim = _heads(reader, shape, near)
        extent = int(window) if near and math.isfinite(window) else reader.size("rel_extent")
        rank = reader.size("d_rel")
        mixers[near] = ConvolvedAttention(
            shape.hidden,
            heads,
            kv_heads,
            head_dim,
            window=window if near else math.inf,
            norm_params=2 * head_dim + 2 * taps * kv_heads * head_dim + rank * extent,
            rank=rank,
            taps=taps,
        )
    sparse = sparse_layers(reader, shape.layers)
    mixture = [
        replace(
            part, router_experts=part.experts + shared, other=1, correction=part.experts + shared
        )
        if isinstance(part, Experts)
        else part
        for part in (read_experts(reader, shape, _ONE.moe or Moe()) if any(sparse) else ())
    ]
    dense = () if all(sparse) else (read_dense(reader, shape, _ONE),)
    convolutions = 2 * taps * shape.hidden
    blocks = [
        Block((mixers[near],), tuple(mixture) if mixed else dense, 2 * shape.hidden + convolutions)
        for near, mixed in zip(_near(reader, shape.layers), sparse, strict=True)
    ]
    return read_decoder(reader, shape, _ONE, blocks, **_head(reader, shape, 2))


def _head(reader: ConfigReader, shape: Shape, norms: int) -> dict[str, int]:
    """Return the head over the vocabulary without padding, and vectors beside the final norm."""
    rows = reader.optional_size("unpadded_vocab_size") or shape.vocab
    return {"head_params": rows * shape.hidden, "other_params": (norms - 1) * shape.hidden}


def read_inkling2(reader: ConfigReader) -> ModelSpec:
    """Read an Inkling 2: layers read weighed sums of earlier ones, some run in loops."""
    shape = read_shape(reader)
    taps = reader.size("conv_kernel_size", default=4)
    window = window_size(reader, 1024)
    routed = read_experts(reader, shape, _TWO.moe or Moe())
    blocks = []
    start = reader.optional_size("loop_layer_index_start")
    end = reader.size("loop_layer_index_end", default=0, zero=True)
    near = _near(reader, shape.layers)
    first = near.index(True) if True in near else -1
    for index, slide in enumerate(near):
        heads, kv_heads, head_dim = _heads(reader, shape, slide)
        keys = kv_heads * head_dim
        rank = reader.size("d_rel")
        vectors = heads * head_dim + heads * rank + rank * reader.size("rel_extent")
        attention = ConvolvedAttention(
            shape.hidden,
            heads,
            kv_heads,
            head_dim,
            window=window if slide else math.inf,
            output_gate=True,
            norm_params=vectors + 2 * taps * keys,
            rank=rank,
            taps=taps,
            sink_proj=True,
        )
        beside: list[Part] = []
        # Sliding layers: input norm and query; others three of each, and taps made by token.
        own = 2 if slide and index != first else 1 if slide else 6
        if not slide:
            beside += [Projection("conv_taps", shape.hidden, taps * kv_heads)] * 2
        if start is not None and start <= index < end:
            gate_rank = reader.size("loop_gate_rank")
            beside += [
                Projection("message_gate", 2 * shape.hidden, gate_rank),
                Projection("message_gate", gate_rank, 2 * shape.hidden),
            ] * 4
        blocks.append(Block((attention, *beside), routed, (own + 2 + 2 * taps) * shape.hidden))
    norms = 3
    if start is not None:
        if not start < end <= shape.layers:
            raise ConfigError(f"{reader.path}loop_layer_index_end: {end}; accepted: {start + 1} up")
        passes = reader.size("loop_num_passes", default=1)
        reader.note(
            "looped_layers",
            f"layers {start} to {end - 1} run {passes} times a token; their work is counted once",
        )
        norms += (end - start) * 4
    return read_decoder(reader, shape, _TWO, blocks, **_head(reader, shape, norms))


MODEL_TYPES: dict[str, Importer] = {
    "inkling_text": read_inkling,
    "inkling2_text": read_inkling2,
    "inkling2_loop_text": read_inkling2,
}
