"""Step-3: queries factorised through a shared latent, one key-value head (MFA), wide experts."""

from __future__ import annotations

from dataclasses import dataclass, replace

from planner.models.attention import Attention
from planner.models.decoder import (
    Importer,
    Moe,
    Traits,
    read_decoder,
    read_dense,
    read_experts,
    read_shape,
    sparse_layers,
)
from planner.models.parts import Block, Linear
from planner.models.reader import ConfigError, ConfigReader
from planner.models.spec import ModelSpec

_TRAITS = Traits(
    moe=Moe(("moe_intermediate_size",), ("share_expert_dim",)),
    defaults={"head_dim": 256, "num_attention_groups": 1, "share_q_dim": 2048},
)


@dataclass(frozen=True, slots=True)
class FactorizedAttention(Attention):
    """Multi-matrix factorisation attention: queries pass a latent of `q_rank` under a norm.

    Wang et al., "Step-3 is large yet affordable", 2025, section 3.1.
    """

    q_rank: int = 0

    def linears(self) -> tuple[Linear, ...]:
        """Query latent, k and v (one launch), queries, output."""
        query, *others = Attention.linears(self)
        down = replace(query, outputs=self.q_rank, ways=1)
        up = replace(query, kernel="q_b_proj", inputs=self.q_rank)
        return (down, *others[:-1], up, others[-1])


def read_step3(reader: ConfigReader) -> ModelSpec:
    """Read a Step-3's language model."""
    reader.defaults = _TRAITS.defaults
    shape = read_shape(reader, reader.size("num_attention_groups", "num_key_value_heads"))
    rank = reader.size("share_q_dim")
    attention = FactorizedAttention(
        shape.hidden, shape.heads, shape.kv_heads, shape.head_dim, norm_params=rank, q_rank=rank
    )
    experts = read_experts(reader, shape, _TRAITS.moe or Moe())
    dense = (read_dense(reader, shape, _TRAITS),)
    blocks = [
        Block((attention,), experts if moe else dense, 2 * shape.hidden)
        for moe in enumerated_layers(reader, shape.layers)
    ]
    return read_decoder(reader, shape, _TRAITS, blocks)


def enumerated_layers(reader: ConfigReader, layers: int) -> list[bool]:
    """Return which layers are mixtures: those `moe_layers_enum` lists, or as usually stated."""
    listed = reader.raw("moe_layers_enum")
    if listed is None:
        return sparse_layers(reader, layers)
    places = listed.split(",") if isinstance(listed, str) else listed
    try:
        mixtures = {int(place) for place in places}
    except (TypeError, ValueError):
        raise ConfigError(
            f"{reader.path}moe_layers_enum: {str(listed)[:40]!r}; accepted: numbers of layers"
        ) from None
    return [index in mixtures for index in range(layers)]


MODEL_TYPES: dict[str, Importer] = {"step3_vl": read_step3, "step3_text": read_step3}
