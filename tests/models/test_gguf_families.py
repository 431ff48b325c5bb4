"""Architectures whose layers differ: full-size headers reproduce the published totals."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from planner.models.gguf import import_gguf
from tests.models.gguf_headers import (
    BF16,
    F32,
    Q4_K,
    Q8_0,
    Tensors,
    attention,
    experts,
    mlp,
    sizes,
    ssm,
    total_bytes,
    write,
)

File = tuple[dict[str, Any], Tensors]


def moe(count: int, top_k: int, width: int | None = None) -> Any:
    keys = {"expert_count": count, "expert_used_count": top_k}
    return keys if width is None else {**keys, "expert_feed_forward_length": width}


def ends(vocab: int, hidden: int, tied: bool = False, norm: str = "output_norm") -> Tensors:
    tensors: Tensors = [
        ("token_embd.weight", (vocab, hidden), Q8_0),
        (f"{norm}.weight", (hidden,), F32),
    ]
    return tensors if tied else [*tensors, ("output.weight", (vocab, hidden), Q8_0)]


def vectors(block: str, **lengths: int) -> Tensors:
    return [(f"{block}.{name}.weight", (length,), F32) for name, length in lengths.items()]


def mamba2(block: str, hidden: int, heads: int, head_dim: int, state: int, groups: int) -> Tensors:
    inner = heads * head_dim
    conv = inner + 2 * groups * state
    return [
        (f"{block}.ssm_in.weight", (inner + conv + heads, hidden), Q4_K),
        (f"{block}.ssm_conv1d.weight", (conv, 4), F32),
        (f"{block}.ssm_conv1d.bias", (conv,), F32),
        (f"{block}.ssm_dt.bias", (heads,), F32),
        (f"{block}.ssm_a", (heads, 1), F32),
        (f"{block}.ssm_d", (heads, 1), F32),
        (f"{block}.ssm_norm.weight", (groups, inner // groups), F32),
        (f"{block}.ssm_out.weight", (hidden, inner), Q4_K),
    ]


def mamba1(block: str, hidden: int, inner: int, state: int, rank: int) -> Tensors:
    return [
        (f"{block}.ssm_in.weight", (2 * inner, hidden), Q4_K),
        (f"{block}.ssm_conv1d.weight", (inner, 4), F32),
        (f"{block}.ssm_conv1d.bias", (inner,), F32),
        (f"{block}.ssm_x.weight", (rank + 2 * state, inner), Q4_K),
        (f"{block}.ssm_dt.weight", (inner, rank), F32),
        (f"{block}.ssm_dt.bias", (inner,), F32),
        (f"{block}.ssm_a", (inner, state), F32),
        (f"{block}.ssm_d", (inner,), F32),
        (f"{block}.ssm_out.weight", (hidden, inner), Q4_K),
    ]


def gemma3() -> File:
    """gemma-3-27b-it, its text part."""
    tensors = ends(262208, 5376, tied=True)
    for layer in range(62):
        block = f"blk.{layer}"
        tensors += attention(block, 5376, 4096, 2048, Q4_K) + mlp(block, 5376, 21504, Q4_K)
        tensors += vectors(
            block,
            attn_q_norm=128,
            attn_k_norm=128,
            post_attention_norm=5376,
            ffn_norm=5376,
            post_ffw_norm=5376,
        )
    keys = sizes(62, 5376, 21504, 32, 16)
    return {**keys, "attention.key_length": 128, "attention.sliding_window": 1024}, tensors


def gemma4() -> File:
    """gemma-4-E2B: twice as wide where the cache is another layer's, heads by kind of layer."""
    tensors = [
        *ends(262144, 1536, tied=True),
        ("per_layer_token_embd.weight", (262144, 35 * 256), Q8_0),
        ("per_layer_model_proj.weight", (35 * 256, 1536), BF16),
        ("per_layer_proj_norm.weight", (256,), F32),
    ]
    widths = [6144 if layer < 15 else 12288 for layer in range(35)]
    for layer, width in enumerate(widths):
        block, head = f"blk.{layer}", 512 if layer % 5 == 4 else 256
        own = attention(block, 1536, 8 * head, head, Q8_0)
        shared = [
            tensor for tensor in own if ".attn_k." not in tensor[0] and ".attn_v." not in tensor[0]
        ]
        tensors += own if layer < 15 else shared
        tensors += vectors(
            block,
            attn_q_norm=head,
            post_attention_norm=1536,
            ffn_norm=1536,
            post_ffw_norm=1536,
            post_norm=1536,
            layer_output_scale=1,
        )
        tensors += vectors(block, attn_k_norm=head) if layer < 15 else []
        tensors += [
            (f"{block}.inp_gate.weight", (256, 1536), F32),
            (f"{block}.proj.weight", (1536, 256), F32),
        ]
        tensors += mlp(block, 1536, width, Q8_0)
    keys = sizes(35, 1536, widths, 8, 1, embedding_length_per_layer_input=256)
    return {
        **keys,
        "attention.key_length": 512,
        "attention.key_length_swa": 256,
        "attention.sliding_window": 512,
        "attention.shared_kv_layers": 20,
        "attention.sliding_window_pattern": [layer % 5 != 4 for layer in range(35)],
    }, tensors


def mamba() -> File:
    tensors = ends(50280, 2560, tied=True)
    for layer in range(64):
        block = f"blk.{layer}"
        tensors += vectors(block, attn_norm=2560) + mamba1(block, 2560, 5120, 16, 160)
    return sizes(64, 2560, 0, 0, 0, **ssm(4, 5120, 16, 160)), tensors


def codestral() -> File:
    tensors = ends(32768, 4096)
    for layer in range(64):
        block = f"blk.{layer}"
        tensors += vectors(block, attn_norm=4096) + mamba2(block, 4096, 128, 64, 128, 8)
    return sizes(64, 4096, 0, 0, 0, **ssm(4, 8192, 128, 128, 8)), tensors


def jamba() -> File:
    tensors = ends(65536, 4096)
    for layer in range(32):
        block = f"blk.{layer}"
        if layer % 8 == 4:
            tensors += attention(block, 4096, 4096, 1024, Q4_K)
        else:
            tensors += mamba1(block, 4096, 8192, 16, 256)
            tensors += vectors(block, attn_norm=4096, ssm_dt_norm=256, ssm_b_norm=16, ssm_c_norm=16)
        tensors += vectors(block, ffn_norm=4096)
        tensors += (
            experts(block, 4096, 14336, 16, Q4_K) if layer % 2 else mlp(block, 4096, 14336, Q4_K)
        )
    kv_heads = [8 if layer % 8 == 4 else 0 for layer in range(32)]
    keys = sizes(32, 4096, 14336, 32, kv_heads, **ssm(4, 8192, 16, 256), **moe(16, 2))
    return keys, tensors


def falcon_h1() -> File:
    tensors = ends(261120, 5120)
    for layer in range(72):
        block = f"blk.{layer}"
        tensors += attention(block, 5120, 2560, 512, Q4_K) + mamba2(block, 5120, 32, 128, 256, 2)
        tensors += vectors(block, ffn_norm=5120) + mlp(block, 5120, 21504, Q4_K)
    keys = sizes(72, 5120, 21504, 20, 4, **ssm(4, 4096, 256, 32, 2))
    return {**keys, "attention.key_length": 128}, tensors


def granite(hidden: int, width: int, heads: int, kv_heads: int, mambas: int, mix: bool) -> File:
    tensors = ends(100352, hidden, tied=True)
    full = (5, 15, 25, 35)
    for layer in range(40):
        block = f"blk.{layer}"
        tensors += vectors(block, ffn_norm=hidden)
        if layer in full:
            tensors += attention(block, hidden, hidden, kv_heads * (hidden // heads), Q4_K)
        else:
            tensors += vectors(block, attn_norm=hidden)
            tensors += mamba2(block, hidden, mambas, 64, 128, 1)
        if mix:
            tensors += experts(block, hidden, 512, 64, Q4_K) + mlp(
                block, hidden, width, Q4_K, "_shexp"
            )
        else:
            tensors += mlp(block, hidden, width, Q4_K)
    keys = sizes(
        40,
        hidden,
        512 if mix else width,
        heads,
        [kv_heads if layer in full else 0 for layer in range(40)],
        **ssm(4, 64 * mambas, 128, mambas, 1),
    )
    return {**keys, **moe(64, 6)} if mix else keys, tensors


def lfm2(layers: int, full: tuple[int, ...], width: int, mix: bool) -> File:
    tensors = ends(65536, 2048, tied=True, norm="token_embd_norm")
    for layer in range(layers):
        block = f"blk.{layer}"
        tensors += vectors(block, ffn_norm=2048)
        if layer in full:
            tensors += attention(block, 2048, 2048, 512, Q4_K)
            tensors += vectors(block, attn_q_norm=64, attn_k_norm=64)
        else:
            tensors += vectors(block, attn_norm=2048)
            tensors += [
                (f"{block}.shortconv.conv.weight", (2048, 3), F32),
                (f"{block}.shortconv.in_proj.weight", (6144, 2048), Q4_K),
                (f"{block}.shortconv.out_proj.weight", (2048, 2048), Q4_K),
            ]
        if mix and layer >= 2:
            tensors += experts(block, 2048, 1792, 32, Q4_K)
            tensors += [(f"{block}.exp_probs_b.bias", (32,), F32)]
        else:
            tensors += mlp(block, 2048, width, Q4_K)
    kv_heads = [8 if layer in full else 0 for layer in range(layers)]
    keys = sizes(layers, 2048, width, 32, kv_heads, **{"shortconv.l_cache": 3})
    return {**keys, **moe(32, 4, 1792)} if mix else keys, tensors


def kimi_linear() -> File:
    full = (3, 7, 11, 15, 19, 23, 26)
    tensors = ends(163840, 2304)
    for layer in range(27):
        block = f"blk.{layer}"
        tensors += vectors(block, attn_norm=2304, ffn_norm=2304)
        tensors += [(f"{block}.attn_output.weight", (2304, 4096), Q8_0)]
        if layer in full:
            tensors += vectors(block, attn_kv_a_norm=512)
            tensors += [
                (f"{block}.attn_q.weight", (32 * 192, 2304), Q8_0),
                (f"{block}.attn_kv_a_mqa.weight", (576, 2304), Q8_0),
                (f"{block}.attn_k_b.weight", (32, 512, 128), Q8_0),
                (f"{block}.attn_v_b.weight", (32, 128, 512), Q8_0),
            ]
        else:
            for part in "qkv":
                tensors += [
                    (f"{block}.attn_{part}.weight", (4096, 2304), Q4_K),
                    (f"{block}.ssm_conv1d_{part}.weight", (1, 4096, 1, 4), F32),
                ]
            for part in "fg":
                tensors += [
                    (f"{block}.ssm_{part}_a.weight", (128, 2304), Q8_0),
                    (f"{block}.ssm_{part}_b.weight", (4096, 128), Q8_0),
                ]
            tensors += [
                (f"{block}.ssm_beta.weight", (32, 2304), Q8_0),
                (f"{block}.ssm_a", (1, 32), F32),
                (f"{block}.ssm_dt.bias", (4096,), F32),
                (f"{block}.ssm_norm.weight", (128,), F32),
            ]
        if layer:
            tensors += experts(block, 2304, 1024, 256, Q4_K) + mlp(
                block, 2304, 1024, Q4_K, "_shexp"
            )
            tensors += [(f"{block}.exp_probs_b.bias", (256,), F32)]
        else:
            tensors += mlp(block, 2304, 9216, Q4_K)
    kv_heads = [1 if layer in full else 0 for layer in range(27)]
    keys = sizes(
        27,
        2304,
        9216,
        32,
        kv_heads,
        **moe(256, 8, 1024),
        expert_shared_count=1,
        leading_dense_block_count=1,
    )
    return {
        **keys,
        "attention.kv_lora_rank": 512,
        "attention.key_length_mla": 192,
        "attention.value_length_mla": 128,
        "rope.dimension_count": 64,
        "kda.head_dim": 128,
        "ssm.conv_kernel": 4,
    }, tensors


def glm5() -> File:
    """GLM-5: 78 layers with indexers and one prediction layer, which does not count."""
    tensors = ends(154880, 6144)
    for layer in range(79):
        block = f"blk.{layer}"
        tensors += vectors(
            block,
            attn_norm=6144,
            ffn_norm=6144,
            attn_q_a_norm=2048,
            attn_kv_a_norm=512,
            **{"indexer.k_norm": 128},
        )
        tensors += [(f"{block}.indexer.k_norm.bias", (128,), F32)]
        tensors += [
            (f"{block}.{name}.weight", shape, Q8_0)
            for name, shape in {
                "attn_q_a": (2048, 6144),
                "attn_q_b": (64 * 256, 2048),
                "attn_kv_a_mqa": (576, 6144),
                "attn_k_b": (64, 512, 192),
                "attn_v_b": (64, 256, 512),
                "attn_output": (6144, 64 * 256),
                "indexer.proj": (32, 6144),
                "indexer.attn_k": (128, 6144),
                "indexer.attn_q_b": (32 * 128, 2048),
            }.items()
        ]
        if layer < 3:
            tensors += mlp(block, 6144, 12288, Q8_0)
        else:
            tensors += experts(block, 6144, 2048, 256, Q4_K) + mlp(
                block, 6144, 2048, Q8_0, "_shexp"
            )
            tensors += [(f"{block}.exp_probs_b.bias", (256,), F32)]
    tensors += [("blk.78.nextn.eh_proj.weight", (6144, 12288), Q8_0)]
    keys = sizes(
        79,
        6144,
        12288,
        64,
        1,
        **moe(256, 8, 2048),
        expert_shared_count=1,
        leading_dense_block_count=3,
        nextn_predict_layers=1,
    )
    return {
        **keys,
        "attention.q_lora_rank": 2048,
        "attention.kv_lora_rank": 512,
        "attention.key_length_mla": 256,
        "attention.value_length_mla": 256,
        "rope.dimension_count": 64,
        "attention.indexer.head_count": 32,
        "attention.indexer.key_length": 128,
        "attention.indexer.top_k": 2048,
    }, tensors


# Totals of the hub's safetensors or of the reference implementation without image encoders; with
# the corrections of routers, which GGUF files hold.
CASES: list[tuple[str, Callable[[], File], int, float, int]] = [
    ("gemma3", gemma3, 27009346304, 10 * 2 * 16 * 128, 0),
    ("gemma4", gemma4, 4628569379, 3 * 2 * 512, 0),
    ("mamba", mamba, 2768345600, 0, 64 * 5120 * (16 + 4)),
    ("mamba2", codestral, 7285403648, 0, 69730304),
    ("jamba", jamba, 51570323328, 8192, 4587520),
    ("falcon-h1", falcon_h1, 33642516224, 72 * 2 * 4 * 128, 72 * (4096 * 256 + 4 * 5120)),
    ("granitehybrid", lambda: granite(1536, 1024, 12, 4, 48, True), 6939037248, 4096, 14635008),
    ("granitehybrid", lambda: granite(2048, 8192, 32, 8, 64, False), 3191396096, 4096, 19501056),
    ("lfm2", lambda: lfm2(16, (2, 5, 8, 10, 12, 14), 8192, False), 1170340608, 6144, 61440),
    ("lfm2moe", lambda: lfm2(24, (2, 6, 10, 14, 18, 21), 7168, True), 8339930560, 6144, 110592),
    ("kimi-linear", kimi_linear, 49122681728, 7 * 576, 11468800),
    ("glm-dsa", glm5, 743911218432, 54912, 0),
]


@pytest.mark.parametrize(("architecture", "build", "total", "kv", "state"), CASES)
def test_sizes_and_bytes(
    tmp_path: Path, architecture: str, build: Callable[[], File], total: int, kv: float, state: int
) -> None:
    keys, tensors = build()
    spec = import_gguf(write(tmp_path / "m.gguf", architecture, keys, tensors))
    assert spec.total_params == total
    assert spec.kv_elements_per_token == kv
    assert spec.state_elements == state
    counted = [tensor for tensor in tensors if not tensor[0].startswith(f"blk.{spec.layers}.")]
    assert spec.weights_bytes() == pytest.approx(total_bytes(counted), rel=1e-3)
    assert not spec.notes


def test_recurrent_projections_of_kimi_are_the_mixer_s(tmp_path: Path) -> None:
    keys, tensors = kimi_linear()
    spec = import_gguf(write(tmp_path / "m.gguf", "kimi-linear", keys, tensors))
    weights = spec.formats().weights
    assert weights["attention"].id == "q8_0"
    assert 4.5 < weights["mixer"].bits < 8.5
    assert weights["experts"].id == "q4_k"
