"""Falcon-H1 (both mixers in every layer), Granite-4.0-H and Zamba2 (shared attention blocks)."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from planner.models.assembly import assemble
from planner.models.attention import Attention
from planner.models.decoder import (
    Importer,
    Moe,
    Shape,
    Traits,
    read_attention,
    read_decoder,
    read_dense,
    read_experts,
    read_shape,
)
from planner.models.families.nemotron import state_dtype
from planner.models.mlp import Dense, Projection
from planner.models.parts import Block, Linear, Part
from planner.models.reader import ConfigError, ConfigReader
from planner.models.recurrent import Convolution, Mamba1, Mamba2
from planner.models.spec import ModelSpec

_FALCON_H1 = Traits(
    qkv_bias="attention_bias",
    out_bias="attention_bias",
    mlp_bias="mlp_bias",
    defaults={"num_key_value_heads": 8},
)
_BAMBA = Traits(qkv_bias="attention_bias", out_bias="attention_bias", mlp_bias="mlp_bias")
_GRANITE = Traits(
    qkv_bias="attention_bias",
    out_bias="attention_bias",
    moe=Moe(("intermediate_size",)),
    defaults={"num_local_experts": 8, "num_experts_per_tok": 2},
)


def read_falcon_h1(reader: ConfigReader) -> ModelSpec:
    """Read a Falcon-H1: attention and Mamba-2 side by side in every layer, then an MLP."""
    reader.defaults = _FALCON_H1.defaults
    shape = read_shape(reader)
    mamba = replace(
        _mamba(reader, shape.hidden, reader.optional_size("mamba_d_ssm")),
        gated_norm=reader.flag("mamba_rms_norm"),
    )
    attention = read_attention(reader, shape, _FALCON_H1, math.inf)
    mlps = (read_dense(reader, shape, _FALCON_H1),)
    blocks = [Block((attention, mamba), mlps, 2 * shape.hidden)] * shape.layers
    spec = read_decoder(reader, shape, _FALCON_H1, blocks)
    return replace(spec, state_dtype=state_dtype(reader))


def _mamba(reader: ConfigReader, hidden: int, inner: int | None = None) -> Mamba2:
    heads = reader.size("mamba_n_heads", default=128)
    head_dim = reader.raw("mamba_d_head")
    if head_dim is None or head_dim == "auto":
        width = inner or hidden * reader.size("mamba_expand", default=2)
    else:
        width = heads * reader.size("mamba_d_head")
    if width % heads:
        raise ConfigError(f"{reader.path}mamba_n_heads: {heads} does not divide width {width}")
    return Mamba2(
        hidden=hidden,
        heads=heads,
        head_dim=width // heads,
        state=reader.size("mamba_d_state", default=256),
        groups=reader.size("mamba_n_groups", default=1),
        taps=reader.size("mamba_d_conv", default=4),
        conv_bias=reader.flag("mamba_conv_bias", default=True),
        bias=reader.flag("mamba_proj_bias"),
    )


def read_bamba(reader: ConfigReader) -> ModelSpec:
    """Read a Bamba: Mamba-2, or attention at `attn_layer_indices`, then an MLP."""
    shape = read_shape(reader)
    mixers: dict[bool, Part] = {
        True: read_attention(reader, shape, _BAMBA, math.inf),
        False: _mamba(reader, shape.hidden),
    }
    kinds = reader.pattern(shape.layers, "layer_types", "layers_block_type")
    places = reader.sequence("attn_layer_indices") or []
    full = (
        [kind in ("attention", "full_attention") for kind in kinds]
        if kinds
        else [index in places for index in range(shape.layers)]
    )
    mlps = (read_dense(reader, shape, _BAMBA),)
    blocks = [Block((mixers[attends],), mlps, 2 * shape.hidden) for attends in full]
    spec = read_decoder(reader, shape, _BAMBA, blocks)
    return replace(spec, state_dtype=state_dtype(reader))


def read_granite_hybrid(reader: ConfigReader) -> ModelSpec:
    """Read a Granite-4.0-H: attention or Mamba-2, then experts (if any) beside one MLP."""
    reader.defaults = _GRANITE.defaults
    shape = read_shape(reader)
    kinds = reader.pattern(shape.layers, "layer_types", "layers_block_type")
    if kinds is None:
        kinds = ["mamba"] * shape.layers
    attention = read_attention(reader, shape, _GRANITE, math.inf)
    width = reader.size("shared_intermediate_size", default=1024)
    mlps: tuple[Part, ...] = (Dense(shape.hidden, width),)
    if reader.optional_size("num_local_experts"):
        routed = read_experts(reader, shape, _GRANITE.moe or Moe())
        mlps = (*routed, Dense(shape.hidden, width, role="shared_experts"))
    mixers: dict[str, Part] = {"attention": attention}
    if any(kind not in ("attention", "full_attention") for kind in kinds):
        mixers["mamba"] = _mamba(reader, shape.hidden)
    blocks = [Block((mixers[_kind(reader, kind)],), mlps, 2 * shape.hidden) for kind in kinds]
    spec = read_decoder(reader, shape, _GRANITE, blocks)
    return replace(spec, state_dtype=state_dtype(reader))


def _kind(reader: ConfigReader, kind: object) -> str:
    known = {
        "attention": "attention",
        "full_attention": "attention",
        "mamba": "mamba",
        "linear_attention": "mamba",
    }
    if not isinstance(kind, str) or kind not in known:
        raise ConfigError(f"{reader.path}layer_types: {kind!r}; accepted: attention, mamba")
    return known[kind]


@dataclass(frozen=True, slots=True)
class SharedAttention(Attention):
    """Zamba2's attention: reads hidden state and embedding side by side, and shares its weights.

    `hidden` is the width of both; `output` that of the hidden state. Each use caches keys and
    values of its own; only `stored` uses own the weights.
    """

    output: int = 0
    stored: bool = True

    def linears(self) -> tuple[Linear, ...]:
        """q, k, v and an output projection back to the hidden width."""
        *qkv, out = Attention.linears(self)
        return tuple(
            replace(linear, stored=self.stored)
            for linear in (*qkv, replace(out, outputs=self.output))
        )


@dataclass(frozen=True, slots=True)
class SharedDense(Dense):
    """An MLP whose weights another layer stores."""

    def linears(self) -> tuple[Linear, ...]:
        """Up (with gate, one launch) and down."""
        return tuple(replace(linear, stored=False) for linear in Dense.linears(self))


def read_zamba2(reader: ConfigReader) -> ModelSpec:
    """Read a Zamba2: Mamba-2 layers, some led by one of `num_mem_blocks` shared blocks.

    A shared block is attention and MLP on twice the hidden width; each use adds its own low-rank
    adapters and a projection.
    """
    hidden = reader.size("hidden_size")
    mamba = _zamba_mamba(reader, hidden)
    plain = Block((mamba,), other_params=hidden)
    if not reader.tied(default=True):
        raise ConfigError(
            f"{reader.path}tie_word_embeddings: false; accepted: true, as the reference"
            " implementation unshares the blocks with the embedding"
        )
    used = 0
    blocks: list[Block] = []
    shared = reader.size("num_mem_blocks", default=1)
    for hybrid in _zamba_hybrids(reader):
        if hybrid:
            blocks.append(_zamba_use(reader, hidden, mamba, stored=used < shared))
            used += 1
        else:
            blocks.append(plain)
    return assemble(
        reader,
        blocks,
        hidden=hidden,
        vocab=reader.size("vocab_size", default=32000),
        tied=True,
        state_dtype=state_dtype(reader),
    )


def read_zamba(reader: ConfigReader) -> ModelSpec:
    """Read a Zamba: Mamba layers, some led by one shared block of attention and MLP.

    Only the first use stores the block's weights; each adds a projection of its own. The reference
    implementation unshares the block along with embedding and head.
    """
    hidden = reader.size("hidden_size")
    inner = hidden * reader.size("mamba_expand")
    state, rank = reader.size("mamba_d_state"), reader.size("mamba_dt_rank")
    convolution = Convolution(
        inner, reader.size("mamba_d_conv"), reader.flag("mamba_conv_bias", default=True)
    )
    bias = reader.flag("mamba_proj_bias")
    mamba = Mamba1(hidden, inner, state, rank, convolution, bias)
    width = reader.size("intermediate_size")
    doubled = reader.size("attention_hidden_size", default=2 * hidden)
    if doubled != 2 * hidden:
        raise ConfigError(
            f"{reader.path}attention_hidden_size: {doubled}; accepted: {2 * hidden}, twice"
            " hidden_size"
        )
    blocks: list[Block] = []
    used = False
    shared = reader.tied(default=True)
    for hybrid in _zamba_hybrids(reader):
        if not hybrid:
            blocks.append(Block((mamba,), other_params=hidden))
            continue
        attention = SharedAttention(
            2 * hidden,
            reader.size("num_attention_heads"),
            reader.size("num_key_value_heads"),
            reader.size("attention_head_dim"),
            output=hidden,
            stored=not used,
        )
        dense = SharedDense(hidden, width) if used else Dense(hidden, width)
        norms = hidden if used else 4 * hidden
        mlps = (dense, Projection("shared_out", hidden, hidden, "attention"))
        blocks.append(Block((attention, mamba), mlps, norms))
        used = shared
    return assemble(reader, blocks, hidden=hidden, vocab=reader.size("vocab_size"), tied=True)


def _zamba_hybrids(reader: ConfigReader) -> list[bool]:
    kinds = reader.sequence("layers_block_type")
    if kinds is not None:
        return [kind in ("hybrid", "g") for kind in kinds]
    layers = reader.size("num_hidden_layers", default=54)
    places = reader.sequence("hybrid_layer_ids")
    if places is None:
        raise ConfigError(f"{reader.path}layers_block_type: missing; a list of layers is needed")
    return [index in places for index in range(layers)]


def _zamba_mamba(reader: ConfigReader, hidden: int) -> Mamba2:
    inner = hidden * reader.size("mamba_expand", "expansion_factor", default=2)
    if reader.has("mamba_headdim") and not reader.stated("n_mamba_heads"):
        heads = inner // reader.size("mamba_headdim")
    else:
        heads = reader.size("n_mamba_heads", default=max(1, inner // 64))
    if not heads or inner % heads:
        raise ConfigError(f"{reader.path}n_mamba_heads: {heads} does not divide width {inner}")
    return Mamba2(
        hidden=hidden,
        heads=heads,
        head_dim=inner // heads,
        state=reader.size("mamba_d_state", "state_size", default=64),
        groups=reader.size("mamba_ngroups", default=1),
        taps=reader.size("mamba_d_conv", "conv_dimension", default=4),
        conv_bias=reader.flag("use_conv_bias", default=True),
        bias=reader.flag("add_bias_linear"),
    )


def _zamba_use(reader: ConfigReader, hidden: int, mamba: Mamba2, stored: bool) -> Block:
    shape = _zamba_shape(reader, hidden)
    width = reader.size("intermediate_size", "ffn_hidden_size", default=4 * hidden)
    rank = reader.size("adapter_rank", "lora_rank", default=128)
    mlp = Dense(hidden, width, bias=reader.flag("add_bias_linear"))
    adapters: list[Part] = []
    if reader.flag("use_shared_attention_adapter", "use_shared_attention_lora"):
        for _ in "qkv":
            adapters += [
                Projection("qkv_adapter", 2 * hidden, rank, "attention"),
                Projection("qkv_adapter", rank, 2 * hidden, "attention"),
            ]
    adapters += [
        Projection("mlp_adapter", hidden, rank, "mlp"),
        Projection("mlp_adapter", rank, 2 * width, "mlp"),
        Projection("shared_out", hidden, hidden, "attention"),
    ]
    attention = SharedAttention(
        2 * hidden, shape.heads, shape.kv_heads, shape.head_dim, output=hidden, stored=stored
    )
    dense = mlp if stored else SharedDense(hidden, width, bias=mlp.bias)
    # The shared block's two norms are stored with its weights; the Mamba layer has its own.
    norms = hidden + (3 * hidden if stored else 0)
    return Block((attention, mamba), (dense, *adapters), norms)


def _zamba_shape(reader: ConfigReader, hidden: int) -> Shape:
    heads = reader.size("num_attention_heads", default=32)
    kv_heads = reader.size("num_key_value_heads", default=heads)
    if 2 * hidden % heads or heads % kv_heads:
        raise ConfigError(
            f"{reader.path}num_attention_heads: {heads} must divide {2 * hidden} and be a multiple"
            f" of {kv_heads} key-value heads"
        )
    return Shape(hidden, 0, heads, kv_heads, 2 * hidden // heads, 0)


MODEL_TYPES: dict[str, Importer] = {
    "falcon_h1": read_falcon_h1,
    "zamba": read_zamba,
    "bamba": read_bamba,
    "granitemoehybrid": read_granite_hybrid,
    "zamba2": read_zamba2,
}
