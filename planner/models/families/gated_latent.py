"""Sparse latent attention with gates and mixed residual streams: AX-K2, Hunyuan 4, Mistral Large 4,
dots3, GLM-5 next and Bailing hybrid."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

from planner.models.compressed import HyperConnection
from planner.models.decoder import (
    Importer,
    Moe,
    Shape,
    Traits,
    read_decoder,
    read_dense,
    read_experts,
    read_latent,
    read_shape,
    sparse_layers,
)
from planner.models.delta import KimiDelta
from planner.models.families.sparse_latent import own_indexers, read_indexer
from planner.models.latent import LatentAttention
from planner.models.mlp import Projection
from planner.models.parts import Block, Linear, Part
from planner.models.reader import ConfigReader
from planner.models.spec import ModelSpec
from planner.models.windows import slides, window_size

_TRAITS = Traits(latent=True, qkv_bias="attention_bias", moe=Moe(correction=True))

_SHARED = ("shared_experts_intermediate_size",)


@dataclass(frozen=True, slots=True)
class JointGateLatent(LatentAttention):
    """AX-K2's: one projection of twice the query's latent makes queries and the output's gate."""

    def linears(self) -> tuple[Linear, ...]:
        """Down-projections, queries with gate, k and v, output."""
        gate = self.heads * self.v_dim
        return tuple(
            replace(linear, inputs=2 * (self.q_rank or 0), outputs=linear.outputs + gate)
            if linear.kernel == "q_b_proj"
            else linear
            for linear in LatentAttention.linears(self)
        )


@dataclass(frozen=True, slots=True)
class HyperPair(HyperConnection):
    """Streams weighed in and out without mixing them among each other (Hunyuan 4)."""

    def linears(self) -> tuple[Linear, ...]:
        """The projection of the flattened streams to two weights each."""
        return (
            Linear("hyper_proj", self.streams * self.hidden, 2 * self.streams, "other", ways=1),
        )

    def other_params(self) -> int:
        """A bias for each weight and two scales."""
        return 2 * self.streams + 2


def read_shape_of_latents(reader: ConfigReader) -> Shape:
    """Return the sizes of a decoder whose one latent serves all heads."""
    return read_shape(reader, 1, reader.size("v_head_dim"))


def mlps(reader: ConfigReader, shape: Shape, traits: Traits = _TRAITS) -> list[tuple[Part, ...]]:
    """Return the MLPs of each layer: dense, or experts with shared ones."""
    sparse = sparse_layers(reader, shape.layers)
    experts = read_experts(reader, shape, traits.moe or Moe()) if any(sparse) else ()
    dense = (read_dense(reader, shape, traits),) if not all(sparse) else ()
    return [experts if mixture else dense for mixture in sparse]


def read_axk2(reader: ConfigReader) -> ModelSpec:
    """Read an AX-K2: low-rank gates on the norms before attention and before mixtures."""
    shape = read_shape_of_latents(reader)
    plain = read_latent(reader, shape, _TRAITS, reader.size("index_topk"))
    fields = {name: getattr(plain, name) for name in LatentAttention.__dataclass_fields__}
    attention = JointGateLatent(**fields)
    indexer = read_indexer(reader, shape)
    rank = reader.size("gated_norm_rank")
    gate = (
        Projection("norm_gate", shape.hidden, rank),
        Projection("norm_gate", rank, shape.hidden),
    )
    blocks = [
        Block((*gate, indexer, attention), (*gate, *mlp) if len(mlp) > 1 else mlp, 2 * shape.hidden)
        for mlp in mlps(reader, shape)
    ]
    return read_decoder(reader, shape, _TRAITS, blocks)


def read_hunyuan4(reader: ConfigReader) -> ModelSpec:
    """Read a Hunyuan 4: gated sparse latent attention with sinks, in weighed residual streams."""
    shape = read_shape_of_latents(reader)
    attention = read_latent(reader, shape, _TRAITS, reader.size("index_topk"))
    attention = replace(
        attention, output_gate=True, norm_params=attention.norm_params + shape.heads
    )
    indexer = read_indexer(reader, shape)
    streams = reader.size("hc_mult")
    mixing = HyperPair(shape.hidden, streams)
    blocks = [
        Block(
            (mixing, indexer, attention) if own else (mixing, attention),
            (mixing, *mlp),
            2 * shape.hidden,
        )
        for own, mlp in zip(own_indexers(reader, shape.layers), mlps(reader, shape), strict=True)
    ]
    joined = streams * streams * shape.hidden + streams + 1
    return read_decoder(reader, shape, _TRAITS, blocks, other_params=joined)


def read_mistral_large4(reader: ConfigReader) -> ModelSpec:
    """Read a Mistral Large 4: an indexer on the hidden state, layers without rotary positions."""
    shape = read_shape_of_latents(reader)
    rotary = read_latent(reader, shape, _TRAITS, reader.size("index_topk"))
    heads = 2 * shape.heads
    rotary = replace(rotary, norm_params=rotary.norm_params + heads)
    plain = replace(rotary, rope_dim=0, nope_dim=rotary.nope_dim + rotary.rope_dim)
    index_heads, index_dim = reader.size("index_n_heads"), reader.size("index_head_dim")
    indexer = replace(
        read_indexer(reader, shape, shape.hidden),
        norm_params=2 * (index_dim + shape.hidden + index_heads),
    )
    listed = reader.pattern(shape.layers, "no_rope_layers")
    rotates = listed or [(index + 1) % 4 != 0 for index in range(shape.layers)]
    blocks = [
        Block((indexer, rotary if rotate else plain), mlp, 2 * shape.hidden)
        for rotate, mlp in zip(rotates, mlps(reader, shape), strict=True)
    ]
    return read_decoder(reader, shape, _TRAITS, blocks, other_params=rotary.rope_dim // 2)


def read_dots3(reader: ConfigReader) -> ModelSpec:
    """Read a dots3: latent attention, sparse or sliding; `per_layer_config` sizes some layers."""
    shape = read_shape_of_latents(reader)
    kinds = reader.pattern(shape.layers, "layer_types") or ["indexed_attention"] * shape.layers
    traits = replace(_TRAITS, moe=Moe(correction=True, shared_each=_SHARED))
    per_layer = reader.nested("per_layer_config") or ConfigReader({}, "per_layer_config.")
    window = window_size(reader, 512)
    indexer = read_indexer(reader, shape)
    blocks = []
    for index, (kind, mlp) in enumerate(zip(kinds, mlps(reader, shape, traits), strict=True)):
        own = per_layer.nested(f"{index:02d}", str(index))
        view = reader if own is None else ConfigReader(own.config, own.path, reader, inherits=True)
        heads = view.size("num_attention_heads")
        near = slides(kind)
        latent = read_latent(
            view, replace(shape, heads=heads), _TRAITS, window if near else view.size("index_topk")
        )
        latent = replace(latent, norm_params=latent.norm_params + latent.rope_dim)
        gate = Projection("head_gate", shape.hidden, heads, "attention")
        mixers: tuple[Part, ...] = (gate, latent) if near else (indexer, gate, latent)
        blocks.append(Block(mixers, mlp, 2 * shape.hidden))
    return read_decoder(reader, shape, _TRAITS, blocks)


@dataclass(frozen=True, slots=True)
class FullRankDelta(KimiDelta):
    """Kimi delta attention with full projections for decay and output gate (Bailing hybrid)."""

    def linears(self) -> tuple[Linear, ...]:
        """q, k, v; decay, output gate and β; out."""
        heads = self.heads
        gates = Linear("kda_gates", self.hidden, self.width, "mixer", ways=heads)
        return (
            Linear("qkv_proj", self.hidden, 3 * self.width, "mixer", ways=heads),
            gates,
            gates,
            Linear("kda_gates", self.hidden, heads, "mixer", ways=heads),
            Linear("o_proj", self.width, self.hidden, "mixer", ways=heads, sums=True),
        )


def _linear_or(
    reader: ConfigReader, shape: Shape, delta: Part, full: tuple[Part, ...], period: int
) -> list[tuple[Part, ...]]:
    """Return each layer's mixers: `delta` on linear layers, else `full`."""
    kinds = reader.pattern(shape.layers, "layer_types")
    if kinds is None:
        last = reader.size("layer_group_size", default=period)
        kinds = [
            "full_attention" if (index + 1) % last == 0 else "linear_attention"
            for index in range(shape.layers)
        ]
    return [(delta,) if kind == "linear_attention" else full for kind in kinds]


def _delta(reader: ConfigReader, shape: Shape, kind: Callable[..., KimiDelta]) -> KimiDelta:
    return kind(
        hidden=shape.hidden,
        heads=reader.size("linear_num_heads"),
        head_dim=reader.size("linear_head_dim"),
        taps=reader.size("linear_conv_kernel_dim", "short_conv_kernel_size", default=4),
    )


def read_glm5_next(reader: ConfigReader) -> ModelSpec:
    """Read a GLM-5 next: Kimi delta layers, sparse latent attention over pooled index keys."""
    shape = read_shape_of_latents(reader)
    latent = read_latent(reader, shape, _TRAITS, reader.size("index_topk"))
    pool = reader.size("index_kpool", default=1)
    head_dim = reader.size("index_head_dim")
    pooling = head_dim * (pool + shape.hidden) if pool > 1 else 0
    indexer = replace(
        read_indexer(reader, shape), cache_stride=pool, norm_params=2 * head_dim + pooling
    )
    mixing = HyperConnection(shape.hidden, reader.size("hc_mult"))
    delta = _delta(reader, shape, KimiDelta)
    mixers = _linear_or(reader, shape, delta, (indexer, latent), 4)
    blocks = [
        Block((mixing, *mixer), (mixing, *mlp), 2 * shape.hidden)
        for mixer, mlp in zip(mixers, mlps(reader, shape), strict=True)
    ]
    return read_decoder(reader, shape, _TRAITS, blocks)


def read_bailing_hybrid(reader: ConfigReader) -> ModelSpec:
    """Read a Bailing hybrid (Ling 2.5): Kimi delta layers, every sixth latent attention."""
    shape = read_shape_of_latents(reader)
    latent = read_latent(reader, shape, _TRAITS, math.inf)
    gate = Projection("head_gate", shape.hidden, shape.heads, "attention")
    delta = _delta(reader, shape, FullRankDelta)
    mixers = _linear_or(reader, shape, delta, (gate, latent), 6)
    blocks = [
        Block(mixer, mlp, 2 * shape.hidden)
        for mixer, mlp in zip(mixers, mlps(reader, shape), strict=True)
    ]
    return read_decoder(reader, shape, replace(_TRAITS, ties=False), blocks)


MODEL_TYPES: dict[str, Importer] = {
    "axk2": read_axk2,
    "hy_v4": read_hunyuan4,
    "hy_v4_vl_text": read_hunyuan4,
    "mistral_large4_text": read_mistral_large4,
    "dots3_note_text": read_dots3,
    "glm5_next_text": read_glm5_next,
    "bailing_hybrid": read_bailing_hybrid,
}
