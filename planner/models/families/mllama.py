"""Llama 3.2 Vision: a Llama with cross-attention layers to the image encoder."""

from __future__ import annotations

from planner.models.attention import CrossAttention
from planner.models.decoder import Importer, Traits, decoder_blocks, read_decoder, read_shape
from planner.models.parts import Block
from planner.models.reader import ConfigReader
from planner.models.spec import ModelSpec

_SPARE_ROWS = 8
"""Rows of the embedding table beyond the vocabulary, for image tokens."""


def _mllama(reader: ConfigReader) -> ModelSpec:
    reader.defaults = {"num_key_value_heads": 8}
    shape = read_shape(reader)
    crossing = reader.sequence("cross_attention_layers") or []
    across = CrossAttention(
        shape.hidden, shape.heads, shape.kv_heads, shape.head_dim, norm_params=2 * shape.head_dim
    )
    gates = 2
    blocks = [
        Block((across,), block.mlps, block.other_params + gates) if index in crossing else block
        for index, block in enumerate(decoder_blocks(reader, shape, Traits()))
    ]
    return read_decoder(
        reader, shape, Traits(), blocks, extra_embedding_params=_SPARE_ROWS * shape.hidden
    )


MODEL_TYPES: dict[str, Importer] = {"mllama": _mllama, "mllama_text_model": _mllama}
