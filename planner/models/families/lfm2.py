"""LFM2: short convolutions with grouped-query attention in between, dense or mixture."""

from __future__ import annotations

import math

from planner.models.decoder import (
    Importer,
    Moe,
    Shape,
    Traits,
    read_attention,
    read_decoder,
    read_experts,
    read_shape,
)
from planner.models.mlp import Dense
from planner.models.parts import Block, Part
from planner.models.reader import ConfigError, ConfigReader
from planner.models.recurrent import ShortConvolution
from planner.models.spec import ModelSpec

_DENSE = Traits(qk_norm="head", tied=True, defaults={"num_key_value_heads": 8})
_MOE = Traits(
    qk_norm="head",
    tied=True,
    moe=Moe(("moe_intermediate_size",), correction=True),
    defaults={
        "num_key_value_heads": 8,
        "num_experts": 32,
        "num_experts_per_tok": 4,
        "moe_intermediate_size": 1792,
    },
)


def lfm2(traits: Traits) -> Importer:
    """Return the importer of an LFM2, with experts after its dense layers if it has any."""

    def read(reader: ConfigReader) -> ModelSpec:
        reader.defaults = traits.defaults
        shape = read_shape(reader)
        attention = read_attention(reader, shape, traits, math.inf)
        conv = ShortConvolution(
            shape.hidden, reader.size("conv_L_cache", default=3), reader.flag("conv_bias")
        )
        dense, mixture = _mlps(reader, shape, traits)
        first = reader.size("num_dense_layers", default=2, zero=True) if mixture else shape.layers
        blocks = [
            Block(
                (attention if full else conv,),
                dense if index < first else mixture,
                2 * shape.hidden,
            )
            for index, full in enumerate(_full(reader, shape.layers))
        ]
        return read_decoder(reader, shape, traits, blocks)

    return read


def _mlps(
    reader: ConfigReader, shape: Shape, traits: Traits
) -> tuple[tuple[Part, ...], tuple[Part, ...]]:
    if traits.moe is None:
        return (Dense(shape.hidden, adjusted_width(reader)),), ()
    return (
        (Dense(shape.hidden, reader.size("intermediate_size")),),
        read_experts(reader, shape, traits.moe),
    )


def adjusted_width(reader: ConfigReader) -> int:
    """Return the MLP's width: two thirds of the stated one, rounded up, if it is adjusted."""
    width = reader.size("block_ff_dim", "intermediate_size", default=12288)
    if not reader.flag("block_auto_adjust_ff_dim", default=True):
        return width
    multiple = reader.size("block_multiple_of", default=256)
    scaled = int(reader.number("block_ffn_dim_multiplier", default=1.0) * int(2 * width / 3))
    return -(-scaled // multiple) * multiple


def _full(reader: ConfigReader, layers: int) -> list[bool]:
    kinds = reader.pattern(layers, "layer_types")
    if kinds is not None:
        if not all(kind in ("conv", "full_attention") for kind in kinds):
            raise ConfigError(f"{reader.path}layer_types: accepted: conv, full_attention")
        return [kind == "full_attention" for kind in kinds]
    places = reader.sequence("full_attn_idxs")
    return [places is None or index in places for index in range(layers)]


MODEL_TYPES: dict[str, Importer] = {"lfm2": lfm2(_DENSE), "lfm2_moe": lfm2(_MOE)}
