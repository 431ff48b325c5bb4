"""DeepSeek-V4: attention over compressed entries, every layer a mixture of experts."""

from __future__ import annotations

from dataclasses import replace

from planner.models.compressed import CompressedAttention, HyperConnection, Picker
from planner.models.decoder import (
    Importer,
    Moe,
    Shape,
    Traits,
    next_token_layers,
    read_decoder,
    read_experts,
    read_shape,
)
from planner.models.mlp import Experts
from planner.models.parts import Block, Part
from planner.models.reader import ConfigError, ConfigReader
from planner.models.spec import ModelSpec

_TRAITS = Traits(
    # One shared expert whatever n_shared_experts says.
    moe=Moe(
        ("moe_intermediate_size",),
        ("moe_intermediate_size",),
        correction=True,
        shared_bias="mlp_bias",
    ),
    defaults={
        "head_dim": 512,
        "num_key_value_heads": 1,
        "n_shared_experts": 1,
        "hc_mult": 4,
        "index_n_heads": 64,
        "index_head_dim": 128,
        "index_topk": 512,
        "o_groups": 8,
        "o_lora_rank": 1024,
        "q_lora_rank": 1024,
        "sliding_window": 128,
        "num_hash_layers": 3,
        "vocab_size": 129280,
    },
)
_RATIOS = {
    "sliding_attention": 0,
    "compressed_sparse_attention": 4,
    "heavily_compressed_attention": 128,
}


def read_deepseek_v4(reader: ConfigReader) -> ModelSpec:
    """Read a DeepSeek-V4; `compress_ratios` gives each layer 0, 4 or 128 tokens an entry."""
    reader.defaults = _TRAITS.defaults
    shape = read_shape(reader)
    streams = reader.size("hc_mult")
    mixing = HyperConnection(shape.hidden, streams)
    ratios = _ratios(reader, shape.layers)
    attention = {ratio: _attention(reader, shape, ratio) for ratio in {0, *ratios}}
    routed, *shared = read_experts(reader, shape, _TRAITS.moe or Moe())
    hashed = _hashed(routed, shape.vocab)
    first = reader.size("num_hash_layers", zero=True)
    blocks = [
        Block(
            (mixing, attention[ratio]),
            (mixing, hashed if index < first else routed, *shared),
            2 * shape.hidden,
        )
        for index, ratio in enumerate(ratios)
    ]
    last = Block((mixing, attention[0]), (mixing, routed, *shared), 2 * shape.hidden)
    spec = read_decoder(reader, shape, _TRAITS, blocks)
    # The streams are joined before the head: a projection to `streams` weights, biases, a scale.
    joined = streams * streams * shape.hidden + streams + 1
    mtp = next_token_layers(reader, shape, last)
    return replace(
        spec,
        other_params=spec.other_params + joined,
        mtp=mtp,
        mtp_other_params=joined * sum(group.count for group in mtp),
    )


def _ratios(reader: ConfigReader, layers: int) -> list[int]:
    kinds = reader.pattern(layers, "compress_ratios", "layer_types")
    if kinds is None:
        return [128 if index < 2 or index % 2 == 0 else 4 for index in range(layers)]
    ratios = [_RATIOS.get(kind) if isinstance(kind, str) else kind for kind in kinds]
    for ratio in ratios:
        if ratio not in (0, 4, 128):
            raise ConfigError(f"{reader.path}compress_ratios: {ratio!r}; accepted: 0, 4 or 128")
    return [ratio for ratio in ratios if ratio is not None]


def _attention(reader: ConfigReader, shape: Shape, ratio: int) -> CompressedAttention:
    picker = Picker(
        reader.size("index_n_heads"), reader.size("index_head_dim"), reader.size("index_topk")
    )
    return CompressedAttention(
        hidden=shape.hidden,
        heads=shape.heads,
        head_dim=shape.head_dim,
        q_rank=reader.size("q_lora_rank"),
        o_groups=reader.size("o_groups"),
        o_rank=reader.size("o_lora_rank"),
        window=reader.size("sliding_window"),
        ratio=ratio,
        picker=picker if ratio == _RATIOS["compressed_sparse_attention"] else None,
    )


def _hashed(part: Part, vocab: int) -> Part:
    """Return the experts of a layer that routes by token: a table in place of corrections."""
    if not isinstance(part, Experts):
        return part
    return replace(part, correction=vocab * part.top_k)


MODEL_TYPES: dict[str, Importer] = dict.fromkeys(("deepseek_v4", "deepseek_ref"), read_deepseek_v4)
