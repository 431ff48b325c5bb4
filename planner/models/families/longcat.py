"""LongCat-Flash: two latent attentions and two dense MLPs around one mixture in each layer."""

from __future__ import annotations

import math
from dataclasses import replace

from planner.models.decoder import (
    Importer,
    Traits,
    next_token_layers,
    read_decoder,
    read_latent,
    read_shape,
)
from planner.models.mlp import Dense, Experts
from planner.models.parts import Block
from planner.models.reader import ConfigReader
from planner.models.spec import ModelSpec

_TRAITS = Traits(
    latent=True,
    qkv_bias="attention_bias",
    defaults={
        "q_lora_rank": 1536,
        "kv_lora_rank": 512,
        "qk_nope_head_dim": 128,
        "qk_rope_head_dim": 64,
        "v_head_dim": 128,
        "head_dim": 64,
        "moe_topk": 12,
        "n_routed_experts": 512,
        "zero_expert_num": 256,
        "expert_ffn_hidden_size": 2048,
        "ffn_hidden_size": 12288,
        # Not in the file; the checkpoint holds one.
        "num_nextn_predict_layers": 1,
    },
)


def read_longcat(reader: ConfigReader) -> ModelSpec:
    """Read a LongCat-Flash; identity experts take tokens but hold no weights.

    A token picks `moe_topk` of all experts, so it visits on average that share of real ones; the
    published checkpoint holds no weights for the others.
    """
    reader.defaults = _TRAITS.defaults
    shape = read_shape(reader)
    attention = read_latent(reader, shape, _TRAITS, math.inf)
    experts = reader.size("n_routed_experts")
    routed = experts + reader.size("zero_expert_num", zero=True)
    top_k = reader.size("moe_topk", "num_experts_per_tok")
    mixture = Experts(
        shape.hidden,
        experts,
        round(top_k * experts / routed),
        reader.size("expert_ffn_hidden_size"),
        router_bias=reader.flag("router_bias"),
        router_experts=routed,
        correction=routed,
    )
    if routed != experts:
        reader.note(
            "zero_experts",
            f"{top_k} of {routed} experts a token, of which {experts} hold weights:"
            f" {mixture.top_k} real ones on average",
        )
    dense = Dense(shape.hidden, reader.size("ffn_hidden_size", "intermediate_size"))
    block = Block((attention, attention), (dense, dense, mixture), 4 * shape.hidden)
    last = Block((attention,), (dense,), 2 * shape.hidden)
    spec = read_decoder(reader, shape, _TRAITS, [block] * shape.layers)
    return replace(spec, mtp=next_token_layers(reader, shape, last))


MODEL_TYPES: dict[str, Importer] = {"longcat_flash": read_longcat}
