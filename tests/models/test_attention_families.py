"""Sparse, compressed, shared and narrowed attention: configs in brief, what is kept and read."""

from __future__ import annotations

import math

import pytest

from planner.models.attention import Indexer
from planner.models.reader import ConfigError
from planner.models.spec import group_kernels
from tests.models.briefs import GRANITE, NEMOTRON_H, QWEN35, Config, kernels, read

DSA: Config = {
    "model_type": "glm_moe_dsa",
    "hidden_size": 6144,
    "num_hidden_layers": 78,
    "vocab_size": 154880,
    "num_attention_heads": 64,
    "num_key_value_heads": 64,
    "intermediate_size": 12288,
    "q_lora_rank": 2048,
    "kv_lora_rank": 512,
    "qk_nope_head_dim": 192,
    "qk_rope_head_dim": 64,
    "v_head_dim": 256,
    "head_dim": 64,
    "index_head_dim": 128,
    "index_n_heads": 32,
    "index_topk": 2048,
    "n_routed_experts": 256,
    "n_shared_experts": 1,
    "num_experts_per_tok": 8,
    "moe_intermediate_size": 2048,
    "first_k_dense_replace": 3,
    "num_nextn_predict_layers": 1,
}


def test_sparse_latent_attention_reads_what_the_indexer_picked() -> None:
    """GLM-5: hub 753864139008; 54912 values a token with an index key in each layer."""
    spec = read(**DSA)
    assert spec.total_params + spec.mtp_params == 753864139008
    assert spec.kv_elements_per_token == 78 * (512 + 64 + 128)
    ((layers, latent),) = {k.window: (n, k) for n, k in kernels(spec, "attention_latent")}.values()
    assert (latent.window, latent.bytes_per_cached) == (2048, 576 * 2)
    scans = kernels(spec, "indexer")
    assert sum(n for n, _ in scans) == 78
    assert all(math.isinf(scan.window) for _, scan in scans)
    assert scans[0][1].flops_per_cached == 2 * 32 * 128
    assert layers > 0


@pytest.mark.parametrize(
    "shared",
    [
        {"index_topk_freq": 4, "index_skip_topk_offset": 3},
        {"index_topk_pattern": ("FFF" + "SSSF" * 19)[:78]},
        {"indexer_types": (["full"] * 3 + (["shared"] * 3 + ["full"]) * 19)[:78]},
    ],
)
def test_shared_indexers_neither_scan_nor_cache(shared: Config) -> None:
    """GLM-5.2: hub 753329940480 with its prediction layer, 47616 values a token."""
    spec = read(**DSA, **shared)
    assert spec.total_params + spec.mtp_params == 753329940480
    assert spec.kv_elements_per_token == 47616
    assert sum(count for count, _ in kernels(spec, "indexer")) == 21


M3: Config = {
    "model_type": "minimax_m3",
    "hidden_size": 6144,
    "num_hidden_layers": 60,
    "vocab_size": 200064,
    "num_attention_heads": 64,
    "num_key_value_heads": 4,
    "head_dim": 128,
    "intermediate_size": 3072,
    "dense_intermediate_size": 12288,
    "shared_intermediate_size": 3072,
    "num_local_experts": 128,
    "num_experts_per_tok": 4,
    "n_shared_experts": 1,
    "moe_layer_freq": [0] * 3 + [1] * 57,
    "sparse_attention_config": {
        "sparse_attention_freq": [0] * 3 + [1] * 57,
        "sparse_topk_blocks": 16,
        "sparse_block_size": 128,
        "sparse_index_dim": 128,
        "sparse_num_index_heads": 4,
    },
    "tie_word_embeddings": False,
}


def test_block_sparse_attention_keeps_the_whole_cache() -> None:
    """MiniMax-M3: hub 427040140160 with an image encoder of 865567232; 68736 values a token."""
    spec = read(**M3)
    assert spec.total_params + 865567232 == 427040140160
    assert spec.kv_elements_per_token == 60 * 1024 + 57 * 128
    assert spec.window_elements == 0
    ((count, sparse),) = kernels(spec, "attention_sparse")
    assert (count, sparse.window) == (57, 16 * 128)
    assert sum(count for count, _ in kernels(spec, "attention")) == 3


V4: Config = {
    "model_type": "deepseek_v4",
    "hidden_size": 4096,
    "num_hidden_layers": 43,
    "head_dim": 512,
    "vocab_size": 129280,
    "num_attention_heads": 64,
    "num_key_value_heads": 1,
    "moe_intermediate_size": 2048,
    "n_routed_experts": 256,
    "n_shared_experts": 1,
    "num_experts_per_tok": 6,
    "num_hash_layers": 3,
    "q_lora_rank": 1024,
    "o_lora_rank": 1024,
    "o_groups": 8,
    "index_head_dim": 128,
    "index_n_heads": 64,
    "index_topk": 512,
    "hc_mult": 4,
    "sliding_window": 128,
    "num_nextn_predict_layers": 1,
    "compress_ratios": [0, 0, *[4, 128] * 20, 4, 0],
}


def test_compressed_attention() -> None:
    """DeepSeek-V4-Flash: hub 290944616402, 3440 values a token, 107520 of overlap state."""
    spec = read(**V4)
    assert spec.total_params + spec.mtp_params == 290944616402
    assert spec.active_params == 13799622231
    assert spec.kv_elements_per_token == 21 * (512 + 128) / 4 + 20 * 512 / 128
    assert spec.state_elements == 107520
    assert spec.window_elements == 43 * 512 * 128
    assert spec.kind == "moe"


def test_a_step_attends_picked_entries_all_entries_or_the_window() -> None:
    spec = read(**V4)
    compressed = kernels(spec, "attention_compressed")
    picked = [k for _, k in compressed if not math.isinf(k.window)]
    whole = [k for _, k in compressed if math.isinf(k.window)]
    assert {k.window for k in picked} == {512 * 4}
    assert {k.bytes_per_cached for k in picked} == {512 * 2 / 4}
    assert {k.flops_per_cached for k in whole} == {4 * 64 * 512 / 128}
    assert {k.window for _, k in kernels(spec, "attention_window")} == {128}
    assert sum(count for count, _ in kernels(spec, "indexer")) == 21
    assert {k.flops_per_cached for _, k in kernels(spec, "indexer")} == {2 * 64 * 128 / 4}


KIMI: Config = {
    "model_type": "kimi_linear",
    "hidden_size": 2304,
    "num_hidden_layers": 27,
    "head_dim": 72,
    "vocab_size": 163840,
    "num_attention_heads": 32,
    "num_key_value_heads": 32,
    "intermediate_size": 9216,
    "moe_intermediate_size": 1024,
    "num_experts": 256,
    "num_experts_per_token": 8,
    "num_shared_experts": 1,
    "first_k_dense_replace": 1,
    "kv_lora_rank": 512,
    "q_lora_rank": None,
    "qk_nope_head_dim": 128,
    "qk_rope_head_dim": 64,
    "linear_attn_config": {
        "full_attn_layers": [4, 8, 12, 16, 20, 24, 27],
        "head_dim": 128,
        "num_heads": 32,
        "short_conv_kernel_size": 4,
    },
}


def test_kimi_layers_count_from_one() -> None:
    """Kimi-Linear-48B-A3B: hub 49122681728; 7 latent layers cache 4032 values a token."""
    spec = read(**KIMI)
    assert spec.total_params == 49122681728
    assert spec.kv_elements_per_token == 7 * 576
    assert spec.state_elements == 11468800


def test_null_query_rank_is_not_a_missing_one() -> None:
    assert "q_b_proj" not in {
        linear.kernel for g in read(**KIMI).groups for p in g.block.parts for linear in p.linears()
    }


ZAMBA: Config = {
    "model_type": "zamba2",
    "hidden_size": 2560,
    "num_hidden_layers": 54,
    "num_mem_blocks": 2,
    "hybrid_layer_ids": [6, 12, 18, 24, 30, 36, 42, 47, 51],
    "intermediate_size": 10240,
    "num_attention_heads": 32,
    "n_mamba_heads": 80,
    "mamba_d_state": 64,
    "adapter_rank": 128,
}


def test_shared_blocks_are_stored_once_and_cached_at_each_use() -> None:
    """Zamba2-2.7B: 2662214560 parameters; 9 uses of two blocks cache 92160 values a token."""
    spec = read(**ZAMBA)
    assert spec.total_params == 2662214560
    assert spec.kv_elements_per_token == 9 * 2 * 5120
    fewer = read(**{**ZAMBA, "num_mem_blocks": 1})
    block = 3 * 5120 * 5120 + 5120 * 2560 + 3 * 2560 * 10240 + 3 * 2560
    assert spec.total_params - fewer.total_params == block
    assert spec.kv_elements_per_token == fewer.kv_elements_per_token


def test_sliding_layers_may_have_sizes_of_their_own() -> None:
    """MiMo-V2-Flash: 9 full layers of 4 × (192+128), 39 of 8 × (192+128) keep 128 tokens."""
    pattern = [0] + ([1] * 4 + [0]) + ([1] * 5 + [0]) * 7
    spec = read(
        model_type="mimo_v2_flash",
        hidden_size=4096,
        num_hidden_layers=48,
        vocab_size=152576,
        num_attention_heads=64,
        num_key_value_heads=4,
        head_dim=192,
        v_head_dim=128,
        swa_num_key_value_heads=8,
        intermediate_size=16384,
        moe_intermediate_size=2048,
        n_routed_experts=256,
        num_experts_per_tok=8,
        moe_layer_freq=[0] + [1] * 47,
        hybrid_layer_pattern=pattern,
        sliding_window=128,
        tie_word_embeddings=False,
    )
    assert spec.total_params == 308778780864
    assert spec.kv_elements_per_token == 9 * 4 * 320
    assert spec.window_elements == 39 * 8 * 320 * 128
    # 0.33 B each, three of them (technical report, 2025, section 2.3).
    assert spec.mtp_params == pytest.approx(3 * 0.33e9, rel=0.01)


GEMMA4: Config = {
    "model_type": "gemma4_text",
    "hidden_size": 1536,
    "intermediate_size": 6144,
    "num_hidden_layers": 35,
    "num_attention_heads": 8,
    "num_key_value_heads": 1,
    "head_dim": 256,
    "global_head_dim": 512,
    "num_kv_shared_layers": 20,
    "sliding_window": 512,
    "use_double_wide_mlp": True,
    "hidden_size_per_layer_input": 256,
    "vocab_size": 262144,
    "layer_types": (["sliding_attention"] * 4 + ["full_attention"]) * 7,
}


def test_shared_caches_are_kept_once_and_read_by_all() -> None:
    """Gemma-4-E2B: 15 of 35 layers cache, 3 of them whole; 4628569379 without its encoders."""
    spec = read(**GEMMA4)
    assert spec.total_params == 4628569379
    assert spec.kv_elements_per_token == 3 * 2 * 512
    assert spec.window_elements == 12 * 2 * 256 * 512
    assert sum(count for count, _ in kernels(spec, "attention")) == 7
    assert sum(count for count, _ in kernels(spec, "attention_window")) == 28


def test_per_layer_embeddings_are_looked_up_not_read() -> None:
    spec = read(**GEMMA4)
    assert spec.embedding_params == 262144 * (1536 + 35 * 256)
    read_bytes = sum(
        group.count * kernel.weight_bytes
        for group in spec.groups
        for kernel in group_kernels(group, spec.formats())
    )
    assert read_bytes < 2 * (spec.total_params - spec.embedding_params)


@pytest.mark.parametrize(
    ("config", "change", "message"),
    [
        (QWEN35, {"layer_types": ["conv"] * 48}, "layer_types: 'conv'; accepted: full_attention"),
        (QWEN35, {"linear_num_key_heads": None}, "linear_num_key_heads: missing"),
        (DSA, {"indexer_types": ["full"]}, "indexer_types: 1 entries for 78 layers"),
        (DSA, {"indexer_types": ["half"] * 78}, "indexer_types: accepted: full or shared"),
        (V4, {"compress_ratios": [3] * 43}, "compress_ratios: 3; accepted: 0, 4 or 128"),
        (KIMI, {"linear_attn_config": None}, "linear_attn_config: missing"),
        (
            GRANITE | {"hidden_size": 2048, "num_attention_heads": 32, "num_local_experts": 0},
            {"layer_types": ["x"] * 40},
            "layer_types: 'x'; accepted: attention, mamba",
        ),
        (
            NEMOTRON_H | {"hidden_size": 4096},
            {"hybrid_override_pattern": "M?E"},
            "hybrid_override_pattern: 'M\\?E'; accepted: M, \\*, - and E",
        ),
        (NEMOTRON_H | {"hidden_size": 4096}, {}, "hybrid_override_pattern: missing"),
        (ZAMBA, {"n_mamba_heads": 81}, "n_mamba_heads: 81 does not divide width 5120"),
        (GEMMA4, {"num_kv_shared_layers": 35}, "num_kv_shared_layers: 35; accepted: 0 to 34"),
    ],
)
def test_what_cannot_be_read_names_the_field(config: Config, change: Config, message: str) -> None:
    with pytest.raises(ConfigError, match=message) as raised:
        read(**{**config, **change})
    assert "\n" not in str(raised.value)


def test_nemotron_nas_drops_attention_or_narrows_it_layer_by_layer() -> None:
    keep = {"attention": {"n_heads_in_group": 8}, "ffn": {"ffn_mult": 5.25}}
    drop = {"attention": {"no_op": True}, "ffn": {"ffn_mult": 2.625}}
    spec = read(
        model_type="nemotron-nas",
        hidden_size=8192,
        num_attention_heads=64,
        vocab_size=128256,
        block_configs=[keep, drop],
        num_hidden_layers=2,
    )
    assert spec.kv_elements_per_token == 2 * 8 * 128
    wide, narrow = 28672, 14336  # 2·ffn_mult·8192/3 in steps of 256
    layers = 2 * 8192 * 8192 + 2 * 8192 * 1024 + 3 * 8192 * (wide + narrow) + 3 * 8192
    assert spec.total_params == 2 * 128256 * 8192 + 8192 + layers


def test_an_indexer_runs_whole_on_every_rank() -> None:
    """MiniMax-M3 is served on 8 GPUs though its indexer has 4 heads."""
    indexers = [p for g in read(**M3).groups for p in g.block.mixers if isinstance(p, Indexer)]
    assert {part.sharded_heads for part in indexers} == {None}
    ((_, scan),) = kernels(read(**M3), "indexer")
    assert (scan.flop_ways, scan.cache_ways) == (1, 1)
