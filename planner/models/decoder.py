"""The decoder most families share, steered by a table of traits per model_type."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from planner.models.assembly import assemble
from planner.models.attention import Attention
from planner.models.latent import LatentAttention
from planner.models.mlp import Dense, Experts, Projection
from planner.models.parts import Block, LayerGroup, Part
from planner.models.reader import ConfigError, ConfigReader
from planner.models.spec import ModelSpec
from planner.models.windows import Windows, full

HIDDEN = ("hidden_size", "n_embd", "n_embed", "d_model")
LAYERS = ("num_hidden_layers", "n_layer", "n_layers", "num_layers")
HEADS = ("num_attention_heads", "n_head", "n_heads", "num_heads", "attention_heads")
KV_HEADS = ("num_key_value_heads", "num_kv_heads", "multi_query_group_num")
WIDTH = (
    "intermediate_size",
    "ffn_hidden_size",
    "n_inner",
    "ffn_dim",
    "ff_intermediate_size",
    "dim_ff",
    "dff",
)
VOCAB = ("vocab_size", "padded_vocab_size")
EXPERTS = ("num_experts", "num_local_experts", "n_routed_experts", "moe_num_experts")
TOP_K = (
    "num_experts_per_tok",
    "num_experts_per_token",
    "moe_topk",
    "moe_top_k",
    "moe_k",
    "experts_per_token",
    "top_k_experts",
)


Switch = bool | str | tuple[str, ...]
"""Something a model_type fixes in code, or the config field, under any of its names, that decides
it."""


@dataclass(frozen=True)
class Shape:
    """The sizes every decoder states."""

    hidden: int
    layers: int
    heads: int
    kv_heads: int
    head_dim: int
    vocab: int


@dataclass(frozen=True)
class Moe:
    """How a model_type mixes experts."""

    width: tuple[str, ...] = ("moe_intermediate_size", "intermediate_size")
    """Fields that may hold an expert's width."""
    shared_width: tuple[str, ...] = ()
    """Fields that may hold the shared expert's whole width; else count × expert width."""
    shared_each: tuple[str, ...] = ()
    """Fields that may hold the width of each shared expert; else that of a routed one."""
    shared_gate: bool = False
    shared_bias: Switch = False
    norm: bool = False
    """A norm of the hidden size follows the mixture."""
    correction: Switch = False
    """The router has a correction value per expert (a buffer)."""
    router_bias: bool = False
    bias: bool = False
    gated: bool = True
    sparse: Callable[[ConfigReader, int], list[bool]] | None = None
    """Which layers are mixtures; None reads the usual fields."""


@dataclass(frozen=True)
class Traits:
    """What a model_type fixes in code; a text names the config field that decides."""

    qkv_bias: Switch = False
    out_bias: Switch = False
    mlp_bias: Switch = False
    floor_heads: bool = False
    """A missing head_dim is the hidden size over the heads, rounded down."""
    norms: int | Callable[[ConfigReader], int] = 2
    """Vectors of the hidden size a layer holds (norm weights and their biases)."""
    final_norms: int = 1
    qk_norm: str | Callable[[ConfigReader, Shape], int] = ""
    """`head`: one vector of head_dim each for q and k; `full`: of all heads' width; or a count."""
    output_gate: Switch = False
    """A gate of the attention output's width."""
    gate_bias: bool = False
    head_gate: Switch = False
    """A gate a head."""
    sinks: bool = False
    """A learned sink a head."""
    gated: bool = True
    tied: bool = False
    """Class default of tie_word_embeddings."""
    ties: bool = True
    """Whether the class heeds tie_word_embeddings at all."""
    head_bias: Switch = False
    windows: Windows = full
    width: Callable[[ConfigReader, Shape], int] | None = None
    """Width of the dense MLP where it is not a field of its own."""
    dense_other: Callable[[ConfigReader, Shape], int] | None = None
    """Parameters of the dense MLP beside its matrices."""
    moe: Moe | None = None
    latent: bool = False
    mtp: bool = False
    """Checkpoints bring multi-token-prediction layers (num_nextn_predict_layers)."""
    defaults: Mapping[str, Any] = field(default_factory=dict)
    """Class defaults of fields that published files leave out."""


Importer = Callable[[ConfigReader], ModelSpec]


def read_shape(
    reader: ConfigReader,
    kv_heads: int | None = None,
    head_dim: int | None = None,
    floor: bool = False,
) -> Shape:
    """Return the sizes under any of their names; raises ConfigError naming what is missing.

    `kv_heads` and `head_dim` override the file's where a family derives them from other fields;
    `floor` rounds the hidden size over the heads down where there is no head_dim.
    """
    hidden = reader.size(*HIDDEN)
    layers = reader.size(*LAYERS)
    heads = reader.size(*HEADS)
    kv_heads = reader.size(*KV_HEADS, default=heads) if kv_heads is None else kv_heads
    if heads % kv_heads:
        raise ConfigError(
            f"{reader.path}num_key_value_heads: {kv_heads} does not divide {heads} attention heads"
        )
    if head_dim is None:
        head_dim = _head_dim(reader, hidden, heads, floor)
    return Shape(hidden, layers, heads, kv_heads, head_dim, reader.size(*VOCAB))


def _head_dim(reader: ConfigReader, hidden: int, heads: int, floor: bool) -> int:
    names = ("head_dim", "kv_channels", "attention_head_dim", "dim_head")
    if reader.has(*names):
        return reader.size(*names)
    if hidden % heads and not floor:
        raise ConfigError(
            f"{reader.path}hidden_size: {hidden} is not a multiple of {heads} attention heads,"
            " and there is no head_dim"
        )
    return hidden // heads


def switch(reader: ConfigReader, trait: Switch, default: bool = False) -> bool:
    """Return a trait that is fixed, or read the flag it names."""
    if isinstance(trait, bool):
        return trait
    return reader.flag(*((trait,) if isinstance(trait, str) else trait), default=default)


def read_attention(reader: ConfigReader, shape: Shape, traits: Traits, window: float) -> Attention:
    """Return the softmax attention of one layer."""
    return Attention(
        hidden=shape.hidden,
        heads=shape.heads,
        kv_heads=shape.kv_heads,
        head_dim=shape.head_dim,
        window=window,
        qkv_bias=switch(reader, traits.qkv_bias),
        out_bias=switch(reader, traits.out_bias),
        output_gate=switch(reader, traits.output_gate),
        gate_bias=traits.gate_bias,
        head_gate=switch(reader, traits.head_gate),
        norm_params=norm_params(reader, shape, traits) + (shape.heads if traits.sinks else 0),
    )


def norm_params(reader: ConfigReader, shape: Shape, traits: Traits) -> int:
    """Parameters of query and key norms [-]."""
    if callable(traits.qk_norm):
        return traits.qk_norm(reader, shape)
    widths = {"": 0, "head": 2, "full": shape.heads + shape.kv_heads}
    return widths[traits.qk_norm] * shape.head_dim


def read_latent(
    reader: ConfigReader, shape: Shape, traits: Traits, window: float
) -> LatentAttention:
    """Return multi-head latent attention: its cache is kv_lora_rank + qk_rope_head_dim values."""
    q_rank = reader.optional_size("q_lora_rank") or None
    kv_rank = reader.size("kv_lora_rank")
    return LatentAttention(
        hidden=shape.hidden,
        heads=shape.heads,
        kv_rank=kv_rank,
        rope_dim=reader.size("qk_rope_head_dim", zero=True),
        nope_dim=reader.size("qk_nope_head_dim"),
        v_dim=reader.size("v_head_dim"),
        q_rank=q_rank,
        window=window,
        bias=switch(reader, traits.qkv_bias),
        norm_params=kv_rank + (q_rank or 0),
    )


def read_dense(reader: ConfigReader, shape: Shape, traits: Traits) -> Dense:
    """Return the dense MLP of one layer."""
    return Dense(
        shape.hidden,
        traits.width(reader, shape) if traits.width else reader.size(*WIDTH),
        traits.gated,
        switch(reader, traits.mlp_bias),
        other=traits.dense_other(reader, shape) if traits.dense_other else 0,
    )


def four_times(reader: ConfigReader, shape: Shape) -> int:
    """Return the MLP width, by default four times the hidden size."""
    return reader.size(*WIDTH, default=4 * shape.hidden)


def sparse_layers(reader: ConfigReader, layers: int) -> list[bool]:
    """Return, layer by layer, whether its MLP is a mixture of experts.

    Reads `mlp_layer_types`, `first_k_dense_replace` or `num_dense_layers`, `moe_layer_freq` (a
    period or a list), `decoder_sparse_step` and `mlp_only_layers`, whichever are there.
    """
    kinds = reader.pattern(layers, "mlp_layer_types")
    if kinds:
        return [kind != "dense" for kind in kinds]
    if isinstance(reader.config.get("moe_layer_freq"), list):
        return [bool(flag) for flag in reader.pattern(layers, "moe_layer_freq") or ()]
    first = reader.size("first_k_dense_replace", "num_dense_layers", default=0, zero=True)
    period = reader.size("moe_layer_freq", default=1)
    step = reader.size("decoder_sparse_step", default=1)
    dense = reader.sequence("mlp_only_layers") or []
    return [
        index >= first and index % period == 0 and (index + 1) % step == 0 and index not in dense
        for index in range(layers)
    ]


def read_experts(reader: ConfigReader, shape: Shape, moe: Moe) -> tuple[Part, ...]:
    """Return the routed experts of one layer and, beside them, the shared ones."""
    experts = reader.size(*EXPERTS)
    top_k = reader.size(*TOP_K)
    if top_k > experts:
        raise ConfigError(f"{reader.path}{TOP_K[0]}: {top_k} of {experts} experts a token")
    width = reader.size(*moe.width)
    shared = _shared_width(reader, moe, width)
    gate = shape.hidden if moe.shared_gate and shared else 0
    routed = Experts(
        shape.hidden,
        experts,
        top_k,
        width,
        moe.gated,
        moe.bias,
        moe.router_bias,
        other=gate + (shape.hidden if moe.norm else 0),
        correction=experts if switch(reader, moe.correction) else 0,
    )
    if not shared:
        return (routed,)
    bias = switch(reader, moe.shared_bias)
    return (routed, Dense(shape.hidden, shared, moe.gated, bias, role="shared_experts"))


def _shared_width(reader: ConfigReader, moe: Moe, width: int) -> int:
    if moe.shared_width and reader.has(*moe.shared_width):
        return reader.size(*moe.shared_width, zero=True)
    count = reader.optional_size(
        "n_shared_experts", "num_shared_experts", "moe_num_shared_experts", "num_shared_expert"
    )
    if moe.shared_each and reader.has(*moe.shared_each):
        width = reader.size(*moe.shared_each)
    return (count or 0) * width


def decoder(traits: Traits = Traits()) -> Importer:
    """Return the importer of a decoder with these traits."""

    def read(reader: ConfigReader) -> ModelSpec:
        reader.defaults = traits.defaults
        if traits.latent:  # its one latent serves all heads
            return read_decoder(reader, read_shape(reader, 1, reader.size("v_head_dim")), traits)
        return read_decoder(reader, read_shape(reader, floor=traits.floor_heads), traits)

    return read


def read_decoder(
    reader: ConfigReader,
    shape: Shape,
    traits: Traits,
    blocks: list[Block] | None = None,
    **fields: Any,
) -> ModelSpec:
    """Return the spec of a decoder of these sizes and traits, from its own `blocks` if given."""
    blocks = decoder_blocks(reader, shape, traits) if blocks is None else blocks
    head_bias = shape.vocab if switch(reader, traits.head_bias) else 0
    return assemble(
        reader,
        blocks,
        hidden=shape.hidden,
        vocab=shape.vocab,
        tied=traits.tied,
        ties=traits.ties,
        other_params=traits.final_norms * shape.hidden + head_bias + fields.pop("other_params", 0),
        mtp=next_token_layers(reader, shape, blocks[-1]) if traits.mtp else (),
        **fields,
    )


def next_token_layers(reader: ConfigReader, shape: Shape, block: Block) -> tuple[LayerGroup, ...]:
    """Return the multi-token-prediction layers: `block` behind a projection of two hidden states.

    Two norms before the projection and one before the head, which is the model's own; copies of
    the embedding and head that checkpoints may carry are not counted (DeepSeek-V3 report, 2.2).
    """
    count = reader.optional_size("num_nextn_predict_layers", "mtp_num_hidden_layers")
    if not count:
        return ()
    joined = Projection("mtp_proj", 2 * shape.hidden, shape.hidden)
    layer = Block((joined, *block.mixers), block.mlps, block.other_params + 3 * shape.hidden)
    return (LayerGroup(count, layer),)


def decoder_blocks(
    reader: ConfigReader, shape: Shape, traits: Traits, sparse: list[bool] | None = None
) -> list[Block]:
    """Return the layers of a decoder with these traits; `sparse` overrides which mix experts."""
    windows = traits.windows(reader, shape.layers)
    mixer = read_latent if traits.latent else read_attention
    norms = shape.hidden * (traits.norms(reader) if callable(traits.norms) else traits.norms)
    if sparse is None:
        sparse = [False] * shape.layers
        if traits.moe and reader.has(*EXPERTS):
            sparse = (traits.moe.sparse or sparse_layers)(reader, shape.layers)
    experts = read_experts(reader, shape, traits.moe) if traits.moe and any(sparse) else ()
    dense = (read_dense(reader, shape, traits),) if not all(sparse) else ()
    mixers = {window: mixer(reader, shape, traits, window) for window in set(windows)}
    return [
        Block((mixers[window],), experts if mixture else dense, norms)
        for window, mixture in zip(windows, sparse, strict=True)
    ]
