"""Mixtures of experts, parameters term by term from their published configs.

Totals are those of the published weights or the makers' reports, recalled where no source is
named; each is reached by its terms, written out beside it.
"""

from __future__ import annotations

from typing import Any

import pytest

from planner.models.mlp import Dense, Experts
from tests.models.layers import layer_kernels, parts_of, read, token_flops

MIXTRAL: dict[str, Any] = {
    "model_type": "mixtral",
    "hidden_size": 4096,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "intermediate_size": 14336,
    "num_local_experts": 8,
    "num_experts_per_tok": 2,
    "vocab_size": 32000,
    "tie_word_embeddings": False,
}
QWEN15: dict[str, Any] = {
    "model_type": "qwen2_moe",
    "hidden_size": 2048,
    "num_hidden_layers": 24,
    "num_attention_heads": 16,
    "num_key_value_heads": 16,
    "intermediate_size": 5632,
    "moe_intermediate_size": 1408,
    "shared_expert_intermediate_size": 5632,
    "num_experts": 60,
    "num_experts_per_tok": 4,
    "vocab_size": 151936,
    "tie_word_embeddings": False,
}
QWEN3: dict[str, Any] = {
    "model_type": "qwen3_moe",
    "hidden_size": 2048,
    "num_hidden_layers": 48,
    "num_attention_heads": 32,
    "num_key_value_heads": 4,
    "head_dim": 128,
    "intermediate_size": 6144,
    "moe_intermediate_size": 768,
    "num_experts": 128,
    "num_experts_per_tok": 8,
    "vocab_size": 151936,
    "tie_word_embeddings": False,
}
OLMOE: dict[str, Any] = {
    "model_type": "olmoe",
    "hidden_size": 2048,
    "num_hidden_layers": 16,
    "num_attention_heads": 16,
    "num_key_value_heads": 16,
    "intermediate_size": 1024,
    "num_experts": 64,
    "num_experts_per_tok": 8,
    "vocab_size": 50304,
    "tie_word_embeddings": False,
}
PHI_MOE: dict[str, Any] = {
    "model_type": "phimoe",
    "hidden_size": 4096,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "intermediate_size": 6400,
    "num_local_experts": 16,
    "num_experts_per_tok": 2,
    "vocab_size": 32064,
    "attention_bias": True,
    "lm_head_bias": True,
    "tie_word_embeddings": False,
}
GPT_OSS: dict[str, Any] = {
    "model_type": "gpt_oss",
    "hidden_size": 2880,
    "num_hidden_layers": 24,
    "num_attention_heads": 64,
    "num_key_value_heads": 8,
    "head_dim": 64,
    "intermediate_size": 2880,
    "num_local_experts": 32,
    "num_experts_per_tok": 4,
    "vocab_size": 201088,
    "sliding_window": 128,
    "attention_bias": True,
    "tie_word_embeddings": False,
}
DBRX: dict[str, Any] = {
    "model_type": "dbrx",
    "d_model": 6144,
    "n_layers": 40,
    "n_heads": 48,
    "vocab_size": 100352,
    "attn_config": {"kv_n_heads": 8},
    "ffn_config": {"ffn_hidden_size": 10752, "moe_num_experts": 16, "moe_top_k": 4},
    "tie_word_embeddings": False,
}
ARCTIC: dict[str, Any] = {
    "model_type": "arctic",
    "hidden_size": 7168,
    "num_hidden_layers": 35,
    "num_attention_heads": 56,
    "num_key_value_heads": 8,
    "intermediate_size": 4864,
    "num_local_experts": 128,
    "num_experts_per_tok": 2,
    "moe_layer_frequency": 1,
    "vocab_size": 32000,
    "tie_word_embeddings": False,
}
SCOUT: dict[str, Any] = {
    "model_type": "llama4_text",
    "hidden_size": 5120,
    "num_hidden_layers": 48,
    "num_attention_heads": 40,
    "num_key_value_heads": 8,
    "head_dim": 128,
    "intermediate_size": 8192,
    "intermediate_size_mlp": 16384,
    "num_local_experts": 16,
    "num_experts_per_tok": 1,
    "interleave_moe_layer_step": 1,
    "attention_chunk_size": 8192,
    "vocab_size": 202048,
    "tie_word_embeddings": False,
}
MAVERICK = {**SCOUT, "num_local_experts": 128, "interleave_moe_layer_step": 2}
GLM45_AIR: dict[str, Any] = {
    "model_type": "glm4_moe",
    "hidden_size": 4096,
    "num_hidden_layers": 46,
    "num_attention_heads": 96,
    "num_key_value_heads": 8,
    "head_dim": 128,
    "intermediate_size": 10944,
    "moe_intermediate_size": 1408,
    "n_routed_experts": 128,
    "n_shared_experts": 1,
    "num_experts_per_tok": 8,
    "first_k_dense_replace": 1,
    "attention_bias": True,
    "use_qk_norm": False,
    "vocab_size": 151552,
    "num_nextn_predict_layers": 1,
    "tie_word_embeddings": False,
}
M2: dict[str, Any] = {
    "model_type": "minimax_m2",
    "hidden_size": 3072,
    "num_hidden_layers": 62,
    "num_attention_heads": 48,
    "num_key_value_heads": 8,
    "head_dim": 128,
    "intermediate_size": 1536,
    "num_local_experts": 256,
    "num_experts_per_tok": 8,
    "vocab_size": 200064,
    "tie_word_embeddings": False,
}


def gqa(hidden: int, heads: int, kv_heads: int, head_dim: int) -> int:
    """Return the four matrices of grouped-query attention."""
    return 2 * hidden * heads * head_dim + 2 * hidden * kv_heads * head_dim


GLM_ATTENTION = gqa(4096, 96, 8, 128) + 96 * 128 + 2 * 8 * 128 + 2 * 4096
GLM_EXPERT = 3 * 4096 * 1408

TERMS = [
    (
        MIXTRAL,
        46_702_792_704,
        2 * 32000 * 4096
        + 32 * (gqa(4096, 32, 8, 128) + 8 * 3 * 4096 * 14336 + 4096 * 8 + 2 * 4096)
        + 4096,
        12_879_925_248,
    ),
    # 60 experts of 1408, one shared of 5632 behind a gate of 2048; biases of q, k and v.
    (
        QWEN15,
        14_315_784_192,
        2 * 151936 * 2048
        + 24
        * (
            4 * 2048**2
            + 3 * 2048
            + 60 * 3 * 2048 * 1408
            + 2048 * 60
            + 3 * 2048 * 5632
            + 2048
            + 2 * 2048
        )
        + 2048,
        2_689_153_024,
    ),
    (
        QWEN3,
        30_532_122_624,
        2 * 151936 * 2048
        + 48 * (gqa(2048, 32, 4, 128) + 2 * 128 + 128 * 3 * 2048 * 768 + 2048 * 128 + 2 * 2048)
        + 2048,
        3_353_032_704,
    ),
    # Norms of q and k over all heads.
    (
        OLMOE,
        6_919_161_856,
        2 * 50304 * 2048
        + 16 * (4 * 2048**2 + 2 * 2048 + 64 * 3 * 2048 * 1024 + 2048 * 64 + 2 * 2048)
        + 2048,
        1_282_017_280,
    ),
    # LayerNorms of weight and bias; biases of attention and head.
    (
        PHI_MOE,
        41_873_153_344,
        2 * 32064 * 4096
        + 32064
        + 32
        * (
            gqa(4096, 32, 8, 128)
            + 4096
            + 2 * 1024
            + 4096
            + 16 * 3 * 4096 * 6400
            + 4096 * 16
            + 4 * 4096
        )
        + 2 * 4096,
        6_640_422_208,
    ),
    # openai/gpt-oss-20b: a sink a head, biases everywhere, heads of 64 on a width of 2880.
    (
        GPT_OSS,
        20_914_757_184,
        2 * 201088 * 2880
        + 24
        * (
            gqa(2880, 64, 8, 64)
            + 64 * 64
            + 2 * 8 * 64
            + 2880
            + 64
            + 32 * (3 * 2880**2 + 3 * 2880)
            + 2880 * 32
            + 32
            + 2 * 2880
        )
        + 2880,
        4_187_440_704,
    ),
    (
        DBRX,
        131_596_523_520,
        2 * 100352 * 6144
        + 40 * (gqa(6144, 48, 8, 128) + 16 * 3 * 6144 * 10752 + 6144 * 16 + 2 * 6144)
        + 6144,
        36_469_512_192,
    ),
    # Norms of q and k over all heads; the reference counts no corrections, which are buffers.
    (
        M2,
        228_689_748_992 + 62 * 256,
        2 * 200064 * 3072
        + 62
        * (gqa(3072, 48, 8, 128) + 56 * 128 + 256 * 3 * 3072 * 1536 + 3072 * 256 + 256 + 2 * 3072)
        + 3072,
        11_029_122_560,
    ),
]


@pytest.mark.parametrize(
    ("config", "total", "terms", "active"), TERMS, ids=lambda value: str(value)[:32]
)
def test_parameters_term_by_term(
    config: dict[str, Any], total: int, terms: int, active: int
) -> None:
    spec = read(**config)
    assert spec.total_params == terms
    assert terms == total
    assert spec.active_params == pytest.approx(active, rel=1e-3)


def test_arctic_runs_a_dense_network_beside_its_experts() -> None:
    """Snowflake: 480 B, 17 B active: 128 experts of 3.66 B and a dense part of 10 B (its README).

    Every layer has a residual MLP as wide as the network, with a norm of its own.
    """
    spec = read(**ARCTIC)
    layer = gqa(7168, 56, 8, 128) + 128 * 3 * 7168 * 4864 + 7168 * 128 + 3 * 7168 * 7168 + 3 * 7168
    assert spec.total_params == 2 * 32000 * 7168 + 35 * layer + 7168
    assert round(spec.total_params / 1e9) == 479
    assert round(spec.active_params / 1e9, 1) == 17.3
    assert {part.width for _, part in parts_of(spec, Dense)} == {7168}
    every_other = read(**{**ARCTIC, "moe_layer_frequency": 2})
    assert sum(n for n, _ in parts_of(every_other, Experts)) == 17


@pytest.mark.parametrize(
    ("config", "mixtures", "total", "active"),
    # Meta: Scout 109 B with 17 B active, Maverick 400 B with 17 B active (language model).
    [(SCOUT, 48, 108, 17), (MAVERICK, 24, 401, 17)],
)
def test_llama_4(config: dict[str, Any], mixtures: int, total: int, active: int) -> None:
    spec = read(**config)
    expert = 3 * 5120 * 8192
    dense = 3 * 5120 * 16384
    routed = mixtures * (config["num_local_experts"] * expert + expert)
    routers = mixtures * 5120 * config["num_local_experts"]
    plain = (48 - mixtures) * dense
    layers = 48 * (gqa(5120, 40, 8, 128) + 2 * 5120)
    assert spec.total_params == 2 * 202048 * 5120 + routed + routers + plain + layers + 5120
    assert round(spec.total_params / 1e9) == total
    assert round(spec.active_params / 1e9) == active


def test_chunks_of_llama_4_are_on_three_layers_of_four() -> None:
    spec = read(**SCOUT)
    assert spec.kv_elements_per_token == 12 * 2 * 8 * 128
    assert spec.window_elements == 36 * 2 * 8 * 128 * 8192
    whole = read(**{**SCOUT, "attention_chunk_size": None})
    assert whole.kv_elements_per_token == 48 * 2048
    listed = read(**{**SCOUT, "no_rope_layers": [1, 0] * 24})
    assert listed.kv_elements_per_token == 24 * 2048


def test_glm_4_5_air_term_by_term() -> None:
    """zai-org/GLM-4.5-Air: 106 B with 12 B active; its prediction layer stands beside the total."""
    spec = read(**GLM45_AIR)
    dense = GLM_ATTENTION + 3 * 4096 * 10944
    mixture = GLM_ATTENTION + 129 * GLM_EXPERT + 4096 * 128 + 128
    assert spec.total_params == 2 * 151552 * 4096 + dense + 45 * mixture + 4096
    assert spec.mtp_params == mixture + 2 * 4096 * 4096 + 3 * 4096
    assert round(spec.total_params / 1e9, 1) == 106.9
    assert round(spec.active_params / 1e9) == 13
    normed = read(**{**GLM45_AIR, "use_qk_norm": True})
    assert normed.total_params - spec.total_params == 46 * 2 * 128


@pytest.mark.parametrize(
    ("config", "values", "windowed"),
    [
        (MIXTRAL, 32 * 2048, 0),
        (QWEN15, 24 * 4096, 0),
        (QWEN3, 48 * 1024, 0),
        (OLMOE, 16 * 4096, 0),
        # Every second layer keeps 128 tokens of 2·8·64 values.
        (GPT_OSS, 12 * 1024, 12 * 1024 * 128),
        (DBRX, 40 * 2048, 0),
        (GLM45_AIR, 46 * 2048, 0),
        (M2, 62 * 2048, 0),
    ],
)
def test_cache_of_a_sequence(config: dict[str, Any], values: int, windowed: int) -> None:
    spec = read(**config)
    assert (spec.kv_elements_per_token, spec.window_elements) == (values, windowed)
    assert spec.kind == "moe"


@pytest.mark.parametrize(
    ("config", "group", "flops"),
    [
        # Attention 41,943,040, router 32,768 and two experts of 176,160,768.
        (MIXTRAL, 0, 2 * (41_943_040 + 32_768 + 2 * 176_160_768)),
        # Attention 18,874,368, router 262,144 and eight of 4,718,592.
        (QWEN3, 0, 2 * (18_874_368 + 262_144 + 8 * 4_718_592)),
        # The shared expert is 5632 wide; its gate of 2048 is left out.
        (QWEN15, 0, 2 * (16_777_216 + 122_880 + 4 * 8_650_752 + 34_603_008)),
        (M2, 0, 2 * (44_040_192 + 786_432 + 8 * 14_155_776)),
    ],
)
def test_flops_of_a_token_in_a_layer(config: dict[str, Any], group: int, flops: int) -> None:
    named = layer_kernels(read(**config).groups[group])
    assert token_flops([k for kernels in named.values() for k in kernels]) == flops
