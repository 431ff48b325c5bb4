"""Feed-forward networks, products and elementwise kernels on numbers worked by hand.

Sizes are those of published configs: Llama-3.1-8B (4096, 14336), Mixtral-8x7B (4096, 8 experts of
14336, 2 a token), DeepSeek-V3 (7168, 256 experts of 2048, 8 a token), gpt-oss-120b (2880, 128
experts of 2880 with biases, 4 a token), Nemotron 3 Super (4096, 512 experts of 2688 behind 1024).
"""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.kernels import Kernel, expected_distinct_experts
from planner.models.elementwise import activation_kernel, norm_kernel, residual_kernel
from planner.models.gemms import linear_kernels
from planner.models.mlp import Dense, Experts, Projection
from planner.models.parts import Block, Formats, LayerGroup, Linear
from planner.models.rwkv import RwkvChannelMix
from planner.models.spec import part_params
from tests.models.layers import BF16, token_flops, weights

LLAMA = Dense(4096, 14336)
MIXTRAL = Experts(4096, 8, 2, 14336)
V3 = Experts(7168, 256, 8, 2048, correction=256)
GPT_OSS = Experts(2880, 128, 4, 2880, bias=True, router_bias=True)
SUPER = Experts(4096, 512, 22, 2688, gated=False, inner=1024)
LONGCAT = Experts(6144, 512, 12, 2048, router_experts=768)


@pytest.mark.parametrize(
    ("part", "params"),
    [
        # Gate, up and down of 4096×14336.
        (LLAMA, 3 * 58_720_256),
        (replace(LLAMA, gated=False), 2 * 58_720_256),
        # Biases of gate and up (14336 each) and of down (4096).
        (replace(LLAMA, bias=True), 3 * 58_720_256 + 32_768),
        # Two scalars of an activation of its own (Apertus).
        (replace(LLAMA, gated=False, other=2), 2 * 58_720_256 + 2),
        # Eight experts of 176,160,768 and a router of 4096×8.
        (MIXTRAL, 8 * 176_160_768 + 32_768),
        # 256 of 3·7168·2048, a router of 7168×256 and a correction for each.
        (V3, 256 * 44_040_192 + 1_835_008 + 256),
        # 3·2880² and biases of 2·2880 + 2880 each; router 2880×128 with a bias.
        (GPT_OSS, 128 * (24_883_200 + 8_640) + 368_640 + 128),
        # 512 of 2·1024·2688; router 4096×512; down to 1024 and up again.
        (SUPER, 512 * 5_505_024 + 2_097_152 + 2 * 4_194_304),
        # 256 experts of no weights are scored all the same: router 6144×768.
        (LONGCAT, 512 * 37_748_736 + 4_718_592),
        (Projection("laurel", 2048, 64), 131_072),
    ],
)
def test_parameters(part: Dense | Experts | Projection, params: int) -> None:
    assert part_params(part) == params


@pytest.mark.parametrize(
    ("part", "flops", "activations"),
    [
        # 2·2·176,160,768 FLOPs; each of 2 reads 4096, writes 2·14336, reads 14336, writes 4096.
        (MIXTRAL, 704_643_072, 2 * (4096 + 28672 + 14336 + 4096)),
        (V3, 2 * 8 * 44_040_192, 163_840),
        (SUPER, 2 * 22 * 5_505_024, 22 * (1024 + 2688 + 2688 + 1024)),
        # The biases are added too.
        (GPT_OSS, 2 * 4 * 24_891_840, 4 * (2880 + 5760 + 2880 + 2880)),
    ],
)
def test_grouped_products_of_experts(part: Experts, flops: int, activations: int) -> None:
    (kernel,) = part.core_kernels(BF16)
    assert (kernel.name, kernel.kind, kernel.launches) == ("experts", "experts", 2)
    assert kernel.flops_per_token == flops
    assert kernel.activation_values_per_token == activations
    assert (kernel.experts, kernel.top_k) == (part.experts, part.top_k)
    routed = part.routed()
    assert routed is not None
    assert kernel.weight_bytes == 2 * routed.experts * routed.params


@pytest.mark.parametrize(
    ("fmt", "bits"),
    # OCP MX: a scale of 8 bits for 32 values; NVFP4: one for 16; GGML Q4_K: 144 bytes for 256.
    [("bf16", 16), ("fp8", 8), ("mxfp4", 4.25), ("nvfp4", 4.5), ("q4_k", 4.5)],
)
def test_experts_are_read_in_their_own_format(fmt: str, bits: float) -> None:
    (kernel,) = MIXTRAL.core_kernels(Formats.of("bf16", {"experts": fmt}))
    assert kernel.weight_bytes == 8 * 176_160_768 * bits / 8
    router = {k.name: k for k in linear_kernels(MIXTRAL.linears(), BF16)}["router"]
    assert router.weight_bytes == 2 * 32_768
    assert router.weight_ways == 1


@pytest.mark.parametrize(
    ("tokens", "hit"),
    [
        (1, 2.0),
        # 8·(1 − (3/4)²) = 3.5, 8·(1 − (3/4)^4) = 5.46875, 8·(1 − (3/4)^8) = 7.199…
        (2, 3.5),
        (4, 5.46875),
        (8, 8 * (1 - 6561 / 65536)),
        (0, 0.0),
    ],
)
def test_experts_of_mixtral_hit_by_a_few_tokens(tokens: int, hit: float) -> None:
    assert float(expected_distinct_experts(8, 2, tokens)) == pytest.approx(hit, rel=1e-9)


def test_gate_and_up_are_one_launch_that_reads_its_input_once() -> None:
    up, down = linear_kernels(LLAMA.linears(), BF16)
    assert (up.name, down.name) == ("mlp_up", "mlp_down")
    assert up.flops_per_token == 2 * 4096 * 28_672 == 234_881_024
    assert up.weight_bytes == 2 * 4096 * 28_672
    assert up.activation_values_per_token == 4096 + 28_672
    assert down.flops_per_token == 117_440_512
    assert down.activation_values_per_token == 14_336 + 4_096
    assert (up.launches, down.launches) == (1, 1)


def test_shared_experts_are_kernels_of_their_own() -> None:
    shared = Dense(7168, 2048, role="shared_experts")
    names = [kernel.name for kernel in linear_kernels(shared.linears(), BF16)]
    assert names == ["shared_experts_up", "shared_experts_down"]


@pytest.mark.parametrize("bias", [False, True])
def test_a_bias_adds_two_bytes_an_output_and_no_product(bias: bool) -> None:
    linear = Linear("x", 100, 30, "mlp", bias)
    (kernel,) = linear_kernels((linear,), Formats.of("fp8"))
    assert kernel.flops_per_token == 2 * 100 * 30
    assert kernel.weight_bytes == 3000 + 60 * bias
    assert linear.params == 3000 + 30 * bias


def test_linears_of_one_launch_that_read_different_vectors_read_both() -> None:
    same = (Linear("x", 100, 30, "mlp"), Linear("x", 100, 20, "mlp"))
    apart = (same[0], replace(same[1], operand="other"))
    wider = (same[0], replace(same[1], inputs=50))
    for linears, values in ((same, 150), (apart, 250), (wider, 200)):
        (kernel,) = linear_kernels(linears, BF16)
        assert kernel.activation_values_per_token == values
        assert kernel.launches == 1


def test_formats_and_splits_make_laws_of_one_launch() -> None:
    """Three matrices of one launch in two formats and two splits are three laws, one launch."""
    linears = (
        Linear("x", 64, 32, "mlp", ways=4),
        Linear("x", 64, 32, "mlp", ways=2),
        Linear("x", 64, 32, "router", ways=4),
    )
    laws = linear_kernels(linears, Formats.of("fp8", {"router": "bf16"}))
    assert [law.launches for law in laws] == [1, 0, 0]
    assert [law.weight_bytes for law in laws] == [2048, 2048, 4096]
    assert [law.compute for law in laws] == ["fp8", "fp8", "bf16"]
    assert [law.activation_values_per_token for law in laws] == [96, 32, 32]


@given(st.lists(st.tuples(st.integers(1, 512), st.integers(1, 512)), min_size=1, max_size=6))
def test_products_keep_every_weight_and_every_flop(sizes: list[tuple[int, int]]) -> None:
    linears = tuple(
        Linear(f"k{index % 3}", inputs, outputs, "mlp", ways=index % 2 + 1)
        for index, (inputs, outputs) in enumerate(sizes)
    )
    kernels = list(linear_kernels(linears, BF16))
    matrix = sum(inputs * outputs for inputs, outputs in sizes)
    assert token_flops(kernels) == 2 * matrix
    assert weights(kernels) == 2 * matrix
    assert sum(kernel.launches for kernel in kernels) == min(3, len(sizes))


def work(kernel: Kernel) -> tuple[float, float]:
    return kernel.flops_per_token, kernel.activation_values_per_token


def test_elementwise_kernels_of_a_layer() -> None:
    """Of 4096 values: a norm 6 FLOPs, one read and one written; a sum 1 FLOP, two read."""
    assert work(norm_kernel(4096)) == (6 * 4096, 2 * 4096)
    assert work(residual_kernel(4096)) == (4096, 3 * 4096)
    for kernel in (norm_kernel(64), residual_kernel(64)):
        assert kernel.kind == "elementwise"
        assert kernel.weight_bytes == kernel.bytes_per_cached == kernel.bytes_per_sequence == 0


@pytest.mark.parametrize(
    ("mlps", "flops", "values"),
    [
        # Gated: 5 FLOPs, gate and up read, one written.
        ((LLAMA,), 5 * 14_336, 3 * 14_336),
        # Not gated: 4 FLOPs, one read, one written.
        ((replace(LLAMA, gated=False),), 4 * 14_336, 2 * 14_336),
        # Eight experts of 2048 and a shared one.
        ((V3, Dense(7168, 2048, role="shared_experts")), 5 * 9 * 2048, 3 * 9 * 2048),
        ((RwkvChannelMix(2560, 8960),), 4 * 8_960, 2 * 8_960),
    ],
)
def test_activations_of_a_layer(mlps: tuple[Dense | Experts, ...], flops: int, values: int) -> None:
    kernel = activation_kernel(LayerGroup(1, Block((), mlps)))
    assert kernel is not None
    assert work(kernel) == (flops, values)


def test_a_layer_without_feed_forward_network_has_no_activation() -> None:
    assert activation_kernel(LayerGroup(1, Block())) is None
    assert activation_kernel(LayerGroup(1, Block((), (Projection("x", 8, 8),)))) is None


def test_a_projection_is_held_whole_by_every_rank() -> None:
    (kernel,) = linear_kernels(Projection("altup", 2048, 64, "attention").linears(), BF16)
    assert (kernel.weight_ways, kernel.flop_ways) == (1, 1)
    assert math.isinf(linear_kernels(LLAMA.linears(), BF16)[0].weight_ways)
