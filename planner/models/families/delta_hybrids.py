"""Gated delta layers in other families' clothes: Olmo-Hybrid, LARA-Mini."""

from __future__ import annotations

import math

from planner.models.decoder import (
    Importer,
    Moe,
    Traits,
    read_attention,
    read_decoder,
    read_dense,
    read_experts,
    read_shape,
)
from planner.models.families.qwen_delta import read_delta
from planner.models.parts import Block, Part
from planner.models.reader import ConfigError, ConfigReader
from planner.models.spec import ModelSpec
from planner.models.windows import window_size

_OLMO = Traits(qkv_bias="attention_bias", out_bias="attention_bias", qk_norm="full")
_LARA = Traits(
    qkv_bias="attention_bias",
    out_bias="attention_bias",
    qk_norm="head",
    moe=Moe(("moe_intermediate_size",), ("shared_expert_intermediate_size",)),
)


def delta_hybrid(traits: Traits) -> Importer:
    """Return the importer of a decoder whose `layer_types` are linear, full or sliding."""

    def read(reader: ConfigReader) -> ModelSpec:
        shape = read_shape(reader)
        mixers: dict[str, Part] = {
            "linear_attention": read_delta(reader, shape),
            "full_attention": read_attention(reader, shape, traits, math.inf),
        }
        kinds = reader.pattern(shape.layers, "layer_types")
        if kinds is None:
            kinds = [
                "full_attention" if i % 4 == 3 else "linear_attention" for i in range(shape.layers)
            ]
        if "sliding_attention" in kinds:
            window = window_size(reader)
            mixers["sliding_attention"] = read_attention(reader, shape, traits, window)
        unknown = [kind for kind in kinds if not isinstance(kind, str) or kind not in mixers]
        if unknown:
            raise ConfigError(
                f"{reader.path}layer_types: {unknown[0]!r}; accepted: {', '.join(mixers)}"
            )
        mlps: tuple[Part, ...] = (
            read_experts(reader, shape, traits.moe)
            if traits.moe
            else (read_dense(reader, shape, traits),)
        )
        blocks = [Block((mixers[kind],), mlps, 2 * shape.hidden) for kind in kinds]
        return read_decoder(reader, shape, traits, blocks)

    return read


MODEL_TYPES: dict[str, Importer] = {
    "olmo_hybrid": delta_hybrid(_OLMO),
    "lara_mini": delta_hybrid(_LARA),
}
