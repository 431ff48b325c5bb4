"""Families of a single model or few: layers term by term, and what is special to each."""

from __future__ import annotations

import math
from typing import Any

import pytest

from planner.models.attention import Attention, CrossAttention
from planner.models.caches import State
from planner.models.delta import GatedDeltaNet, KimiDelta
from planner.models.families.gated_latent import FullRankDelta, HyperPair, JointGateLatent
from planner.models.families.gemma_edge import AltUp, LayerScalar
from planner.models.families.jetmoe import KeyValueAttention
from planner.models.families.qwen_indexed import GatedResidual, HashedNgrams
from planner.models.families.step3 import FactorizedAttention
from planner.models.latent import LatentAttention
from planner.models.mlp import Dense, Experts
from planner.models.recurrent import ShortConvolution
from planner.models.spec import part_params
from tests.models.layers import BF16, parts_of, read

SIZES: dict[str, Any] = {
    "hidden_size": 256,
    "num_hidden_layers": 8,
    "num_attention_heads": 8,
    "num_key_value_heads": 2,
    "head_dim": 32,
    "intermediate_size": 1024,
    "vocab_size": 1000,
    "tie_word_embeddings": False,
}
H, V, MLP = 256, 1000, 3 * 256 * 1024
QO, KV = 2 * H * 256, 2 * H * 64
ATTENTION = QO + KV


def test_jetmoe_8b_term_by_term() -> None:
    """jetmoe/jetmoe-8b: 8.5 B with 2.2 B active beside the embedding (Shen et al., 2024).

    Queries and outputs of 16 heads of 128 are experts too, two of eight a token: 32 heads attend.
    """
    spec = read(
        model_type="jetmoe",
        hidden_size=2048,
        num_hidden_layers=24,
        num_attention_heads=32,
        num_key_value_heads=16,
        kv_channels=128,
        intermediate_size=5632,
        num_local_experts=8,
        num_experts_per_tok=2,
        vocab_size=32000,
    )
    heads, mlps = 8 * 2 * 2048 * 2048, 8 * 3 * 2048 * 5632
    routers_and_biases = 2 * (2048 * 8 + 2048)
    key_values = 2 * 2048 * 2048
    layer = heads + mlps + routers_and_biases + key_values + 2 * 2048
    assert spec.total_params == 32000 * 2048 + 24 * layer + 2048
    assert round(spec.total_params / 1e9, 1) == 8.5
    assert round((spec.active_params - spec.embedding_params) / 1e9, 2) == 2.27
    assert spec.kv_elements_per_token == 24 * 2 * 16 * 128
    ((_, attention),) = parts_of(spec, KeyValueAttention)
    assert (attention.heads, attention.kv_heads) == (32, 16)
    assert part_params(attention) == key_values


def test_hrm_text_keeps_caches_of_every_pass() -> None:
    """Two stacks of 4 layers; 2 cycles of (3 low passes and a high one): 8 passes of 4 layers.

    Weights are those of two stacks, caches those of all 32 layers that run.
    """
    spec = read(
        **{**SIZES, "model_type": "hrm_text", "num_hidden_layers": 4, "L_cycles": 3, "H_cycles": 2}
    )
    layer = ATTENTION + H * 256 + MLP
    assert spec.layers == 32
    assert spec.total_params == 2 * V * H + 8 * layer + H
    assert spec.kv_elements_per_token == 32 * 2 * 64
    cycles = {"L_cycles": 3, "H_cycles": 2000, "num_hidden_layers": 4}
    with pytest.raises(ValueError, match="H_cycles: 8000 passes through 4 layers; accepted"):
        read(**{**SIZES, "model_type": "hrm_text", **cycles})


def test_llama_3_2_vision_has_eight_rows_more_and_gates() -> None:
    """Layers 3 and 7 look at the image: norms of q and k of 32 each and two gates."""
    plain = read(**{**SIZES, "model_type": "llama"})
    seeing = read(**{**SIZES, "model_type": "mllama", "cross_attention_layers": [3, 7]})
    assert seeing.total_params - plain.total_params == 8 * H + 2 * (2 * 32 + 2)
    assert seeing.kv_elements_per_token == 6 * 2 * 64
    assert sum(count for count, _ in parts_of(seeing, CrossAttention)) == 2
    assert seeing.lm_head_params == V * H


def test_ernie_vl_decodes_through_the_texts_experts() -> None:
    """Pairs of sizes are the text's and the image's; the first counts. Two shared experts of 64."""
    spec = read(
        **{
            **SIZES,
            "model_type": "ernie4_5_vl_moe_text",
            "moe_num_experts": [8, 4],
            "moe_k": 2,
            "moe_intermediate_size": [64, 32],
            "moe_num_shared_experts": 2,
            "moe_layer_start_index": [1, 2],
            "tie_word_embeddings": True,
        }
    )
    ((count, experts),) = parts_of(spec, Experts)
    assert (count, experts.experts, experts.width) == (7, 8, 64)
    mixture = (8 + 2) * 3 * H * 64 + H * 8 + 8
    assert spec.total_params == V * H + 8 * (ATTENTION + 2 * H) + MLP + 7 * mixture + H


@pytest.mark.parametrize(
    ("changes", "extra"),
    [
        ({}, 0),
        # Two norms more in all eight layers; a gate a head, 256×8, in the four that attend.
        ({"use_sandwich_norm": True}, 8 * 2 * H),
        ({"use_attention_gate": True}, 4 * H * 8),
    ],
)
def test_lfm3_mixes_three_kinds_of_layers(changes: dict[str, Any], extra: int) -> None:
    """Convolutions of 7 taps, 4·256² + 7·256; attention with norms of heads, full or of 256."""
    kinds = ["conv"] * 4 + ["full_attention"] * 2 + ["sliding_attention"] * 2
    plain = {"use_sandwich_norm": False, "use_attention_gate": False}
    spec = read(**{**SIZES, "model_type": "lfm3", "layer_types": kinds, **plain, **changes})
    convolution = 4 * H * H + 7 * H
    layers = 4 * convolution + 4 * (ATTENTION + 64) + 8 * (MLP + 2 * H)
    assert spec.total_params == 2 * V * H + layers + H + extra
    assert spec.state_elements == 4 * 7 * H
    assert spec.kv_elements_per_token == 2 * 2 * 64
    assert spec.window_elements == 2 * 2 * 64 * 256
    assert sum(n for n, _ in parts_of(spec, ShortConvolution)) == 4


@pytest.mark.parametrize(
    ("model_type", "norms"),
    # Norms of q and k over all heads (Olmo) or a head (LARA-Mini).
    [("olmo_hybrid", 256 + 64), ("lara_mini", 64)],
)
def test_delta_hybrids_attend_in_every_fourth_layer(model_type: str, norms: int) -> None:
    spec = read(
        **{
            **SIZES,
            "model_type": model_type,
            "linear_num_key_heads": 4,
            "linear_num_value_heads": 8,
            "linear_key_head_dim": 16,
            "linear_value_head_dim": 32,
            "linear_conv_kernel_dim": 4,
            "num_experts": 4,
            "num_experts_per_tok": 2,
            "moe_intermediate_size": 64,
        }
    )
    assert sum(n for n, _ in parts_of(spec, GatedDeltaNet)) == 6
    ((count, attention),) = parts_of(spec, Attention)
    assert (count, attention.norm_params) == (2, norms)
    assert spec.state_elements == 6 * (8 * 16 * 32 + (2 * 64 + 256) * 4)
    assert spec.kv_elements_per_token == 2 * 128


def test_step_3_factorises_its_queries() -> None:
    """Queries pass a latent of 2048: 7168×2048 and 2048×16384; one head of 256 for k and for v."""
    part = FactorizedAttention(7168, 64, 1, 256, norm_params=2048, q_rank=2048)
    down, key, value, up, out = part.linears()
    assert [(x.inputs, x.outputs) for x in (down, key, value, up, out)] == [
        (7168, 2048),
        (7168, 256),
        (7168, 256),
        (2048, 16384),
        (16384, 7168),
    ]
    assert (down.ways, up.ways) == (1, 64)
    assert part_params(part) == 7168 * 2560 + 2048 * 16384 + 16384 * 7168 + 2048
    # 2·64·512 FLOPs on 512 values of two bytes: 64 FLOP/byte (report, section 3).
    (kernel,) = part.core_kernels(BF16)
    assert kernel.flops_per_cached / kernel.bytes_per_cached == 64


def test_altup_predicts_and_corrects_four_streams() -> None:
    """Router 2048×4, its norm and the output's scale; 16×4 to predict and 4×4 to correct."""
    assert part_params(AltUp(2048, 4)) == 2048 * (4 + 2) + 4 * 4 * (4 + 1) == 12_368
    assert part_params(LayerScalar()) == LayerScalar().buffers() == 1


def test_a_joint_projection_makes_queries_and_gate() -> None:
    """AX-K2: from twice the query's latent to heads of 192 and gates of 128."""
    plain = LatentAttention(1024, 8, 128, 64, 128, 128, q_rank=256)
    joint = JointGateLatent(1024, 8, 128, 64, 128, 128, q_rank=256)
    query, gate = 8 * 192, 8 * 128
    assert part_params(joint) - part_params(plain) == 512 * (query + gate) - 256 * query
    assert joint.caches() == plain.caches()


def test_full_rank_decays_and_gates() -> None:
    """Ling 2.5: 256×512 each where Kimi's have a rank of 64: 256·64 + 64·512."""
    full, low = FullRankDelta(256, 8, 64, 4), KimiDelta(256, 8, 64, 4)
    assert part_params(full) - part_params(low) == 2 * (256 * 512 - 256 * 64 - 64 * 512)
    assert (
        full.states() == low.states() == (State(8 * 64 * 64, 8), State(3 * 512 * 4, 8, 3 * 512 * 3))
    )


def test_streams_weighed_without_mixing() -> None:
    """Hunyuan 4: two weights a stream, their biases and two scales."""
    assert part_params(HyperPair(1024, 4)) == 4 * 1024 * 8 + 8 + 2


def test_low_rank_weights_of_residual_streams() -> None:
    """4 streams of 256 through a rank of 16 and back, 4 weights to write; one norm."""
    assert part_params(GatedResidual(256, 4, 16)) == 1024 * 16 + 16 * 1024 + 1024 * 4 + 1024
    assert part_params(GatedResidual(256, 4, 16, writes=False)) == 2 * 1024 * 16 + 1024


def test_hashed_ngrams_look_back_over_a_dilated_convolution() -> None:
    """Three taps, two tokens apart: 4 rows of 1024 channels; keys of 4 streams, one value."""
    part = HashedNgrams(256, 4, width=128, taps=3, dilation=2)
    assert part.states() == (State(4 * 1024, 1, 4 * 1024),)
    assert part_params(part) == 128 * (1024 + 256) + 3 * 1024 + 3 * 1024
    (scan,) = part.core_kernels(BF16)
    assert scan.flops_per_token == 2 * 3 * 1024
    assert scan.bytes_per_sequence == 2 * 2 * 4 * 1024
    assert part.sharded_heads is None


def test_mimo_slides_with_heads_of_its_own() -> None:
    """5 of 6 layers slide over 128 tokens with twice the KV heads and a sink a head."""
    spec = read(
        **{
            **SIZES,
            "model_type": "mimo_v2_flash",
            "head_dim": 48,
            "v_head_dim": 32,
            "hybrid_layer_pattern": [0, 1, 1, 1, 1, 1, 0, 1],
            "n_routed_experts": 4,
            "num_experts_per_tok": 2,
            "moe_intermediate_size": 64,
            "moe_layer_freq": [0] + [1] * 7,
            "sliding_window": 128,
        }
    )
    parts = parts_of(spec, Attention)
    full, near = ({part.window: part for _, part in parts}[reach] for reach in (math.inf, 128))
    assert sum(count for count, part in parts if part is not near) == 2
    assert (full.kv_heads, near.kv_heads) == (2, 4)
    assert (full.norm_params, near.norm_params) == (0, 8)
    assert spec.kv_elements_per_token == 2 * 2 * (48 + 32)
    assert spec.window_elements == 6 * 4 * (48 + 32) * 128


def test_step_3_5_gates_every_head() -> None:
    spec = read(
        **{
            **SIZES,
            "model_type": "step3p5",
            "moe_intermediate_size": 64,
            "n_routed_experts": 4,
            "num_experts_per_tok": 2,
            "share_expert_dim": 64,
            "attention_other_setting": {"num_attention_heads": 16, "num_attention_groups": 4},
            "sliding_window": 64,
            "num_nextn_predict_layers": None,
        }
    )
    by_window = {part.window: part for _, part in parts_of(spec, Attention)}
    assert by_window[math.inf].heads == 8
    assert (by_window[64].heads, by_window[64].kv_heads) == (16, 4)
    assert all(part.head_gate for part in by_window.values())
    assert sum(n for n, _ in parts_of(spec, Dense) if _.role == "mlp") == 3


@pytest.mark.parametrize(
    ("model_type", "change", "message"),
    [
        ("lfm3", {}, "layer_types: missing; a kind for each layer is needed"),
        ("lfm3", {"layer_types": ["x"] * 8}, "layer_types: accepted: conv, full_attention"),
        ("olmo_hybrid", {}, "linear_num_key_heads: missing"),
        ("mllama", {"cross_attention_layers": 3}, "cross_attention_layers: expected a list"),
        ("ernie4_5_vl_moe_text", {"moe_num_experts": []}, "moe_num_experts: empty; accepted"),
        ("step3_text", {"moe_layers_enum": "a,b"}, "moe_layers_enum: 'a,b'; accepted: numbers"),
    ],
)
def test_what_cannot_be_read_names_the_field(
    model_type: str, change: dict[str, Any], message: str
) -> None:
    fields = {"moe_k": 1, "moe_intermediate_size": 8, "moe_num_experts": 4, "moe_top_k": 1}
    with pytest.raises(ValueError, match=message) as raised:
        read(**{**SIZES, "model_type": model_type, **fields, **change})
    assert "\n" not in str(raised.value)
