"""Hybrids and state-space models: layers and states term by term from their published configs.

Totals of whole checkpoints stand in `test_hybrid_families.py`; here the terms of single layers, the
state of a sequence, its bytes and the FLOPs of a token are written out.
"""

from __future__ import annotations

from typing import Any

import pytest

from planner.models import get_model
from planner.models.attention import Attention
from planner.models.delta import GatedDeltaNet, KimiDelta
from planner.models.recurrent import (
    Convolution,
    LightningAttention,
    Mamba1,
    Mamba2,
    ShortConvolution,
)
from planner.models.rwkv import Rwkv, RwkvChannelMix
from planner.models.spec import ModelSpec, part_params
from tests.models.layers import BF16, layer_kernels, parts_of, read, token_flops

MAMBA: dict[str, Any] = {
    "model_type": "mamba",
    "hidden_size": 2560,
    "num_hidden_layers": 64,
    "vocab_size": 50280,
    "state_size": 16,
}
MAMBA2: dict[str, Any] = {
    "model_type": "mamba2",
    "hidden_size": 4096,
    "num_hidden_layers": 64,
    "num_heads": 128,
    "head_dim": 64,
    "state_size": 128,
    "n_groups": 8,
    "vocab_size": 32768,
    "tie_word_embeddings": False,
}
JAMBA = "ai21labs/Jamba-v0.1"
NEXT = "Qwen/Qwen3-Next-80B-A3B-Instruct"
KIMI = "moonshotai/Kimi-Linear-48B-A3B-Instruct"
MINIMAX = "MiniMaxAI/MiniMax-Text-01"
LFM2 = "FastFlowLM/LFM2-1.2B-NPU2"
NEMOTRON = "nvidia/Nemotron-H-56B-Base-8K"


@pytest.mark.parametrize(
    ("convolution", "params", "elements", "flops"),
    [
        (Convolution(8192, 4), 32_768, 32_768, 65_536),
        (Convolution(8192, 4, bias=True), 40_960, 32_768, 65_536),
        # Three rows of four are kept by the published state of Kimi-K3.
        (Convolution(8192, 4, rows=3), 32_768, 24_576, 65_536),
        (Convolution(2048, 3), 6_144, 6_144, 12_288),
    ],
)
def test_convolution(convolution: Convolution, params: int, elements: int, flops: int) -> None:
    assert convolution.params == params
    assert convolution.elements == elements
    assert convolution.flops == flops


def test_mamba_2_8b_layer_by_layer() -> None:
    """state-spaces/mamba-2.8b-hf: inner 5120, rank 160, state 16.

    In 2560×10240; x to Δ, B and C 5120×192; Δ 160×5120 with a bias; out 5120×2560. Filter of 4 and
    bias; A of 5120×16, D of 5120; one norm.
    """
    spec = read(**MAMBA)
    ((count, mixer),) = parts_of(spec, Mamba1)
    matrices = 26_214_400 + 983_040 + 819_200 + 5_120 + 13_107_200
    vectors = 5 * 5120 + 17 * 5120
    assert count == 64
    assert part_params(mixer) == matrices + vectors
    assert spec.total_params == 50280 * 2560 + 64 * (matrices + vectors + 2560) + 2560
    assert spec.state_elements == 64 * (5120 * 16 + 5120 * 4)


def test_flops_of_a_mamba_2_8b_token() -> None:
    """Its matrices twice; 7·5120·16 of the recurrence and 2·4·5120 of the convolution."""
    kernels = layer_kernels(read(**MAMBA).groups[0])
    assert token_flops(kernels["mamba_scan"]) == 573_440 + 40_960
    products = [k for name, each in kernels.items() if name != "mamba_scan" for k in each]
    assert token_flops(products) == 2 * (26_214_400 + 983_040 + 819_200 + 13_107_200)
    (scan,) = kernels["mamba_scan"]
    # x, z and Δ in, the output out, 5120 each; B and C of 16.
    assert scan.activation_values_per_token == 4 * 5120 + 32
    assert scan.bytes_per_sequence == 2 * 2 * (5120 * 20)


def test_mamba_codestral_7b_layer_by_layer() -> None:
    """In 4096×(8192 + 10240 + 128), out 8192×4096; filter of 4 and bias over 10,240 channels; A, D
    and Δ bias of 128 heads; a gated norm of 8192.
    """
    spec = read(**MAMBA2)
    ((count, mixer),) = parts_of(spec, Mamba2)
    matrices, vectors = 4096 * 18_560 + 8192 * 4096, 5 * 10_240 + 3 * 128 + 8192
    assert count == 64
    assert part_params(mixer) == matrices + vectors
    assert spec.total_params == 2 * 32768 * 4096 + 64 * (matrices + vectors + 4096) + 4096
    assert round(spec.total_params / 1e9, 3) == 7.285
    assert spec.state_elements == 64 * (128 * 64 * 128 + 10_240 * 4)


def layers(spec: ModelSpec, kind: type) -> int:
    return sum(count for count, _ in parts_of(spec, kind))


@pytest.mark.parametrize(
    ("model", "attention", "recurrent", "kind"),
    [
        # One attention in eight layers (Jamba), four (Qwen3-Next, Kimi), eight (MiniMax).
        (JAMBA, 4, 28, Mamba1),
        (NEXT, 12, 36, GatedDeltaNet),
        (MINIMAX, 10, 70, LightningAttention),
        (LFM2, 6, 10, ShortConvolution),
        (NEMOTRON, 10, 54, Mamba2),
    ],
)
def test_layers_of_each_kind(model: str, attention: int, recurrent: int, kind: type) -> None:
    spec = get_model(model)
    assert layers(spec, Attention) == attention
    assert layers(spec, kind) == recurrent
    assert spec.kind.startswith("hybrid")


@pytest.mark.parametrize(
    ("model", "tokens", "values"),
    [
        # 4 layers of 2·8·128; 12 of 2·2·256; 10 of 2·8·128; 6 of 2·8·64; 10 of 2·8·128.
        (JAMBA, 4 * 2048, 28 * 8192 * 20),
        (NEXT, 12 * 1024, 36 * (32 * 128 * 128 + 8192 * 4)),
        (MINIMAX, 10 * 2048, 70 * 64 * 128 * 128),
        (LFM2, 6 * 1024, 10 * 2048 * 3),
        # 7 latent layers of 576; 20 of 32·128² and three convolutions of 4096.
        (KIMI, 7 * 576, 20 * (32 * 128 * 128 + 12288 * 4)),
    ],
)
def test_cache_and_state_of_a_sequence(model: str, tokens: int, values: int) -> None:
    spec = get_model(model)
    assert spec.kv_elements_per_token == tokens
    assert spec.state_elements == values


def test_a_hybrid_overtakes_its_cache_at_a_length() -> None:
    """Qwen3-Next: state of 20,054,016 values against 12,288 a token: equal at 1,632 tokens."""
    spec = get_model(NEXT)
    assert spec.state_elements / spec.kv_elements_per_token == 1632


@pytest.mark.parametrize(
    ("part", "values"),
    [
        # z 8192; x, B and C 10,240; Δ 128; the output 8192.
        (Mamba2(4096, 128, 64, 128, groups=8, taps=4), 26_752),
        # q and k of 2048; v, z and the output of 4096; decay and β of 32 heads.
        (GatedDeltaNet(2048, 16, 32, 128, 128, taps=4), 16_448),
        # q, k, v, decay, gate and output of 4096; β of 32.
        (KimiDelta(2304, 32, 128, taps=4), 24_608),
        # q, k, v, gate and output of 8192.
        (LightningAttention(6144, 64, 128), 40_960),
        # Two gates and x; the output.
        (ShortConvolution(2048, 3), 8_192),
        # r, k, v, gate; the output.
        (Rwkv(2560, 2560, 64), 12_800),
        # RWKV-7 reads w and a as well.
        (Rwkv(2560, 2560, 64, vectors_read=6), 17_920),
    ],
)
def test_values_a_scan_moves_for_a_token(part: Any, values: int) -> None:
    (scan,) = part.core_kernels(BF16)
    assert scan.activation_values_per_token == values
    assert scan.compute == "fp32"
    assert scan.weight_bytes == 0


@pytest.mark.parametrize(
    ("part", "split"),
    [
        # Heads are what can be split; low ranks and their inputs are held by every rank.
        (Mamba2(4096, 128, 64, 128, groups=8, taps=4), {128}),
        (GatedDeltaNet(2048, 16, 32, 128, 128, taps=4), {16, 32}),
        (KimiDelta(2304, 32, 128, taps=4), {1, 32}),
        (LightningAttention(6144, 64, 128), {64}),
        (Rwkv(2560, 2560, 64, low_rank=(64,)), {1, 40}),
    ],
)
def test_how_far_a_recurrent_mixer_can_be_split(part: Any, split: set[int]) -> None:
    assert {linear.ways for linear in part.linears()} == split


def test_gates_of_kimi_delta_attention() -> None:
    """Decay and output gate each pass a rank of 128: 2·(2304·128 + 128·4096); β 2304×32."""
    part = KimiDelta(2304, 32, 128, taps=4)
    by_kernel: dict[str, int] = {}
    for linear in part.linears():
        by_kernel[linear.kernel] = by_kernel.get(linear.kernel, 0) + linear.inputs * linear.outputs
    assert by_kernel == {
        "qkv_proj": 2304 * 3 * 4096,
        "kda_gates": 2 * 2304 * 128 + 2304 * 32,
        "kda_gates_up": 2 * 128 * 4096,
        "o_proj": 4096 * 2304,
    }


def test_rwkv_5_world_3b_layer_by_layer() -> None:
    """Five squares of 2560 in time mixing, 2·2560·8960 and a square in channel mixing.

    Vectors: 8·2560 of mixes, decay, bonus and group norm; 2·2560; two LayerNorms of 2·2560. With a
    head of its own 3.06·10⁹ in all (Peng et al., "Eagle and Finch", 2024; recalled).
    """
    spec = read(
        model_type="rwkv5",
        hidden_size=2560,
        num_hidden_layers=32,
        vocab_size=65536,
        tie_word_embeddings=False,
    )
    ((count, time),) = parts_of(spec, Rwkv)
    ((_, channel),) = parts_of(spec, RwkvChannelMix)
    assert part_params(time) == 5 * 2560**2 + 8 * 2560
    assert part_params(channel) == 2 * 2560 * 8960 + 2560**2 + 2 * 2560
    layer = part_params(time) + part_params(channel) + 4 * 2560
    assert count == 32
    assert spec.total_params == 2 * 65536 * 2560 + 32 * layer + 4 * 2560
    assert round(spec.total_params / 1e9, 2) == 3.06


def test_low_ranks_of_rwkv_6_and_7_are_matrices_of_two_sides() -> None:
    """Rank 64 on 2048: 2048×64 and 64×2048; each pair reads a mix of its own."""
    part = Rwkv(2048, 2048, 64, low_rank=(64, 32))
    pairs = [x for x in part.linears() if x.kernel == "rwkv_low_rank"]
    assert [(x.inputs, x.outputs) for x in pairs] == [
        (2048, 64),
        (64, 2048),
        (2048, 32),
        (32, 2048),
    ]
    assert len({x.operand for x in pairs}) == 2


@pytest.mark.parametrize(
    ("hidden", "mix", "decay"),
    # Eagle and Finch, 2024, appendix: ranks of 32 and 64, twice those from a width of 4096 on.
    [(2048, 32, 64), (4095 // 64 * 64, 32, 64), (4096, 64, 128)],
)
def test_ranks_of_rwkv_6(hidden: int, mix: int, decay: int) -> None:
    spec = read(model_type="rwkv6", hidden_size=hidden, num_hidden_layers=1, vocab_size=1024)
    ((_, time),) = parts_of(spec, Rwkv)
    assert time.low_rank == (*[mix] * 5, decay)


def test_falcon_h1_runs_attention_and_mamba_side_by_side() -> None:
    """Two mixers a layer: each of 72 layers caches and keeps a state."""
    spec = read(
        model_type="falcon_h1",
        vocab_size=261120,
        hidden_size=5120,
        intermediate_size=21504,
        num_hidden_layers=72,
        num_attention_heads=20,
        num_key_value_heads=4,
        head_dim=128,
        mamba_d_ssm=4096,
        mamba_n_heads=32,
        mamba_d_head=128,
        mamba_n_groups=2,
        mamba_d_state=256,
    )
    assert layers(spec, Attention) == layers(spec, Mamba2) == 72
    assert spec.kv_elements_per_token == 72 * 2 * 4 * 128
    assert spec.state_elements == 72 * (4096 * 256 + (4096 + 2 * 2 * 256) * 4)
    ((_, mamba),) = parts_of(spec, Mamba2)
    assert not mamba.gated_norm


@pytest.mark.parametrize(
    ("width", "adjusted"),
    # LFM2: 2/3 of the stated width, rounded up to 256: 6656 → 4437.3 → 4608; 12288 → 8192.
    [(6656, 4608), (12288, 8192), (10240, 6912)],
)
def test_width_of_lfm2(width: int, adjusted: int) -> None:
    config = {
        "model_type": "lfm2",
        "hidden_size": 1024,
        "num_hidden_layers": 2,
        "num_attention_heads": 16,
        "vocab_size": 1024,
        "block_ff_dim": width,
        "full_attn_idxs": [1],
    }
    spec = read(**config)
    ups = layer_kernels(spec.groups[0])["mlp_up"]
    assert token_flops(ups) == 2 * 1024 * 2 * adjusted
    kept = layer_kernels(read(**config, block_auto_adjust_ff_dim=False).groups[0])["mlp_up"]
    assert token_flops(kept) == 2 * 1024 * 2 * width


@pytest.mark.parametrize(
    ("pattern", "mamba", "attention", "mlps"),
    [("M-M*-", 2, 1, 2), ("MMMM", 4, 0, 0), ("M*", 1, 1, 0), ("-*-", 0, 1, 2)],
)
def test_a_pattern_of_nemotron_h(pattern: str, mamba: int, attention: int, mlps: int) -> None:
    """Every letter is a layer of one norm: M Mamba-2, * attention, - an MLP of two matrices."""
    spec = read(
        model_type="nemotron_h",
        hidden_size=1024,
        vocab_size=1000,
        intermediate_size=4096,
        hybrid_override_pattern=pattern,
        num_attention_heads=8,
        num_key_value_heads=2,
        head_dim=128,
        mamba_num_heads=16,
        mamba_head_dim=64,
        ssm_state_size=128,
        n_groups=8,
        conv_kernel=4,
    )
    channels = 1024 + 2 * 8 * 128
    a_mamba = 1024 * (1024 + channels + 16) + 1024 * 1024 + 5 * channels + 3 * 16 + 1024
    an_attention = 2 * 1024 * 1024 + 2 * 1024 * 256
    an_mlp = 2 * 1024 * 4096
    layer_params = mamba * a_mamba + attention * an_attention + mlps * an_mlp
    norms = (len(pattern) + 1) * 1024
    assert spec.total_params == 2 * 1000 * 1024 + layer_params + norms
    assert spec.state_elements == mamba * (1024 * 128 + channels * 4)
    assert spec.kv_elements_per_token == attention * 512
    assert spec.formats().state.id == "fp32"
