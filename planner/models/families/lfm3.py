"""LFM3: short convolutions between full and sliding attention, gated heads, sandwich norms."""

from __future__ import annotations

import math

from planner.models.decoder import (
    Importer,
    Traits,
    read_attention,
    read_decoder,
    read_dense,
    read_shape,
)
from planner.models.parts import Block, Part
from planner.models.reader import ConfigError, ConfigReader
from planner.models.recurrent import ShortConvolution
from planner.models.spec import ModelSpec
from planner.models.windows import window_size

_TRAITS = Traits(
    qkv_bias="attention_bias",
    out_bias="attention_bias",
    qk_norm="head",
    head_gate="use_attention_gate",
    tied=True,
)


def read_lfm3(reader: ConfigReader) -> ModelSpec:
    """Read an LFM3; `layer_types` names each layer conv, full_attention or sliding_attention."""
    shape = read_shape(reader)
    kinds = reader.pattern(shape.layers, "layer_types")
    if kinds is None:
        raise ConfigError(f"{reader.path}layer_types: missing; a kind for each layer is needed")
    mixers: dict[str, Part] = {
        "conv": ShortConvolution(
            shape.hidden, reader.size("conv_L_cache", default=7), reader.flag("conv_bias")
        ),
        "full_attention": read_attention(reader, shape, _TRAITS, math.inf),
        "sliding_attention": read_attention(reader, shape, _TRAITS, window_size(reader, 256)),
    }
    if not all(isinstance(kind, str) and kind in mixers for kind in kinds):
        raise ConfigError(f"{reader.path}layer_types: accepted: {', '.join(mixers)}")
    norms = (4 if reader.flag("use_sandwich_norm") else 2) * shape.hidden
    dense = (read_dense(reader, shape, _TRAITS),)
    blocks = [Block((mixers[kind],), dense, norms) for kind in kinds]
    return read_decoder(reader, shape, _TRAITS, blocks)


MODEL_TYPES: dict[str, Importer] = {"lfm3": read_lfm3}
