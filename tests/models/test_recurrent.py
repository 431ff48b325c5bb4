"""Recurrent mixers: states and parameters against the reference implementation, FLOPs by hand."""

from __future__ import annotations

import math

import pytest

from planner.models.delta import GatedDeltaNet, KimiDelta
from planner.models.parts import Formats, Linear, Part
from planner.models.recurrent import (
    Convolution,
    LightningAttention,
    Mamba1,
    Mamba2,
    ShortConvolution,
)
from planner.models.rwkv import Rwkv, RwkvChannelMix
from planner.models.spec import part_params

JAMBA = Mamba1(4096, 8192, 16, 256, Convolution(8192, 4, True), norm_params=256 + 2 * 16)
CODESTRAL = Mamba2(4096, heads=128, head_dim=64, state=128, groups=8, taps=4)
QWEN3_NEXT = GatedDeltaNet(2048, key_heads=16, value_heads=32, key_dim=128, value_dim=128, taps=4)
KIMI = KimiDelta(2304, heads=32, head_dim=128, taps=4)
MINIMAX = LightningAttention(6144, heads=64, head_dim=128)
LFM2 = ShortConvolution(2048, taps=3)
RWKV5 = Rwkv(2560, 2560, 64)
ALL = (JAMBA, CODESTRAL, QWEN3_NEXT, KIMI, MINIMAX, LFM2, RWKV5)


# Values per layer that transformers 5.24.0's cache object holds after a forward on the meta device,
# over the layers of its kind: Jamba 4587520 on 28, Codestral 69730304 on 64, Qwen3-Next 20054016 on
# 36, Kimi-Linear 11468800 on 20, LFM2-1.2B 61440 on 10. MiniMax by hand: heads × head_dim².
@pytest.mark.parametrize(
    ("part", "elements"),
    [
        (JAMBA, 4587520 // 28),
        (CODESTRAL, 69730304 // 64),
        (QWEN3_NEXT, 20054016 // 36),
        (KIMI, 11468800 // 20),
        (MINIMAX, 64 * 128 * 128),
        (LFM2, 61440 // 10),
        (RWKV5, 40 * 64 * 64 + 2 * 2560),
    ],
)
def test_state_of_a_sequence(part: Part, elements: int) -> None:
    assert sum(state.elements for state in part.states()) == elements


def test_llama_cpp_keeps_one_convolution_row_less() -> None:
    """Its log for a Qwen3.5 of 64 layers (48 recurrent): R 5.62 + S 144.00 MiB in float32."""
    part = GatedDeltaNet(5120, key_heads=16, value_heads=48, key_dim=128, value_dim=128, taps=4)
    matrices, window = (state.elements for state in part.states())
    assert 48 * matrices * 4 == 144 * 2**20
    assert round(48 * window * 4 / 2**20 * 3 / 4, 2) == 5.62


def test_a_convolution_may_keep_fewer_rows() -> None:
    short = KimiDelta(7168, heads=96, head_dim=128, taps=4, full_rank_gate=True, conv_rows=3)
    # Kimi-K3 by the published layout: 96 × 128² and three convolutions of 96·128 channels × 3.
    assert sum(state.elements for state in short.states()) == 96 * 128**2 + 3 * 96 * 128 * 3


@pytest.mark.parametrize(
    ("part", "flops"),
    [
        (JAMBA, 7 * 8192 * 16 + 2 * 4 * 8192),
        (CODESTRAL, 5 * 128 * 64 * 128 + 2 * 4 * (8192 + 2 * 8 * 128)),
        (QWEN3_NEXT, 7 * 32 * 128 * 128 + 2 * 4 * 8192),
        (KIMI, 7 * 32 * 128 * 128 + 2 * 4 * 3 * 4096),
        (MINIMAX, 5 * 64 * 128 * 128),
        (LFM2, 2 * 3 * 2048 + 2 * 2048),
        (RWKV5, 7 * 40 * 64 * 64),
    ],
)
def test_scan_flops_of_a_token(part: Part, flops: float) -> None:
    (scan,) = part.core_kernels(Formats.of("bf16"))
    assert scan.kind == "scan"
    assert scan.flops_per_token == flops


@pytest.mark.parametrize("part", ALL)
@pytest.mark.parametrize(("state", "value_bytes"), [("bf16", 2), ("fp32", 4)])
def test_a_scan_reads_and_writes_the_state_once(part: Part, state: str, value_bytes: int) -> None:
    (scan,) = part.core_kernels(Formats.of("bf16", state=state))
    elements = sum(item.elements for item in part.states())
    assert scan.bytes_per_sequence == 2 * elements * value_bytes
    assert scan.bytes_per_cached == 0
    assert not part.caches()


@pytest.mark.parametrize("part", ALL)
def test_a_scan_cannot_be_split_beyond_its_heads(part: Part) -> None:
    (scan,) = part.core_kernels(Formats.of("bf16"))
    assert scan.cache_ways == scan.flop_ways == max(state.ways for state in part.states())
    assert (
        scan.cache_ways
        == {
            JAMBA: math.inf,
            CODESTRAL: 128,
            QWEN3_NEXT: 32,
            KIMI: 32,
            MINIMAX: 64,
            LFM2: math.inf,
            RWKV5: 40,
        }[part]
    )


def matrix(linears: tuple[Linear, ...]) -> int:
    return sum(linear.inputs * linear.outputs for linear in linears)


@pytest.mark.parametrize(
    ("part", "matrices", "others"),
    [
        # MambaMixer: in, x, dt (with bias), out; conv with bias, A, D, norms of dt, B and C.
        (
            JAMBA,
            4096 * 16384 + 8192 * 288 + 256 * 8192 + 8192 * 4096,
            8192 + 8192 * 5 + 8192 * 17 + 288,
        ),
        # Mamba2Mixer: in (z, x, B, C, dt) and out; conv, A, D, dt_bias, gated norm.
        (CODESTRAL, 4096 * (8192 + 10240 + 128) + 8192 * 4096, 10240 * 5 + 3 * 128 + 8192),
        # Qwen3NextGatedDeltaNet: qkvz, ba, out; conv without bias, A, dt_bias, norm.
        (QWEN3_NEXT, 2048 * 12288 + 2048 * 64 + 4096 * 2048, 8192 * 4 + 2 * 32 + 128),
        # KimiLinearDeltaAttention: q, k, v, o; f and g of rank 128; b; convs, A, dt_bias, norm.
        (
            KIMI,
            4 * 2304 * 4096 + 2 * (2304 * 128 + 128 * 4096) + 2304 * 32,
            3 * 4096 * 4 + 32 + 4096 + 128,
        ),
        # MiniMaxLightningAttention: qkv, output gate, out; norm.
        (MINIMAX, 5 * 6144 * 8192, 8192),
        # Lfm2ShortConv: in (three parts) and out; conv.
        (LFM2, 4 * 2048 * 2048, 2048 * 3),
    ],
)
def test_parameters_of_a_mixer(part: Part, matrices: int, others: int) -> None:
    assert matrix(part.linears()) == matrices
    assert part_params(part) == matrices + others


def test_a_full_rank_gate_replaces_its_two_low_ranks() -> None:
    full = KimiDelta(7168, heads=96, head_dim=128, taps=4, full_rank_gate=True)
    low = KimiDelta(7168, heads=96, head_dim=128, taps=4)
    assert part_params(full) - part_params(low) == 7168 * 12288 - 7168 * 128 - 128 * 12288


def test_channel_mixing_without_receptance_is_two_matrices() -> None:
    assert matrix(RwkvChannelMix(2560, 8960).linears()) == 2 * 2560 * 8960 + 2560 * 2560
    assert matrix(RwkvChannelMix(2560, 8960, receptance=False).linears()) == 2 * 2560 * 8960


def test_gates_of_delta_rules_are_no_target_of_quantisation() -> None:
    """FP8 and FP4 checkpoints of Qwen3.5 keep in_proj_a and in_proj_b in 16 bits."""
    roles = {linear.kernel: linear.role for linear in QWEN3_NEXT.linears()}
    assert roles == {"delta_in": "mixer", "delta_gates": "other", "delta_out": "mixer"}
