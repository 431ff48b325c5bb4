"""GGUF import: sizes, mixes and refusals, on headers of full-size models in published names."""

from __future__ import annotations

from pathlib import Path

import pytest

from planner.models.gguf import import_gguf
from tests.models.gguf_headers import (
    BF16,
    F32,
    LLAMA_KEYS,
    MXFP4,
    Q4_0,
    Q4_K,
    Q6_K,
    Q8_0,
    Tensors,
    attention,
    experts,
    llama_tensors,
    mlp,
    total_bytes,
    write,
)


def test_llama_counts_as_its_config_does(tmp_path: Path) -> None:
    tensors = llama_tensors()
    path = write(
        tmp_path / "Meta-Llama-3-8B.Q4_K_M.gguf",
        "llama",
        LLAMA_KEYS,
        tensors,
        general__file_type=15,
    )
    spec = import_gguf(path)
    assert spec.total_params == 8030261248  # hub total of meta-llama/Meta-Llama-3-8B
    assert spec.kv_elements_per_token == 32 * 2 * 8 * 128
    assert not spec.tied_embeddings
    assert spec.max_context == 8192
    assert spec.id == "Meta-Llama-3-8B.Q4_K_M"
    assert spec.quantization.id == "q4_k_m"
    assert spec.weights_bytes() == pytest.approx(total_bytes(tensors) - 256, rel=1e-3)
    assert not spec.notes


def test_a_role_of_one_type_keeps_its_name_and_a_mix_its_mean(tmp_path: Path) -> None:
    spec = import_gguf(write(tmp_path / "m.gguf", "llama", LLAMA_KEYS, llama_tensors()))
    weights = spec.formats().weights
    assert weights["embedding"].id == "q4_k"
    assert weights["head"].id == "q6_k"
    assert weights["router"].id == "fp16"
    mean = (2 * 4.5 + (4.5 + 6.5625) / 2) / 3  # gate and up in Q4_K, half of down in Q6_K
    assert weights["mlp"].bits == pytest.approx(mean)


def test_no_output_tensor_is_a_tied_head(tmp_path: Path) -> None:
    tensors = [tensor for tensor in llama_tensors() if tensor[0] != "output.weight"]
    spec = import_gguf(write(tmp_path / "m.gguf", "llama", LLAMA_KEYS, tensors))
    assert spec.tied_embeddings
    assert spec.weights_bytes() == pytest.approx(total_bytes(tensors), rel=1e-3)


def test_qwen3moe(tmp_path: Path) -> None:
    """Qwen3-30B-A3B: 30532122624 parameters in the hub's safetensors."""
    tensors: Tensors = [
        ("token_embd.weight", (151936, 2048), Q8_0),
        ("output_norm.weight", (2048,), F32),
        ("output.weight", (151936, 2048), Q8_0),
    ]
    for layer in range(48):
        block = f"blk.{layer}"
        tensors += attention(block, 2048, 4096, 512, Q8_0)
        tensors += [
            (f"{block}.attn_q_norm.weight", (128,), F32),
            (f"{block}.attn_k_norm.weight", (128,), F32),
            (f"{block}.ffn_norm.weight", (2048,), F32),
        ]
        tensors += experts(block, 2048, 768, 128, Q4_0)
    keys = {
        "block_count": 48,
        "context_length": 40960,
        "embedding_length": 2048,
        "feed_forward_length": 6144,
        "attention.head_count": 32,
        "attention.head_count_kv": 4,
        "attention.key_length": 128,
        "attention.value_length": 128,
        "expert_count": 128,
        "expert_used_count": 8,
        "expert_feed_forward_length": 768,
    }
    spec = import_gguf(write(tmp_path / "m.gguf", "qwen3moe", keys, tensors))
    assert spec.total_params == 30532122624
    assert spec.active_params == 3353032704
    assert spec.formats().weights["experts"].id == "q4_0"
    assert spec.formats().weights["router"].id == "fp32"
    assert spec.weights_bytes() == pytest.approx(total_bytes(tensors), rel=1e-3)
    assert not spec.notes


def test_gpt_oss(tmp_path: Path) -> None:
    """gpt-oss-20b: 20914757184 parameters; half the layers keep a window of 128."""
    tensors: Tensors = [
        ("token_embd.weight", (201088, 2880), Q8_0),
        ("output_norm.weight", (2880,), F32),
        ("output.weight", (201088, 2880), Q8_0),
    ]
    for layer in range(24):
        block = f"blk.{layer}"
        tensors += attention(block, 2880, 4096, 512, Q8_0)
        tensors += [
            (f"{block}.attn_{part}.bias", (width,), F32)
            for part, width in (("q", 4096), ("k", 512), ("v", 512), ("output", 2880))
        ]
        tensors += [
            (f"{block}.attn_sinks.weight", (64,), F32),
            (f"{block}.post_attention_norm.weight", (2880,), F32),
            (f"{block}.ffn_gate_inp.bias", (32,), F32),
        ]
        tensors += experts(block, 2880, 2880, 32, MXFP4)
        tensors += [
            (f"{block}.ffn_{part}_exps.bias", (32, 2880), F32) for part in ("gate", "up", "down")
        ]
    keys = {
        "block_count": 24,
        "context_length": 131072,
        "embedding_length": 2880,
        "feed_forward_length": 2880,
        "attention.head_count": 64,
        "attention.head_count_kv": 8,
        "attention.key_length": 64,
        "attention.value_length": 64,
        "attention.sliding_window": 128,
        "expert_count": 32,
        "expert_used_count": 4,
        "expert_feed_forward_length": 2880,
    }
    spec = import_gguf(write(tmp_path / "m.gguf", "gpt-oss", keys, tensors))
    assert spec.total_params == 20914757184
    assert spec.kv_elements_per_token == 12 * 2 * 8 * 64
    assert spec.formats().weights["experts"].id == "mxfp4"
    assert spec.weights_bytes() == pytest.approx(total_bytes(tensors), rel=1e-3)


def deepseek2_tensors() -> Tensors:
    """DeepSeek-V2-Lite, its kv_b_proj split in two as files from 2025 on store it."""
    tensors: Tensors = [
        ("token_embd.weight", (102400, 2048), Q4_K),
        ("output_norm.weight", (2048,), F32),
        ("output.weight", (102400, 2048), Q6_K),
    ]
    for layer in range(27):
        block = f"blk.{layer}"
        tensors += [
            (f"{block}.attn_norm.weight", (2048,), F32),
            (f"{block}.attn_q.weight", (16 * 192, 2048), Q4_K),
            (f"{block}.attn_kv_a_mqa.weight", (576, 2048), Q4_K),
            (f"{block}.attn_kv_a_norm.weight", (512,), F32),
            (f"{block}.attn_k_b.weight", (16, 512, 128), Q8_0),
            (f"{block}.attn_v_b.weight", (16, 128, 512), Q8_0),
            (f"{block}.attn_output.weight", (2048, 2048), Q4_K),
            (f"{block}.ffn_norm.weight", (2048,), F32),
        ]
        if layer == 0:
            tensors += mlp(block, 2048, 10944, Q4_K)
        else:
            tensors += experts(block, 2048, 1408, 64, Q4_K)
            tensors += mlp(block, 2048, 2816, Q4_K, "_shexp")
    return tensors


@pytest.mark.parametrize("absorbed", [True, False])
def test_deepseek2(tmp_path: Path, absorbed: bool) -> None:
    """15706484224 parameters in the hub's safetensors; 27 × 576 values a token."""
    lengths = (
        {
            "attention.key_length": 576,
            "attention.value_length": 512,
            "attention.key_length_mla": 192,
            "attention.value_length_mla": 128,
        }
        if absorbed
        else {"attention.key_length": 192, "attention.value_length": 128}
    )
    keys = {
        "block_count": 27,
        "context_length": 163840,
        "embedding_length": 2048,
        "feed_forward_length": 10944,
        "attention.head_count": 16,
        "attention.head_count_kv": 1 if absorbed else 16,
        "attention.kv_lora_rank": 512,
        "rope.dimension_count": 64,
        "expert_count": 64,
        "expert_used_count": 6,
        "expert_feed_forward_length": 1408,
        "expert_shared_count": 2,
        "leading_dense_block_count": 1,
        **lengths,
    }
    tensors = deepseek2_tensors()
    spec = import_gguf(write(tmp_path / "m.gguf", "deepseek2", keys, tensors))
    assert spec.total_params == 15706484224
    assert spec.kv_elements_per_token == 27 * 576
    assert spec.weights_bytes() == pytest.approx(total_bytes(tensors), rel=1e-3)
    assert not spec.notes


def test_hybrid_layers_are_told_by_their_tensors(tmp_path: Path) -> None:
    """Nemotron-H-8B: 8100852736 parameters in the hub's safetensors."""
    pattern = "M-M-M-M*-M-M-M-M-M*-M-M-M-M-M*-M-M-M-M-M*-M-M-M-M-M-"
    tensors: Tensors = [
        ("token_embd.weight", (131072, 4096), Q8_0),
        ("output_norm.weight", (4096,), F32),
        ("output.weight", (131072, 4096), Q8_0),
    ]
    for layer, kind in enumerate(pattern):
        block = f"blk.{layer}"
        if kind == "*":
            tensors += attention(block, 4096, 4096, 1024, Q8_0)
            continue
        tensors += [(f"{block}.attn_norm.weight", (4096,), F32)]
        if kind == "-":
            tensors += [
                (f"{block}.ffn_up.weight", (21504, 4096), Q8_0),
                (f"{block}.ffn_down.weight", (4096, 21504), Q8_0),
            ]
        else:
            tensors += [
                (f"{block}.ssm_in.weight", (8192 + 10240 + 128, 4096), Q8_0),
                (f"{block}.ssm_conv1d.weight", (10240, 4), F32),
                (f"{block}.ssm_conv1d.bias", (10240,), F32),
                (f"{block}.ssm_dt.bias", (128,), F32),
                (f"{block}.ssm_a", (128, 1), F32),
                (f"{block}.ssm_d", (128, 1), F32),
                (f"{block}.ssm_norm.weight", (8, 1024), F32),
                (f"{block}.ssm_out.weight", (4096, 8192), Q8_0),
            ]
    keys = {
        "block_count": 52,
        "context_length": 8192,
        "embedding_length": 4096,
        "feed_forward_length": [21504 if kind == "-" else 0 for kind in pattern],
        "attention.head_count": 32,
        "attention.head_count_kv": [8 if kind == "*" else 0 for kind in pattern],
        "attention.key_length": 128,
        "ssm.conv_kernel": 4,
        "ssm.inner_size": 8192,
        "ssm.state_size": 128,
        "ssm.time_step_rank": 128,
        "ssm.group_count": 8,
    }
    spec = import_gguf(write(tmp_path / "m.gguf", "nemotron_h", keys, tensors))
    assert spec.total_params == 8100852736
    assert spec.kv_elements_per_token == 4 * 2 * 8 * 128
    assert spec.state_elements == 24 * (128 * 64 * 128 + 10240 * 4)
    assert spec.formats().weights["mixer"].id == "q8_0"
    assert spec.weights_bytes() == pytest.approx(total_bytes(tensors), rel=1e-3)
    assert not spec.notes


def test_delta_projections_are_the_mixer_s_though_named_like_attention(tmp_path: Path) -> None:
    """Qwen3.5 of 27B: 48 of 64 layers are gated delta; all linears in one type."""
    hidden, layers = 5120, 64
    tensors: Tensors = [
        ("token_embd.weight", (248320, hidden), Q4_K),
        ("output_norm.weight", (hidden,), F32),
        ("output.weight", (248320, hidden), Q6_K),
    ]
    for layer in range(layers):
        block = f"blk.{layer}"
        if layer % 4 == 3:
            tensors += attention(block, hidden, 6144, 1024, Q4_K)
            tensors[-4] = (f"{block}.attn_q.weight", (2 * 6144, hidden), Q4_K)
            tensors += [
                (f"{block}.attn_q_norm.weight", (256,), F32),
                (f"{block}.attn_k_norm.weight", (256,), F32),
            ]
        else:
            tensors += [
                (f"{block}.attn_norm.weight", (hidden,), F32),
                (f"{block}.attn_qkv.weight", (10240, hidden), Q8_0),
                (f"{block}.attn_gate.weight", (6144, hidden), Q8_0),
                (f"{block}.ssm_beta.weight", (48, hidden), F32),
                (f"{block}.ssm_alpha.weight", (48, hidden), F32),
                (f"{block}.ssm_conv1d.weight", (10240, 4), F32),
                (f"{block}.ssm_dt.bias", (48,), F32),
                (f"{block}.ssm_a", (48,), F32),
                (f"{block}.ssm_norm.weight", (128,), F32),
                (f"{block}.ssm_out.weight", (hidden, 6144), Q8_0),
            ]
        tensors += [(f"{block}.post_attention_norm.weight", (hidden,), F32)]
        tensors += mlp(block, hidden, 17408, Q4_K)
    keys = {
        "block_count": layers,
        "context_length": 262144,
        "embedding_length": hidden,
        "feed_forward_length": 17408,
        "attention.head_count": 24,
        "attention.head_count_kv": 4,
        "attention.key_length": 256,
        "attention.value_length": 256,
        "ssm.conv_kernel": 4,
        "ssm.inner_size": 6144,
        "ssm.state_size": 128,
        "ssm.time_step_rank": 48,
        "ssm.group_count": 16,
        "full_attention_interval": 4,
    }
    spec = import_gguf(write(tmp_path / "m.gguf", "qwen35", keys, tensors))
    assert spec.total_params == 27356728560 - 460730096  # meta count less its vision tower
    assert spec.formats().weights["mixer"].id == "q8_0"
    assert spec.formats().weights["attention"].id == "q4_k"
    assert spec.weights_bytes() == pytest.approx(total_bytes(tensors), rel=1e-3)


def test_prediction_layers_are_beside_the_network(tmp_path: Path) -> None:
    """A file with a next-token block (blk.2 here) has one block more than layers."""
    tensors: Tensors = [
        ("token_embd.weight", (1000, 512), BF16),
        ("output_norm.weight", (512,), F32),
        ("output.weight", (1000, 512), BF16),
    ]
    for layer in range(3):
        block = f"blk.{layer}"
        tensors += attention(block, 512, 512, 256, BF16)
        tensors += [(f"{block}.post_attention_norm.weight", (512,), F32)]
        tensors += experts(block, 512, 256, 16, BF16)
        tensors += [(f"{block}.exp_probs_b.bias", (16,), F32)]
    tensors += [("blk.2.nextn.eh_proj.weight", (512, 1024), BF16)]
    keys = {
        "block_count": 3,
        "context_length": 4096,
        "embedding_length": 512,
        "feed_forward_length": 1024,
        "attention.head_count": 4,
        "attention.head_count_kv": 2,
        "attention.key_length": 128,
        "expert_count": 16,
        "expert_used_count": 2,
        "expert_feed_forward_length": 256,
        "expert_shared_count": 0,
        "nextn_predict_layers": 1,
    }
    spec = import_gguf(write(tmp_path / "m.gguf", "glm4moe", keys, tensors))
    assert spec.layers == 2
    assert spec.mtp_params > 0
    counted = [tensor for tensor in tensors if not tensor[0].startswith("blk.2.")]
    assert spec.weights_bytes() == pytest.approx(total_bytes(counted), rel=1e-3)
    assert spec.dtype == "bf16"
