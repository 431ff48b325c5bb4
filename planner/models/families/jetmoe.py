"""JetMoE: a mixture of attention heads (queries and outputs an expert) before one of MLPs."""

from __future__ import annotations

import math
from dataclasses import dataclass

from planner.models.attention import Attention
from planner.models.decoder import Importer, Traits, read_decoder, read_shape
from planner.models.mlp import Experts
from planner.models.parts import Block, Linear
from planner.models.reader import ConfigReader
from planner.models.spec import ModelSpec

_TRAITS = Traits(tied=True)


@dataclass(frozen=True, slots=True)
class KeyValueAttention(Attention):
    """Attention whose query and output matrices are experts beside it (Shen et al., 2024)."""

    def linears(self) -> tuple[Linear, ...]:
        """k and v, one launch."""
        return Attention.linears(self)[1:-1]


def read_jetmoe(reader: ConfigReader) -> ModelSpec:
    """Read a JetMoE; of its heads `num_experts_per_tok` experts' share a token."""
    kv_heads = reader.size("num_key_value_heads")
    shape = read_shape(reader, kv_heads, reader.size("kv_channels"))
    experts, top_k = reader.size("num_local_experts"), reader.size("num_experts_per_tok")
    width = kv_heads * shape.head_dim
    attention = KeyValueAttention(
        shape.hidden, kv_heads * top_k, kv_heads, shape.head_dim, window=math.inf
    )
    heads = Experts(shape.hidden, experts, top_k, width, gated=False, other=shape.hidden)
    mlp = Experts(
        shape.hidden, experts, top_k, reader.size("intermediate_size"), other=shape.hidden
    )
    block = Block((attention,), (heads, mlp), 2 * shape.hidden)
    return read_decoder(reader, shape, _TRAITS, [block] * shape.layers)


MODEL_TYPES: dict[str, Importer] = {"jetmoe": read_jetmoe}
