"""DeepSeek-V3.2 and GLM-5: latent attention to the top-k tokens that an indexer picks."""

from __future__ import annotations

from dataclasses import replace

from planner.models.attention import Indexer
from planner.models.decoder import (
    Importer,
    Moe,
    Shape,
    Traits,
    next_token_layers,
    read_decoder,
    read_dense,
    read_experts,
    read_latent,
    read_shape,
    sparse_layers,
)
from planner.models.parts import Block
from planner.models.reader import ConfigError, ConfigReader
from planner.models.spec import ModelSpec

_DEEPSEEK = Traits(
    latent=True,
    qkv_bias="attention_bias",
    moe=Moe(correction=True),
    defaults={
        "first_k_dense_replace": 3,
        "index_topk": 2048,
        "index_head_dim": 128,
        "index_n_heads": 64,
        "n_shared_experts": 1,
    },
)
_GLM = Traits(
    latent=True,
    qkv_bias="attention_bias",
    moe=Moe(correction=True),
    defaults={
        "first_k_dense_replace": 3,
        "index_topk": 2048,
        "index_head_dim": 128,
        "index_n_heads": 32,
        "n_shared_experts": 1,
    },
)


def sparse_latent(traits: Traits) -> Importer:
    """Return the importer of a decoder whose latent attention an indexer makes sparse."""

    def read(reader: ConfigReader) -> ModelSpec:
        reader.defaults = traits.defaults
        shape = read_shape(reader, 1, reader.size("v_head_dim"))
        attention = read_latent(reader, shape, traits, reader.size("index_topk"))
        indexer = read_indexer(reader, shape)
        norms = 2 * shape.hidden
        sparse = sparse_layers(reader, shape.layers)
        experts = read_experts(reader, shape, traits.moe or Moe())
        dense = (read_dense(reader, shape, traits),) if not all(sparse) else ()
        blocks = [
            Block((indexer, attention) if own else (attention,), experts if moe else dense, norms)
            for own, moe in zip(own_indexers(reader, shape.layers), sparse, strict=True)
        ]
        last = Block((indexer, attention), experts, norms)
        mtp = next_token_layers(reader, shape, last)
        return replace(read_decoder(reader, shape, traits, blocks), mtp=mtp)

    return read


def read_indexer(reader: ConfigReader, shape: Shape, inputs: int | None = None) -> Indexer:
    """Return the indexer: queries from the query latent, or a state of `inputs` values, and one
    key a token under a LayerNorm."""
    head_dim = reader.size("index_head_dim")
    return Indexer(
        hidden=shape.hidden,
        query_inputs=reader.size("q_lora_rank") if inputs is None else inputs,
        heads=reader.size("index_n_heads"),
        head_dim=head_dim,
        norm_params=2 * head_dim,
    )


def own_indexers(reader: ConfigReader, layers: int) -> list[bool]:
    """Return which layers run an indexer of their own; the others share the one before.

    `indexer_types` says it layer by layer, or a pattern of F and S, or a period and an offset.
    """
    kinds = reader.pattern(layers, "indexer_types")
    if kinds is None:
        pattern = reader.raw("index_topk_pattern")
        kinds = list(pattern)[:layers] if isinstance(pattern, (str, list)) else None
    if kinds is None:
        period = reader.size("index_topk_freq", default=1)
        offset = reader.size("index_skip_topk_offset", default=2, zero=True)
        return [max(index - offset + 1, 0) % period == 0 for index in range(layers)]
    known = {"full": True, "F": True, "shared": False, "S": False}
    if len(kinds) != layers or not all(isinstance(k, str) and k in known for k in kinds):
        raise ConfigError(f"{reader.path}indexer_types: accepted: full or shared for each layer")
    return [known[kind] for kind in kinds]


MODEL_TYPES: dict[str, Importer] = {
    "deepseek_v32": sparse_latent(_DEEPSEEK),
    "glm_moe_dsa": sparse_latent(_GLM),
}
