"""DeepSeek and the models that share its latent attention (MLA)."""

from __future__ import annotations

from planner.models.decoder import Importer, Moe, Traits, decoder
from planner.models.windows import full

_RANKS = {
    "q_lora_rank": 1536,
    "kv_lora_rank": 512,
    "qk_rope_head_dim": 64,
    "qk_nope_head_dim": 128,
    "v_head_dim": 128,
}
"""Class defaults: they fill a missing key only, since a null q_lora_rank has no query latent."""

_DEEPSEEK_V3 = Traits(
    qkv_bias="attention_bias", latent=True, moe=Moe(correction=True), mtp=True, defaults=_RANKS
)

_TABLE: dict[str, Traits] = {
    "deepseek_v2": Traits(
        qkv_bias="attention_bias",
        mlp_bias="mlp_bias",
        latent=True,
        moe=Moe(shared_bias="mlp_bias"),
        # The class has none; the published DeepSeek-V2 and V2-Lite both take six.
        defaults={**_RANKS, "num_experts_per_tok": 6},
    ),
    "deepseek_v3": _DEEPSEEK_V3,
    "kimi_k2": _DEEPSEEK_V3,
    "kimi_k25": _DEEPSEEK_V3,
    "glm4_moe_lite": Traits(
        qkv_bias="attention_bias",
        latent=True,
        mtp=True,
        moe=Moe(correction=True),
        defaults={
            **_RANKS,
            "q_lora_rank": 768,
            "qk_nope_head_dim": 192,
            "v_head_dim": 256,
            "first_k_dense_replace": 1,
        },
    ),
    "axk1": Traits(latent=True, qkv_bias="attention_bias", moe=Moe(correction=True, norm=True)),
    "mistral4": Traits(latent=True, qkv_bias="attention_bias", moe=Moe()),
    "sarvam_mla": Traits(latent=True, qkv_bias="attention_bias", moe=Moe(correction=True)),
    "minicpm3": Traits(
        mlp_bias="mlp_bias",
        qkv_bias="attention_bias",
        latent=True,
        tied=True,
        windows=full,
        defaults={
            "q_lora_rank": 768,
            "kv_lora_rank": 256,
            "qk_rope_head_dim": 32,
            "qk_nope_head_dim": 64,
            "v_head_dim": 64,
        },
    ),
    "youtu": Traits(qkv_bias="attention_bias", latent=True, tied=True, defaults=_RANKS),
}

MODEL_TYPES: dict[str, Importer] = {name: decoder(traits) for name, traits in _TABLE.items()}
