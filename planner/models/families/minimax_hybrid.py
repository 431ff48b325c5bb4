"""MiniMax-Text-01 and M1 (lightning attention) and MiniMax-M3 (block-sparse attention)."""

from __future__ import annotations

import math
from dataclasses import replace

from planner.models.attention import Indexer
from planner.models.decoder import (
    Importer,
    Moe,
    Traits,
    read_attention,
    read_decoder,
    read_dense,
    read_experts,
    read_shape,
    sparse_layers,
)
from planner.models.parts import Block, Part
from planner.models.reader import ConfigError, ConfigReader
from planner.models.recurrent import LightningAttention
from planner.models.spec import ModelSpec

_TEXT = Traits(
    moe=Moe(("intermediate_size",), ("shared_intermediate_size",)),
    defaults={
        "head_dim": 128,
        "num_key_value_heads": 8,
        "num_local_experts": 8,
        "num_experts_per_tok": 2,
    },
)
_SPARSE = Traits(
    qk_norm="head",
    moe=Moe(
        ("moe_intermediate_size", "intermediate_size"),
        ("shared_intermediate_size",),
        correction=True,
    ),
    width=lambda reader, _: reader.size("dense_intermediate_size"),
    defaults={
        "head_dim": 128,
        "num_key_value_heads": 4,
        "dense_intermediate_size": 12288,
        "shared_intermediate_size": 3072,
    },
)


def read_minimax_text(reader: ConfigReader) -> ModelSpec:
    """Read a MiniMax-Text-01: lightning attention, softmax attention where a list says 1."""
    reader.defaults = _TEXT.defaults
    shape = read_shape(reader)
    attention = read_attention(reader, shape, _TEXT, math.inf)
    lightning = LightningAttention(shape.hidden, shape.heads, shape.head_dim)
    experts = read_experts(reader, shape, _TEXT.moe or Moe())
    blocks = [
        Block((attention if full else lightning,), experts, 2 * shape.hidden)
        for full in _softmax(reader, shape.layers)
    ]
    return read_decoder(reader, shape, _TEXT, blocks)


def _softmax(reader: ConfigReader, layers: int) -> list[bool]:
    kinds = reader.pattern(layers, "attn_type_list", "layer_types")
    if kinds is None:
        return [index % 2 == 1 for index in range(layers)]
    known = {0: False, 1: True, "linear_attention": False, "full_attention": True}
    if not all(isinstance(kind, (int, str)) and kind in known for kind in kinds):
        raise ConfigError(f"{reader.path}attn_type_list: accepted: 0 (lightning) or 1 (softmax)")
    return [known[kind] for kind in kinds]


def read_minimax_sparse(reader: ConfigReader) -> ModelSpec:
    """Read a MiniMax-M3: grouped-query attention to the blocks of tokens an indexer picks."""
    reader.defaults = _SPARSE.defaults
    shape = read_shape(reader)
    full = read_attention(reader, shape, _SPARSE, math.inf)
    sparse = reader.nested("sparse_attention_config") or ConfigReader(
        {}, "sparse_attention_config."
    )
    attended_blocks = sparse.size("sparse_topk_blocks", default=16)
    tokens = attended_blocks * sparse.size("sparse_block_size", default=128)
    head_dim = sparse.size("sparse_index_dim", default=128)
    indexer = Indexer(
        hidden=shape.hidden,
        query_inputs=shape.hidden,
        heads=sparse.size("sparse_num_index_heads", default=4),
        head_dim=head_dim,
        norm_params=2 * head_dim,
        head_weights=False,
    )
    picked = sparse.pattern(shape.layers, "sparse_attention_freq") or [0] * shape.layers
    mixers: dict[bool, tuple[Part, ...]] = {
        False: (full,),
        True: (indexer, replace(full, attended=tokens)),
    }
    mixtures = sparse_layers(reader, shape.layers)
    experts = read_experts(reader, shape, _SPARSE.moe or Moe())
    dense = read_dense(reader, shape, _SPARSE)
    blocks = [
        Block(mixers[bool(pick)], experts if moe else (dense,), 2 * shape.hidden)
        for pick, moe in zip(picked, mixtures, strict=True)
    ]
    # Configs state prediction layers, but the published checkpoints hold none.
    return read_decoder(reader, shape, _SPARSE, blocks)


MODEL_TYPES: dict[str, Importer] = {
    "minimax": read_minimax_text,
    "minimax_text_01": read_minimax_text,
    "minimax_m1": read_minimax_text,
    "minimax_m3": read_minimax_sparse,
    "minimax_m3_vl": read_minimax_sparse,
    "minimax_m3_vl_text": read_minimax_sparse,
}
