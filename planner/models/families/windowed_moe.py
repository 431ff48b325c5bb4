"""MiMo-V2-Flash and Step-3.x: mixtures whose sliding layers have heads of their own."""

from __future__ import annotations

import math
from dataclasses import replace

from planner.models.decoder import (
    Importer,
    Moe,
    Shape,
    Traits,
    next_token_layers,
    read_attention,
    read_decoder,
    read_dense,
    read_experts,
    read_shape,
)
from planner.models.families.step3 import enumerated_layers
from planner.models.parts import Block, Part
from planner.models.reader import ConfigReader
from planner.models.spec import ModelSpec
from planner.models.windows import patterned, window_size

_MIMO = Traits(
    qkv_bias="attention_bias",
    moe=Moe(("moe_intermediate_size",), correction=True),
    defaults={
        "num_key_value_heads": 4,
        "head_dim": 192,
        "v_head_dim": 128,
        "n_routed_experts": 256,
        "num_experts_per_tok": 8,
        # Not in the file; the checkpoint holds three (technical report, 2025, section 2.3).
        "num_nextn_predict_layers": 3,
    },
)
_STEP = Traits(
    qkv_bias="attention_bias",
    out_bias="attention_bias",
    mlp_bias="mlp_bias",
    qk_norm="head",
    windows=patterned(4, 512),
    moe=Moe(
        ("moe_intermediate_size",), ("share_expert_dim",), correction=True, shared_bias="mlp_bias"
    ),
    defaults={
        "num_key_value_heads": 8,
        "head_dim": 128,
        "first_k_dense_replace": 3,
        "n_routed_experts": 288,
        "num_experts_per_tok": 8,
        "share_expert_dim": 1280,
        "moe_intermediate_size": 1280,
    },
)


def read_mimo_v2(reader: ConfigReader) -> ModelSpec:
    """Read a MiMo-V2-Flash: `hybrid_layer_pattern` 1 slides, with `swa_*` sizes and sinks."""
    reader.defaults = _MIMO.defaults
    shape = read_shape(reader)
    full = replace(
        read_attention(reader, shape, _MIMO, math.inf),
        v_head_dim=reader.size("v_head_dim"),
        norm_params=_sinks(reader, "add_full_attention_sink_bias", shape.heads),
    )
    heads = reader.size("swa_num_attention_heads", default=shape.heads)
    sliding = replace(
        full,
        heads=heads,
        kv_heads=reader.size("swa_num_key_value_heads", default=2 * shape.kv_heads),
        head_dim=reader.size("swa_head_dim", default=shape.head_dim),
        v_head_dim=reader.size("swa_v_head_dim", default=reader.size("v_head_dim")),
        window=window_size(reader, 128),
        norm_params=_sinks(reader, "add_swa_attention_sink_bias", heads, default=True),
    )
    kinds = reader.pattern(shape.layers, "hybrid_layer_pattern", "layer_types") or []
    slides = [kind in (1, "sliding_attention") for kind in kinds] or [False] * shape.layers
    mlps = _mlps(reader, shape, _MIMO)
    blocks = [
        Block((sliding if slide else full,), mlp, 2 * shape.hidden)
        for slide, mlp in zip(slides, mlps, strict=True)
    ]
    last = Block((sliding,), (read_dense(reader, shape, _MIMO),), 2 * shape.hidden)
    spec = read_decoder(reader, shape, _MIMO, blocks)
    return replace(spec, mtp=next_token_layers(reader, shape, last))


def _sinks(reader: ConfigReader, name: str, heads: int, default: bool = False) -> int:
    return heads if reader.flag(name, default=default) else 0


def _mlps(reader: ConfigReader, shape: Shape, traits: Traits) -> list[tuple[Part, ...]]:
    sparse = enumerated_layers(reader, shape.layers)
    experts = read_experts(reader, shape, traits.moe or Moe()) if any(sparse) else ()
    dense = () if all(sparse) else (read_dense(reader, shape, traits),)
    return [experts if mixture else dense for mixture in sparse]


def read_step(reader: ConfigReader) -> ModelSpec:
    """Read a Step-3.5 or later: a gate a head, and possibly more heads where layers slide."""
    reader.defaults = _STEP.defaults
    shape = read_shape(reader)
    other = reader.nested("attention_other_setting") or ConfigReader({})
    heads = other.size("num_attention_heads", default=shape.heads)
    sliding = replace(
        shape,
        heads=reader.size("num_sliding_attention_heads", default=heads),
        kv_heads=other.size("num_attention_groups", default=shape.kv_heads),
    )
    blocks = []
    mlps = _mlps(reader, shape, _STEP)
    for window, mlp in zip(_STEP.windows(reader, shape.layers), mlps, strict=True):
        sizes = shape if math.isinf(window) else sliding
        attention = replace(read_attention(reader, sizes, _STEP, window), head_gate=True)
        blocks.append(Block((attention,), mlp, 2 * shape.hidden))
    window = window_size(reader, 512)
    attention = replace(read_attention(reader, sliding, _STEP, window), head_gate=True)
    last = Block((attention,), (read_dense(reader, shape, _STEP),), 2 * shape.hidden)
    spec = read_decoder(reader, shape, _STEP, blocks)
    return replace(spec, mtp=next_token_layers(reader, shape, last))


MODEL_TYPES: dict[str, Importer] = {
    "mimo_v2_flash": read_mimo_v2,
    "step3p5": read_step,
    "step3p7": read_step,
}
