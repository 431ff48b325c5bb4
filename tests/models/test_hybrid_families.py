"""Hybrids, sparse and compressed attention: configs in brief, sizes of published checkpoints.

`hub` is the total of a checkpoint's safetensors metadata; where the checkpoint also holds
multi-token-prediction layers it equals total_params + mtp_params.
"""

from __future__ import annotations

import math
from typing import Any

import pytest

from planner.kernels import Kernel
from planner.models.attention import Indexer
from planner.models.huggingface import import_config
from planner.models.reader import ConfigError
from planner.models.spec import ModelSpec, group_kernels

Config = dict[str, Any]


def read(**config: Any) -> ModelSpec:
    return import_config({"torch_dtype": "bfloat16", **config})


def kernels(spec: ModelSpec, name: str) -> list[tuple[int, Kernel]]:
    formats = spec.formats()
    return [
        (group.count, kernel)
        for group in spec.groups
        for kernel in group_kernels(group, formats)
        if kernel.name == name
    ]


GRANITE: Config = {
    "model_type": "granitemoehybrid",
    "vocab_size": 100352,
    "num_hidden_layers": 40,
    "layer_types": ["attention" if i in (5, 15, 25, 35) else "mamba" for i in range(40)],
    "mamba_d_conv": 4,
    "mamba_d_state": 128,
    "mamba_expand": 2,
    "mamba_n_groups": 1,
    "mamba_d_head": 64,
    "tie_word_embeddings": True,
}
NEMOTRON_H: Config = {
    "model_type": "nemotron_h",
    "vocab_size": 131072,
    "num_key_value_heads": 8,
    "ssm_state_size": 128,
    "n_groups": 8,
    "conv_kernel": 4,
    "mamba_num_heads": 128,
}
MAMBA_ONLY = [
    (
        "mamba-2.8b",
        {
            "model_type": "mamba",
            "hidden_size": 2560,
            "num_hidden_layers": 64,
            "vocab_size": 50280,
            "state_size": 16,
        },
        2768345600,
    ),
    (
        "rwkv-5-world-1b5",
        {
            "model_type": "rwkv5",
            "hidden_size": 2048,
            "num_hidden_layers": 24,
            "vocab_size": 65536,
            "tie_word_embeddings": False,
        },
        1577754624,
    ),
]
HYBRIDS = [
    (
        "Nemotron-H-8B",
        {
            **NEMOTRON_H,
            "hidden_size": 4096,
            "intermediate_size": 21504,
            "mamba_head_dim": 64,
            "hybrid_override_pattern": "M-M-M-M*-M-M-M-M-M*-M-M-M-M-M*-M-M-M-M-M*-M-M-M-M-M-",
            "attention_head_dim": 128,
            "num_attention_heads": 32,
        },
        8100852736,
    ),
    (
        "Nemotron-Nano-9B-v2",
        {
            **NEMOTRON_H,
            "hidden_size": 4480,
            "intermediate_size": 15680,
            "mamba_head_dim": 80,
            "hybrid_override_pattern": "M-M-M-MM-M-M-M*-M-M-M*-M-M-M-M*-M-M-M-M*-M-MM-M-M-M-M-M-",
            "head_dim": 128,
            "num_attention_heads": 40,
        },
        8888227328,
    ),
    (
        "granite-4.0-h-small",
        {
            **GRANITE,
            "hidden_size": 4096,
            "intermediate_size": 768,
            "num_local_experts": 72,
            "num_experts_per_tok": 10,
            "shared_intermediate_size": 1536,
            "mamba_n_heads": 128,
            "num_attention_heads": 32,
            "num_key_value_heads": 8,
        },
        32207337984,
    ),
    (
        "granite-4.0-h-tiny",
        {
            **GRANITE,
            "hidden_size": 1536,
            "intermediate_size": 512,
            "num_local_experts": 64,
            "num_experts_per_tok": 6,
            "shared_intermediate_size": 1024,
            "mamba_n_heads": 48,
            "num_attention_heads": 12,
            "num_key_value_heads": 4,
        },
        6939037248,
    ),
    (
        "granite-4.0-h-micro",
        {
            **GRANITE,
            "hidden_size": 2048,
            "intermediate_size": 8192,
            "num_local_experts": 0,
            "shared_intermediate_size": 8192,
            "mamba_n_heads": 64,
            "num_attention_heads": 32,
            "num_key_value_heads": 8,
        },
        3191396096,
    ),
    (
        "Falcon-H1-34B",
        {
            "model_type": "falcon_h1",
            "vocab_size": 261120,
            "hidden_size": 5120,
            "intermediate_size": 21504,
            "num_hidden_layers": 72,
            "num_attention_heads": 20,
            "num_key_value_heads": 4,
            "head_dim": 128,
            "mamba_d_ssm": 4096,
            "mamba_n_heads": 32,
            "mamba_d_head": 128,
            "mamba_n_groups": 2,
            "mamba_d_state": 256,
            "mamba_rms_norm": True,
            "tie_word_embeddings": False,
        },
        33642516224,
    ),
    (
        "Zamba2-1.2B",
        {
            "model_type": "zamba2",
            "hidden_size": 2048,
            "num_hidden_layers": 38,
            "num_attention_heads": 32,
            "num_mem_blocks": 1,
            "intermediate_size": 8192,
            "mamba_d_state": 128,
            "mamba_headdim": 64,
            "use_shared_attention_adapter": True,
            "hybrid_layer_ids": [5, 11, 17, 23, 29, 35],
        },
        1215064704,
    ),
]


@pytest.mark.parametrize(("name", "config", "hub"), MAMBA_ONLY + HYBRIDS)
def test_total_of_a_published_checkpoint(name: str, config: Config, hub: int) -> None:
    assert read(**config).total_params == hub, name


def test_rwkv6_counts_as_its_report_does() -> None:
    """Eagle and Finch, 2024, appendix: 2DV + 13D²L + 464DL + 4D at D = 2048, L = 24."""
    spec = read(model_type="rwkv6", hidden_size=2048, num_hidden_layers=24, vocab_size=65536)
    width, layers = 2048, 24
    expected = 2 * width * 65536 + 13 * width**2 * layers + 464 * width * layers + 4 * width
    assert spec.total_params == expected


@pytest.mark.parametrize(
    ("hidden", "layers", "ranks", "total"),
    [
        # RWKV-7 report, 2025, table of sizes: 0.19 B and 2.9 B.
        (768, 12, (64, 64, 32, 128), 191034624),
        (2560, 32, (96, 96, 64, 320), 2947735040),
    ],
)
def test_rwkv7_counts_as_its_report_does(
    hidden: int, layers: int, ranks: tuple[int, int, int, int], total: int
) -> None:
    """2DV + 4D + LD(12D + 2(d_w + d_a + d_v + d_g) + 19) − (2D·d_v + D)."""
    names = ("decay_low_rank_dim", "a_low_rank_dim", "v_low_rank_dim", "gate_low_rank_dim")
    spec = read(
        model_type="rwkv7",
        hidden_size=hidden,
        num_hidden_layers=layers,
        vocab_size=65536,
        **dict(zip(names, ranks, strict=True)),
    )
    assert spec.total_params == total
    assert spec.state_elements == layers * (hidden * 64 + 2 * hidden)


@pytest.mark.parametrize(("name", "config", "hub"), MAMBA_ONLY)
def test_a_network_without_cache_is_an_ssm(name: str, config: Config, hub: int) -> None:
    del name, hub
    spec = read(**config)
    assert spec.kind == "ssm"
    assert spec.kv_elements_per_token == 0
    assert spec.state_elements > 0


def test_lfm2_8b_a1b() -> None:
    """Hub 8339929856 leaves out the correction of 32 experts in 22 layers; 1.5 B are active."""
    spec = read(
        model_type="lfm2_moe",
        vocab_size=65536,
        hidden_size=2048,
        intermediate_size=7168,
        moe_intermediate_size=1792,
        num_hidden_layers=24,
        num_attention_heads=32,
        num_key_value_heads=8,
        num_dense_layers=2,
        num_experts=32,
        num_experts_per_tok=4,
        layer_types=[
            "full_attention" if i in (2, 6, 10, 14, 18, 21) else "conv" for i in range(24)
        ],
    )
    assert spec.total_params == 8339929856 + 32 * 22
    assert spec.active_params == pytest.approx(1.5e9, rel=0.05)
    assert spec.kind == "hybrid+moe"


def test_lfm2_width_is_two_thirds_rounded_up() -> None:
    """LFM2-1.2B: block_ff_dim 12288 becomes 8192; total 1170340608 exact."""
    spec = read(
        model_type="lfm2",
        vocab_size=65536,
        hidden_size=2048,
        block_ff_dim=12288,
        intermediate_size=8192,
        num_hidden_layers=16,
        num_attention_heads=32,
        num_key_value_heads=8,
        full_attn_idxs=[2, 5, 8, 10, 12, 14],
    )
    assert spec.total_params == 1170340608
    assert spec.state_elements == 61440


LONGCAT: Config = {
    "model_type": "longcat_flash",
    "vocab_size": 131072,
    "hidden_size": 6144,
    "num_layers": 28,
    "num_attention_heads": 64,
    "ffn_hidden_size": 12288,
    "q_lora_rank": 1536,
    "kv_lora_rank": 512,
    "qk_nope_head_dim": 128,
    "qk_rope_head_dim": 64,
    "v_head_dim": 128,
    "moe_topk": 12,
    "n_routed_experts": 512,
    "zero_expert_num": 256,
    "expert_ffn_hidden_size": 2048,
}


def test_longcat_counts_two_attentions_a_layer_and_no_identity_experts() -> None:
    """Hub 561862880256: the network, one prediction layer and a second copy of the embedding."""
    spec = read(**LONGCAT)
    assert spec.total_params + spec.mtp_params + 131072 * 6144 == 561862880256
    assert spec.kv_elements_per_token == 56 * 576
    assert spec.active_params == pytest.approx(27e9, rel=0.05)  # report: 18.6-31.3 B, 27 on average
    assert "zero_experts" in [note.code for note in spec.notes]


def test_step3_is_316_b_of_which_38_b_are_active() -> None:
    """Step-3 report, 2025, table 1: 316 B parameters of language model, 38 B activated."""
    spec = read(
        model_type="step3_vl",
        hidden_size=7168,
        intermediate_size=18432,
        num_attention_heads=64,
        num_attention_groups=1,
        num_hidden_layers=61,
        vocab_size=128815,
        moe_intermediate_size=5120,
        moe_num_experts=48,
        moe_top_k=3,
        share_expert_dim=5120,
        moe_layers_enum=",".join(map(str, range(4, 60))),
        share_q_dim=2048,
        head_dim=256,
    )
    assert round(spec.total_params / 1e9) == 316
    assert spec.active_params == pytest.approx(38e9, rel=0.03)
    assert spec.kv_elements_per_token == 61 * 2 * 256


QWEN35: Config = {
    "model_type": "qwen3_5_moe_text",
    "hidden_size": 3072,
    "num_hidden_layers": 48,
    "num_attention_heads": 32,
    "num_key_value_heads": 2,
    "head_dim": 256,
    "vocab_size": 248320,
    "full_attention_interval": 4,
    "linear_conv_kernel_dim": 4,
    "linear_key_head_dim": 128,
    "linear_num_key_heads": 16,
    "linear_num_value_heads": 64,
    "linear_value_head_dim": 128,
    "moe_intermediate_size": 1024,
    "shared_expert_intermediate_size": 1024,
    "num_experts": 256,
    "num_experts_per_tok": 8,
    "mtp_num_hidden_layers": 1,
    "mamba_ssm_dtype": "float32",
    "tie_word_embeddings": False,
}


def test_qwen35_prediction_layer_is_beside_the_total() -> None:
    """Qwen3.5-122B-A10B: hub 125086497008 with an image encoder of 451290864."""
    spec = read(**QWEN35)
    assert spec.total_params + spec.mtp_params + 451290864 == 125086497008
    assert spec.active_params == 9771288576
    assert spec.state_dtype == "fp32"
    assert spec.formats().state.id == "fp32"
    assert (spec.kv_elements_per_token, spec.state_elements) == (12288, 39518208)


def test_prediction_layers_count_like_the_checkpoint_and_only_if_asked_for() -> None:
    assert read(**QWEN35).mtp_params == 2523679232
    assert read(**{**QWEN35, "mtp_num_hidden_layers": 0}).mtp_params == 0


@pytest.mark.parametrize("dtype", ["float32", "torch.float32", "bfloat16", None])
def test_state_dtype(dtype: str | None) -> None:
    spec = read(**{**QWEN35, "mamba_ssm_dtype": dtype})
    expected = {"float32": "fp32", "torch.float32": "fp32", "bfloat16": "bf16", None: None}
    assert spec.state_dtype == expected[dtype]


def test_unknown_state_dtype_is_refused() -> None:
    with pytest.raises(ConfigError, match="mamba_ssm_dtype: 'float8'; accepted: float32"):
        read(**{**QWEN35, "mamba_ssm_dtype": "float8"})


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
