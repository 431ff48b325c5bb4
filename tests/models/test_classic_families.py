"""Decoders of the LayerNorm age, parameters term by term from their published configs.

Totals are those of the reference implementation (`num_parameters`) or of the published weights,
recalled where no source is named; each is reached by its terms, written out beside it.
"""

from __future__ import annotations

import math
from typing import Any

import pytest

from planner.models.attention import Attention
from planner.models.mlp import Dense
from planner.models.spec import ModelSpec
from tests.models.layers import layer_kernels, parts_of, read, token_flops

GPT2: dict[str, Any] = {
    "model_type": "gpt2",
    "n_embd": 768,
    "n_layer": 12,
    "n_head": 12,
    "n_positions": 1024,
    "vocab_size": 50257,
}
GPTJ: dict[str, Any] = {
    "model_type": "gptj",
    "n_embd": 4096,
    "n_layer": 28,
    "n_head": 16,
    "vocab_size": 50400,
    "tie_word_embeddings": False,
}
NEOX: dict[str, Any] = {
    "model_type": "gpt_neox",
    "hidden_size": 6144,
    "num_hidden_layers": 44,
    "num_attention_heads": 64,
    "intermediate_size": 24576,
    "vocab_size": 50432,
    "tie_word_embeddings": False,
}
OPT: dict[str, Any] = {
    "model_type": "opt",
    "hidden_size": 768,
    "num_hidden_layers": 12,
    "num_attention_heads": 12,
    "ffn_dim": 3072,
    "max_position_embeddings": 2048,
    "vocab_size": 50272,
    "word_embed_proj_dim": 768,
}
BLOOM: dict[str, Any] = {
    "model_type": "bloom",
    "hidden_size": 1024,
    "n_layer": 24,
    "n_head": 16,
    "vocab_size": 250880,
}
FALCON: dict[str, Any] = {
    "model_type": "falcon",
    "hidden_size": 4544,
    "num_hidden_layers": 32,
    "num_attention_heads": 71,
    "vocab_size": 65024,
    "multi_query": True,
    "parallel_attn": True,
    "bias": False,
}
FALCON_40B: dict[str, Any] = {
    "model_type": "falcon",
    "hidden_size": 8192,
    "num_hidden_layers": 60,
    "num_attention_heads": 128,
    "num_kv_heads": 8,
    "vocab_size": 65024,
    "new_decoder_architecture": True,
    "bias": False,
}
MPT: dict[str, Any] = {
    "model_type": "mpt",
    "d_model": 4096,
    "n_layers": 32,
    "n_heads": 32,
    "expansion_ratio": 4,
    "max_seq_len": 2048,
    "vocab_size": 50432,
    "no_bias": True,
    "attn_config": {"alibi": True},
}
STARCODER: dict[str, Any] = {
    "model_type": "gpt_bigcode",
    "n_embd": 6144,
    "n_layer": 40,
    "n_head": 48,
    "n_inner": 24576,
    "n_positions": 8192,
    "vocab_size": 49152,
    "multi_query": True,
}
STARCODER2: dict[str, Any] = {
    "model_type": "starcoder2",
    "hidden_size": 3072,
    "num_hidden_layers": 30,
    "num_attention_heads": 24,
    "num_key_value_heads": 2,
    "intermediate_size": 12288,
    "vocab_size": 49152,
    "use_bias": True,
}
PHI2: dict[str, Any] = {
    "model_type": "phi",
    "hidden_size": 2560,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "intermediate_size": 10240,
    "vocab_size": 51200,
    "tie_word_embeddings": False,
}
GPT_NEO: dict[str, Any] = {
    "model_type": "gpt_neo",
    "hidden_size": 768,
    "num_layers": 12,
    "num_heads": 12,
    "max_position_embeddings": 2048,
    "window_size": 256,
    "vocab_size": 50257,
    "attention_layers": ["global", "local"] * 6,
}
QWEN1: dict[str, Any] = {
    "model_type": "qwen",
    "hidden_size": 2048,
    "num_hidden_layers": 24,
    "num_attention_heads": 16,
    "intermediate_size": 11008,
    "vocab_size": 151936,
    "tie_word_embeddings": False,
}
CHATGLM: dict[str, Any] = {
    "model_type": "chatglm",
    "hidden_size": 4096,
    "num_layers": 28,
    "num_attention_heads": 32,
    "multi_query_attention": True,
    "multi_query_group_num": 2,
    "kv_channels": 128,
    "ffn_hidden_size": 13696,
    "padded_vocab_size": 65024,
    "add_qkv_bias": True,
    "add_bias_linear": False,
    "tie_word_embeddings": False,
}


def biased(hidden: int, inner: int, key_values: int | None = None) -> int:
    """Return a layer with biases everywhere and two LayerNorms of weight and bias."""
    kv = hidden if key_values is None else key_values
    attention = 2 * hidden * hidden + 2 * hidden * kv + 2 * hidden + 2 * kv
    return attention + 2 * hidden * inner + inner + hidden + 4 * hidden


TERMS = [
    # Tokens, positions, 12 layers of 7,087,872, final norm of weight and bias.
    (GPT2, 124_439_808, 50257 * 768 + 1024 * 768 + 12 * 7_087_872 + 1536),
    # One norm a layer, attention without biases, MLP with; the head has a bias.
    (
        GPTJ,
        6_050_882_784,
        2 * 50400 * 4096
        + 50400
        + 28 * (4 * 4096**2 + 2 * 4096 * 16384 + 16384 + 4096 + 2 * 4096)
        + 2 * 4096,
    ),
    (NEOX, 20_554_567_680, 2 * 50432 * 6144 + 44 * biased(6144, 24576) + 2 * 6144),
    # Positions start at two: 2050 rows.
    (OPT, 125_239_296, 50272 * 768 + 2050 * 768 + 12 * biased(768, 3072) + 2 * 768),
    # A norm of weight and bias follows the embedding as well.
    (BLOOM, 559_214_592, 250880 * 1024 + 24 * biased(1024, 4096) + 4 * 1024),
    # Multi-query attention: one key and one value head of 64; one norm a layer, no bias.
    (
        FALCON,
        6_921_720_704,
        65024 * 4544 + 32 * (4544 * (4544 + 128) + 4544**2 + 8 * 4544**2 + 2 * 4544) + 2 * 4544,
    ),
    # Eight KV heads of 64; norms of attention and MLP.
    (
        FALCON_40B,
        41_303_293_952,
        65024 * 8192 + 60 * (8192 * (8192 + 1024) + 8192**2 + 8 * 8192**2 + 4 * 8192) + 2 * 8192,
    ),
    # ALiBi: no positions; no biases, not even of the norms.
    (MPT, 6_649_286_656, 50432 * 4096 + 32 * (12 * 4096**2 + 2 * 4096) + 4096),
    (
        STARCODER,
        15_517_456_384,
        49152 * 6144 + 8192 * 6144 + 40 * biased(6144, 24576, 128) + 2 * 6144,
    ),
    (STARCODER2, 3_030_371_328, 49152 * 3072 + 30 * biased(3072, 12288, 256) + 2 * 3072),
    # One LayerNorm a layer; the head has a bias.
    (
        PHI2,
        2_779_683_840,
        2 * 51200 * 2560 + 51200 + 32 * (biased(2560, 10240) - 2 * 2560) + 2 * 2560,
    ),
    # q, k and v without biases: 3·768 fewer a layer.
    (GPT_NEO, 125_198_592, 50257 * 768 + 2048 * 768 + 12 * (biased(768, 3072) - 3 * 768) + 2 * 768),
    # `intermediate_size` is gate and up together: 5504 each; biases of q, k and v alone.
    (
        QWEN1,
        1_836_828_672,
        2 * 151936 * 2048 + 24 * (4 * 2048**2 + 3 * 2048 + 3 * 2048 * 5504 + 2 * 2048) + 2048,
    ),
    # Two groups of keys and values: 4096×(4096 + 512) with biases, no others.
    (
        CHATGLM,
        6_243_584_000,
        2 * 65024 * 4096 + 28 * (4096 * 4608 + 4608 + 4096**2 + 3 * 4096 * 13696 + 2 * 4096) + 4096,
    ),
]


@pytest.mark.parametrize(("config", "total", "terms"), TERMS, ids=lambda value: str(value)[:32])
def test_parameters_term_by_term(config: dict[str, Any], total: int, terms: int) -> None:
    assert terms == total
    assert read(**config).total_params == total


@pytest.mark.parametrize(
    ("config", "values"),
    [
        # Keys and values of all heads: 2·hidden a layer.
        (GPT2, 12 * 2 * 768),
        (NEOX, 44 * 2 * 6144),
        (BLOOM, 24 * 2 * 1024),
        (MPT, 32 * 2 * 4096),
        # One head of 64, eight of 64, one of 128, two of 128, two of 128.
        (FALCON, 32 * 2 * 64),
        (FALCON_40B, 60 * 2 * 8 * 64),
        (STARCODER, 40 * 2 * 128),
        (STARCODER2, 30 * 2 * 2 * 128),
        (CHATGLM, 28 * 2 * 2 * 128),
    ],
)
def test_cache_of_a_token(config: dict[str, Any], values: int) -> None:
    spec = read(**config)
    assert spec.kv_elements_per_token == values
    assert (spec.window_elements, spec.state_elements, spec.kind) == (0, 0, "dense")


@pytest.mark.parametrize(
    ("config", "flops"),
    [
        # 2·(4·768² + 8·768²).
        (GPT2, 24 * 768**2),
        (PHI2, 24 * 2560**2),
        (FALCON, 2 * (4544 * 4672 + 9 * 4544**2)),
        (STARCODER2, 2 * (2 * 3072**2 + 3072 * 512 + 2 * 3072 * 12288)),
        (CHATGLM, 2 * (2 * 4096**2 + 4096 * 512 + 3 * 4096 * 13696)),
    ],
)
def test_flops_of_a_token_in_a_layer(config: dict[str, Any], flops: int) -> None:
    kernels = [k for named in layer_kernels(read(**config).groups[0]).values() for k in named]
    assert token_flops(kernels) == flops


def windows(spec: ModelSpec) -> dict[float, int]:
    return {part.window: count for count, part in parts_of(spec, Attention)}


def test_gpt_neo_looks_256_tokens_back_in_every_second_layer() -> None:
    listed = read(**GPT_NEO)
    assert windows(listed) == {math.inf: 6, 256: 6}
    assert windows(read(**{**GPT_NEO, "attention_layers": None})) == {math.inf: 6, 256: 6}
    assert listed.kv_elements_per_token == 6 * 2 * 768
    assert listed.window_elements == 6 * 2 * 768 * 256


def test_a_narrow_embedding_is_projected_in_and_out() -> None:
    """OPT-350m: 331,196,416: tokens of 512 values, two projections of 512×1024, no final norm."""
    spec = read(
        **{
            **OPT,
            "hidden_size": 1024,
            "num_hidden_layers": 24,
            "num_attention_heads": 16,
            "ffn_dim": 4096,
            "word_embed_proj_dim": 512,
            "do_layer_norm_before": False,
        }
    )
    tokens, positions = 50272 * 512, 2050 * 1024
    assert spec.total_params == tokens + positions + 24 * biased(1024, 4096) + 2 * 512 * 1024
    assert spec.total_params == 331_196_416
    assert spec.lm_head_params == tokens


@pytest.mark.parametrize(
    ("change", "difference"),
    [
        # Learned positions, 2048 of them, where there is no ALiBi.
        ({"attn_config": {"alibi": False}}, 2048 * 4096),
        # Eight KV heads of 128 instead of 32: 2·4096·3072 fewer a layer (MPT-30B's like).
        ({"attn_config": {"kv_n_heads": 8}}, -32 * 2 * 4096 * 3072),
        # Biases: 4·4096 of attention, 5·4096 of the MLP, 2·4096 of two norms; one more final.
        ({"no_bias": False}, 32 * 11 * 4096 + 4096),
        # An MLP six times as wide: 4·4096² more a layer.
        ({"expansion_ratio": 6}, 32 * 4 * 4096**2),
    ],
)
def test_switches_of_mpt(change: dict[str, Any], difference: int) -> None:
    changed = read(**{**MPT, **change})
    assert changed.total_params - read(**MPT).total_params == difference


@pytest.mark.parametrize(
    ("change", "difference"),
    [
        # All 71 heads keep keys and values: 2·70·64 more columns a layer.
        ({"multi_query": False}, 32 * 4544 * 2 * 70 * 64),
        # Norms before attention and MLP, one after the other.
        ({"parallel_attn": False}, 32 * 2 * 4544),
        # Biases of q, k and v (4544 + 128), of the output, and of the MLP (4·4544 + 4544).
        ({"bias": True}, 32 * (4672 + 4544 + 5 * 4544)),
        # A head of its own.
        ({"tie_word_embeddings": False}, 65024 * 4544),
    ],
)
def test_switches_of_falcon(change: dict[str, Any], difference: int) -> None:
    changed = read(**{**FALCON, **change})
    assert changed.total_params - read(**FALCON).total_params == difference


def test_the_old_falcon_has_one_head_of_keys_whatever_num_kv_heads_says() -> None:
    """tiiuae/falcon-7b states num_kv_heads: 71 and is multi-query all the same."""
    assert read(**{**FALCON, "num_kv_heads": 71}).kv_elements_per_token == 32 * 128


def test_phi_normalises_queries_and_keys_only_if_told_to() -> None:
    more = read(**{**PHI2, "qk_layernorm": True}).total_params - read(**PHI2).total_params
    assert more == 32 * 4 * 80  # weight and bias of each, heads of 80


@pytest.mark.parametrize(
    ("config", "gated", "width"),
    [
        (GPT2, False, 4 * 768),
        (GPTJ, False, 4 * 4096),
        (BLOOM, False, 4 * 1024),
        (FALCON, False, 4 * 4544),
        ({**GPT2, "n_inner": 2048}, False, 2048),
        (QWEN1, True, 5504),
        (CHATGLM, True, 13696),
    ],
)
def test_width_and_gate_of_the_mlp(config: dict[str, Any], gated: bool, width: int) -> None:
    ((_, dense),) = parts_of(read(**config), Dense)
    assert (dense.gated, dense.width) == (gated, width)


def test_groups_count_only_under_multi_query_attention() -> None:
    """THUDM/chatglm2 and later: without the switch all 32 heads have keys and values."""
    spec = read(**{**CHATGLM, "multi_query_attention": False})
    assert spec.kv_elements_per_token == 28 * 2 * 4096


@pytest.mark.parametrize(
    ("config", "change", "message"),
    [
        (GPT2, {"n_embd": None}, "hidden_size or n_embd or n_embed or d_model: missing"),
        (GPT2, {"n_embd": 770}, "hidden_size: 770 is not a multiple of 12 attention heads"),
        (STARCODER2, {"num_key_value_heads": 5}, "5 does not divide 24 attention heads"),
        (OPT, {"max_position_embeddings": -1}, "max_position_embeddings: -1 is out of range"),
        (FALCON, {"bias": "yes"}, "bias: 'yes' is not true or false"),
        (GPT_NEO, {"attention_layers": ["global"]}, "attention_layers: 1 entries for 12 layers"),
    ],
)
def test_what_cannot_be_read_names_the_field(
    config: dict[str, Any], change: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message) as raised:
        read(**{name: value for name, value in {**config, **change}.items() if value is not None})
    assert "\n" not in str(raised.value)
