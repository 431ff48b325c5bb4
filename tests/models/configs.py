"""Small configs that tests change one field of."""

from __future__ import annotations

from typing import Any

LLAMA: dict[str, Any] = {
    "model_type": "llama",
    "hidden_size": 4096,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "intermediate_size": 14336,
    "vocab_size": 128256,
    "max_position_embeddings": 131072,
    "tie_word_embeddings": False,
    "torch_dtype": "bfloat16",
}
LLAMA_PARAMS = 8_030_261_248
"""Llama 3.1 8B, total of the published safetensors."""

DEEPSEEK: dict[str, Any] = {
    "model_type": "deepseek_v3",
    "hidden_size": 1024,
    "num_hidden_layers": 8,
    "num_attention_heads": 16,
    "intermediate_size": 4096,
    "moe_intermediate_size": 512,
    "n_routed_experts": 16,
    "num_experts_per_tok": 4,
    "n_shared_experts": 1,
    "first_k_dense_replace": 2,
    "kv_lora_rank": 512,
    "q_lora_rank": 768,
    "qk_nope_head_dim": 128,
    "qk_rope_head_dim": 64,
    "v_head_dim": 128,
    "vocab_size": 32000,
    "torch_dtype": "bfloat16",
}


def llama(**changes: Any) -> dict[str, Any]:
    """Return the Llama config with `changes`; None takes a field out."""
    return {key: value for key, value in (LLAMA | changes).items() if value is not None}


def deepseek(**changes: Any) -> dict[str, Any]:
    return {**DEEPSEEK, **changes}
