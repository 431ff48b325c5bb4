"""Qwen3-Next and Qwen3.5: gated delta layers with full attention every fourth layer."""

from __future__ import annotations

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
    sparse_layers,
)
from planner.models.delta import GatedDeltaNet
from planner.models.families.nemotron import state_dtype
from planner.models.parts import Block, Part
from planner.models.reader import ConfigError, ConfigReader
from planner.models.spec import ModelSpec

_TRAITS = Traits(
    qkv_bias="attention_bias",
    out_bias="attention_bias",
    qk_norm="head",
    output_gate=True,
    gate_bias=True,
    defaults={"head_dim": 256, "num_key_value_heads": 2, "linear_conv_kernel_dim": 4},
)
_MOE = Moe(("moe_intermediate_size",), ("shared_expert_intermediate_size",), shared_gate=True)


def read_qwen_delta(reader: ConfigReader) -> ModelSpec:
    """Read a Qwen3-Next or Qwen3.5, dense or mixture, with its prediction layer if it has one."""
    reader.defaults = _TRAITS.defaults
    shape = read_shape(reader)
    attention = read_attention(reader, shape, _TRAITS, float("inf"))
    delta = read_delta(reader, shape)
    is_moe = reader.has("num_experts")
    sparse = sparse_layers(reader, shape.layers) if is_moe else [False] * shape.layers
    experts = read_experts(reader, shape, _MOE) if any(sparse) else ()
    dense: tuple[Part, ...] = () if all(sparse) else (read_dense(reader, shape, _TRAITS),)
    norms = 2 * shape.hidden
    blocks = [
        Block((attention if full else delta,), experts if moe else dense, norms)
        for full, moe in zip(full_layers(reader, shape.layers), sparse, strict=True)
    ]
    last = Block((attention,), experts if is_moe else dense, norms)
    return replace(
        read_decoder(reader, shape, _TRAITS, blocks),
        mtp=next_token_layers(reader, shape, last),
        state_dtype=state_dtype(reader),
    )


def full_layers(reader: ConfigReader, layers: int) -> list[bool]:
    """Return which layers are full attention: `layer_types`, or every full_attention_interval."""
    kinds = reader.pattern(layers, "layer_types")
    if kinds is None:
        interval = reader.size("full_attention_interval", default=4)
        return [(index + 1) % interval == 0 for index in range(layers)]
    for kind in kinds:
        if kind not in ("full_attention", "linear_attention"):
            raise ConfigError(
                f"{reader.path}layer_types: {kind!r}; accepted: full_attention, linear_attention"
            )
    return [kind == "full_attention" for kind in kinds]


def read_delta(reader: ConfigReader, shape: Shape) -> GatedDeltaNet:
    """Return the gated delta net of one layer, by its `linear_*` sizes."""
    return GatedDeltaNet(
        hidden=shape.hidden,
        key_heads=reader.size("linear_num_key_heads"),
        value_heads=reader.size("linear_num_value_heads"),
        key_dim=reader.size("linear_key_head_dim"),
        value_dim=reader.size("linear_value_head_dim"),
        taps=reader.size("linear_conv_kernel_dim"),
    )


MODEL_TYPES: dict[str, Importer] = dict.fromkeys(
    ("qwen3_next", "qwen3_5", "qwen3_5_text", "qwen3_5_moe", "qwen3_5_moe_text"), read_qwen_delta
)
