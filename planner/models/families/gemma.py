"""Gemma 1 to 3: tied embeddings, heads wider than hidden/heads, alternating windows."""

from __future__ import annotations

from planner.models.decoder import Importer, Traits, decoder
from planner.models.windows import patterned

_SIZES = {"head_dim": 256, "num_attention_heads": 8, "num_key_value_heads": 4}
_GEMMA3 = Traits(
    qkv_bias="attention_bias",
    out_bias="attention_bias",
    norms=4,
    qk_norm="head",
    tied=True,
    windows=patterned(6, 4096),
    defaults={**_SIZES, "vocab_size": 262208},
)

_TABLE: dict[str, Traits] = {
    "gemma": Traits(
        qkv_bias="attention_bias", out_bias="attention_bias", tied=True, defaults={"head_dim": 256}
    ),
    "gemma2": Traits(
        qkv_bias="attention_bias",
        out_bias="attention_bias",
        norms=4,
        tied=True,
        windows=patterned(2, 4096),
        defaults=_SIZES,
    ),
    "gemma3": _GEMMA3,
    "gemma3_text": _GEMMA3,
    "vaultgemma": Traits(
        qkv_bias="attention_bias",
        out_bias="attention_bias",
        tied=True,
        windows=patterned(2, 4096),
        defaults=_SIZES,
    ),
}

MODEL_TYPES: dict[str, Importer] = {name: decoder(traits) for name, traits in _TABLE.items()}
