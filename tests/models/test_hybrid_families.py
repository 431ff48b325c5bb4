"""Hybrids, sparse and compressed attention: configs in brief, sizes of published checkpoints.

`hub` is the total of a checkpoint's safetensors metadata; where the checkpoint also holds
multi-token-prediction layers it equals total_params + mtp_params.
"""

from __future__ import annotations

import pytest

from planner.models.reader import ConfigError
from tests.models.briefs import GRANITE, NEMOTRON_H, QWEN35, Config, read

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
