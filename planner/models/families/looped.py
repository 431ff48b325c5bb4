"""Networks that run layers more than once: HRM-Text's two stacks in nested cycles."""

from __future__ import annotations

import math

from planner.models.assembly import assemble
from planner.models.decoder import Importer, Traits, read_attention, read_dense, read_shape
from planner.models.parts import Block, LayerGroup
from planner.models.reader import LARGEST, ConfigError, ConfigReader
from planner.models.spec import ModelSpec

_TRAITS = Traits(
    qkv_bias="attention_bias",
    out_bias="attention_bias",
    mlp_bias="mlp_bias",
    output_gate=True,
    gate_bias=True,
    tied=True,
)


def read_hrm(reader: ConfigReader) -> ModelSpec:
    """Read an HRM-Text: each pass through one of its two stacks has caches of its own.

    `num_hidden_layers` counts the passes where `num_layers_per_stack` stands beside it, and the
    layers of a stack where it does not.
    """
    shape = read_shape(reader)
    stack = reader.size("num_layers_per_stack", default=shape.layers)
    low = reader.size("L_cycles")
    passes = reader.size("H_cycles") * (low + 1)
    if stack * passes > LARGEST["layers"]:
        raise ConfigError(
            f"{reader.path}H_cycles: {passes} passes through {stack} layers; accepted: up to"
            f" {LARGEST['layers']} layers in all"
        )
    attention = read_attention(reader, shape, _TRAITS, math.inf)
    block = Block((attention,), (read_dense(reader, shape, _TRAITS),))
    # Norms hold no weights; the one vector is the low stack's initial state.
    return assemble(
        reader,
        (LayerGroup(stack * passes, block, stored=2 * stack),),
        hidden=shape.hidden,
        vocab=shape.vocab,
        tied=_TRAITS.tied,
    )


MODEL_TYPES: dict[str, Importer] = {"hrm_text": read_hrm}
