"""Networks that run layers more than once: HRM-Text's two stacks in nested cycles."""

from __future__ import annotations

import math

from planner.models.assembly import assemble
from planner.models.decoder import Importer, Traits, read_attention, read_dense, read_shape
from planner.models.parts import Block, LayerGroup
from planner.models.reader import ConfigError, Reader
from planner.models.spec import ModelSpec

_TRAITS = Traits(
    qkv_bias="attention_bias",
    out_bias="attention_bias",
    mlp_bias="mlp_bias",
    output_gate=True,
    gate_bias=True,
    tied=True,
)


def read_hrm(reader: Reader) -> ModelSpec:
    """Read an HRM-Text: `num_hidden_layers` counts every pass, each with a cache of its own."""
    shape = read_shape(reader)
    stacked = 2 * reader.size("num_layers_per_stack")
    if shape.layers % stacked:
        raise ConfigError(
            f"{reader.path}num_layers_per_stack: two stacks of {stacked // 2} do not divide"
            f" {shape.layers} layers"
        )
    attention = read_attention(reader, shape, _TRAITS, math.inf)
    block = Block((attention,), (read_dense(reader, shape, _TRAITS),))
    # Norms hold no weights; the one vector is the low stack's initial state.
    return assemble(
        reader,
        (LayerGroup(shape.layers, block, stored=stacked),),
        hidden=shape.hidden,
        vocab=shape.vocab,
        tied=_TRAITS.tied,
    )


MODEL_TYPES: dict[str, Importer] = {"hrm_text": read_hrm}
