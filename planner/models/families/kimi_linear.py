"""Kimi-Linear and Kimi-K3: Kimi delta attention with latent attention every fourth layer."""

from __future__ import annotations

import math
from dataclasses import replace

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
from planner.models.mlp import Experts
from planner.models.parts import Block, Part
from planner.models.reader import ConfigError, ConfigReader
from planner.models.spec import ModelSpec

_TRAITS = Traits(
    latent=True,
    ties=False,
    qkv_bias="attention_bias",
    moe=Moe(correction=True),
    defaults={
        "v_head_dim": 128,
        "qk_nope_head_dim": 128,
        "qk_rope_head_dim": 64,
        "first_k_dense_replace": 1,
        "head_dim": 128,
    },
)


def kimi_linear(conv_rows_short: int = 0) -> Importer:
    """Return the importer; it counts convolution rows as taps less `conv_rows_short`."""

    def read(reader: ConfigReader) -> ModelSpec:
        reader.defaults = _TRAITS.defaults
        shape = read_shape(reader, 1, reader.size("v_head_dim"))
        linear = reader.nested("linear_attn_config")
        full = _full(linear or reader, shape.layers)
        delta = _delta(reader if linear is None else linear, shape, conv_rows_short)
        latent = replace(
            read_latent(reader, shape, _TRAITS, math.inf),
            output_gate=reader.flag("mla_use_output_gate"),
        )
        sparse = sparse_layers(reader, shape.layers)
        experts = _experts(reader, shape) if any(sparse) else ()
        dense = (read_dense(reader, shape, _TRAITS),) if not all(sparse) else ()
        blocks = [
            Block((latent if full else delta,), experts if moe else dense, 2 * shape.hidden)
            for full, moe in zip(full, sparse, strict=True)
        ]
        return read_decoder(reader, shape, _TRAITS, blocks)

    return read


def _delta(linear: ConfigReader, shape: Shape, conv_rows_short: int) -> KimiDelta:
    taps = linear.size("short_conv_kernel_size", "linear_conv_kernel_dim", default=4)
    return KimiDelta(
        hidden=shape.hidden,
        heads=linear.size("linear_num_heads", "num_heads"),
        head_dim=linear.size(*_own_size(linear)),
        taps=taps,
        full_rank_gate=linear.flag("use_full_rank_gate"),
        conv_rows=taps - conv_rows_short,
    )


def _own_size(linear: ConfigReader) -> tuple[str, ...]:
    """Return the field of the delta layers' head size: `head_dim` beside it is of attention."""
    return ("linear_head_dim",) if linear.has("linear_head_dim") else ("head_dim",)


def _full(linear: ConfigReader, layers: int) -> list[bool]:
    """Return which layers are latent attention.

    `layer_types` names them, or lists inside linear_attn_config, which count layers from 1.
    """
    kinds = linear.pattern(layers, "layer_types")
    if kinds is not None:
        return [kind != "linear_attention" for kind in kinds]
    full = linear.sequence("full_attn_layers")
    delta = linear.sequence("kda_layers")
    if full is None and delta is None:
        raise ConfigError(
            f"{linear.path}linear_attn_config: missing; lists of layers are needed in it,"
            " or layer_types"
        )
    if full is None:
        return [index + 1 not in (delta or ()) for index in range(layers)]
    return [index + 1 in full for index in range(layers)]


def _experts(reader: ConfigReader, shape: Shape) -> tuple[Part, ...]:
    parts = read_experts(reader, shape, _TRAITS.moe or Moe())
    inner = reader.optional_size("routed_expert_hidden_size")
    if inner is None:
        return parts
    norm = inner if reader.flag("latent_moe_use_norm") else 0
    return tuple(
        replace(part, inner=inner, other=part.other + norm) if isinstance(part, Experts) else part
        for part in parts
    )


def _nested(reader: ConfigReader) -> ModelSpec:
    """Read a Kimi-Linear, which may be the decoder of a Kimi-K3.

    The published state of Kimi-K3 keeps taps − 1 rows a convolution.
    """
    inside = reader.outer is not None and reader.outer.text("model_type") == "kimi_k3"
    return kimi_linear(conv_rows_short=int(inside))(reader)


MODEL_TYPES: dict[str, Importer] = {
    "kimi_linear": _nested,
    "kimi_k3": kimi_linear(conv_rows_short=1),
}
