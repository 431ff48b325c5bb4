"""Llama and the dense decoders that differ from it by biases, norms and windows."""

from __future__ import annotations

from planner.models.decoder import Importer, Traits, decoder
from planner.models.windows import patterned, switched, uniform

MODEL_TYPES: dict[str, Importer] = {
    "llama": decoder(Traits(qkv_bias="attention_bias", out_bias="attention_bias",
                            mlp_bias="mlp_bias")),
    "mistral": decoder(Traits(windows=uniform(4096), defaults={"num_key_value_heads": 8})),
    "qwen2": decoder(Traits(qkv_bias=True, windows=switched)),
    "qwen3": decoder(Traits(qkv_bias="attention_bias", out_bias="attention_bias", qk_norm="head",
                            windows=switched, defaults={"head_dim": 128})),
    "olmo3": decoder(Traits(qk_norm="full", windows=patterned(4, 4096))),
}  # fmt: skip
