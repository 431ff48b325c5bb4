"""Softmax attention and its indexer: matrices, caches and passes on numbers worked by hand.

Sizes are those of published configs: Llama-3.1-8B (hidden 4096, 32 heads of 128, 8 KV heads),
Qwen2.5-7B (3584, 28 heads of 128, 4 KV heads, biases), Qwen3-Next-80B (2048, 16 heads of 256, 2 KV
heads, output gate), MiMo-V2-Flash (4096, 64 heads of 192 with values of 128, 4 KV heads).
"""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.models.attention import Attention, CrossAttention, Indexer
from planner.models.caches import Cache
from planner.models.gemms import linear_kernels
from planner.models.parts import Formats
from planner.models.spec import part_params
from tests.models.layers import BF16, token_flops, weights

LLAMA = Attention(4096, heads=32, kv_heads=8, head_dim=128)
QWEN = Attention(3584, heads=28, kv_heads=4, head_dim=128, qkv_bias=True)
NEXT = Attention(2048, heads=16, kv_heads=2, head_dim=256, output_gate=True, norm_params=512)
MIMO = Attention(4096, heads=64, kv_heads=4, head_dim=192, v_head_dim=128)
STEP = Attention(4096, heads=64, kv_heads=8, head_dim=128, head_gate=True)


@pytest.mark.parametrize(
    ("part", "params"),
    [
        # q 4096×4096, k and v 4096×1024 each, output 4096×4096.
        (LLAMA, 16_777_216 + 2 * 4_194_304 + 16_777_216),
        # q 3584×3584 and k, v 3584×512 with biases of 3584 + 512 + 512; output without one.
        (QWEN, 2 * 12_845_056 + 2 * 1_835_008 + 4_608),
        # q and its gate 2048×4096 each, k and v 2048×512 each, output 4096×2048; two norms of 256.
        (NEXT, 3 * 8_388_608 + 2 * 1_048_576 + 512),
        # q 4096×12288, k 4096×768, v 4096×512, output 8192×4096.
        (MIMO, 50_331_648 + 3_145_728 + 2_097_152 + 33_554_432),
        # One gate a head: 4096×64 more than q, k, v and output of 8192, 1024, 1024 and 8192.
        (STEP, 2 * 33_554_432 + 2 * 4_194_304 + 262_144),
        # Biases everywhere: 4096 + 1024 + 1024 of q, k and v, 4096 of the output.
        (replace(LLAMA, qkv_bias=True, out_bias=True), 41_943_040 + 6_144 + 4_096),
        # Values are the keys' projection: one matrix of 4096×1024 fewer.
        (replace(LLAMA, own_v=False), 41_943_040 - 4_194_304),
        # Keys and values of another layer: neither.
        (replace(LLAMA, own_kv=False), 2 * 16_777_216),
    ],
)
def test_parameters(part: Attention, params: int) -> None:
    assert part_params(part) == params


def test_a_gate_shares_the_queries_bias_only_where_it_has_one() -> None:
    """16 heads of 256: q has a bias of 4096, and with its gate one of 8192."""
    biased = replace(NEXT, qkv_bias=True)
    plain = part_params(NEXT) + 2 * 512  # k and v
    assert part_params(biased) == plain + 8192
    assert part_params(replace(biased, gate_bias=False)) == plain + 4096


@pytest.mark.parametrize(
    ("part", "values", "ways"),
    [
        (LLAMA, 8 * 2 * 128, 8),
        (QWEN, 1024, 4),
        (NEXT, 2 * 2 * 256, 2),
        (MIMO, 4 * (192 + 128), 4),
        # Multi-query attention keeps one head; multi-head all of them (Shazeer, 2019).
        (replace(LLAMA, kv_heads=1), 256, 1),
        (replace(LLAMA, kv_heads=32), 8192, 32),
        # The values are cached as well as the keys they equal.
        (replace(LLAMA, own_v=False), 2048, 8),
    ],
)
def test_cache_of_a_token(part: Attention, values: int, ways: int) -> None:
    assert part.caches() == (Cache(values, ways),)
    assert part.states() == ()


def test_a_layer_that_borrows_its_cache_still_reads_it() -> None:
    """Gemma-3n's last layers: no cache of their own, all the traffic of one."""
    borrowing = replace(LLAMA, own_kv=False)
    assert borrowing.caches() == ()
    assert borrowing.core_kernels(BF16) == LLAMA.core_kernels(BF16)


@pytest.mark.parametrize(
    ("part", "flops", "moved", "activations"),
    [
        # 2·32·(128 + 128) FLOPs and 8·(128 + 128)·2 bytes a cached token; q and output of 4096.
        (LLAMA, 16_384, 4_096, 8_192),
        (QWEN, 2 * 28 * 256, 4 * 256 * 2, 28 * 256),
        (NEXT, 2 * 16 * 512, 2 * 512 * 2, 16 * 512),
        # Scores cost 2·64·192, the weighted sum 2·64·128.
        (MIMO, 24_576 + 16_384, 4 * 320 * 2, 64 * 192 + 64 * 128),
    ],
)
def test_one_pass_over_the_cache(part: Attention, flops: int, moved: int, activations: int) -> None:
    (kernel,) = part.core_kernels(BF16)
    assert (kernel.name, kernel.kind, kernel.compute) == ("attention", "attention", "bf16")
    assert kernel.flops_per_cached == flops
    assert kernel.bytes_per_cached == moved
    assert kernel.activation_values_per_token == activations
    assert kernel.flops_per_token == kernel.weight_bytes == kernel.bytes_per_sequence == 0
    assert (kernel.flop_ways, kernel.cache_ways) == (part.heads, part.kv_heads)


@given(st.sampled_from([1, 2, 4, 8, 16, 32]), st.sampled_from([32, 64, 96, 128, 256]))
def test_intensity_of_decode_attention_is_the_size_of_a_group(kv_heads: int, head_dim: int) -> None:
    """At 16 bits FLOP/byte = heads/kv_heads whatever the head (Ainslie et al., 2023)."""
    part = Attention(4096, heads=32, kv_heads=kv_heads, head_dim=head_dim)
    (kernel,) = part.core_kernels(BF16)
    assert kernel.flops_per_cached / kernel.bytes_per_cached == 32 / kv_heads


@pytest.mark.parametrize(
    ("window", "attended", "name", "reach"),
    [
        (math.inf, math.inf, "attention", math.inf),
        (4096, math.inf, "attention_window", 4096),
        (math.inf, 2048, "attention_sparse", 2048),
        # Both: what is picked lies within the window.
        (1024, 2048, "attention_sparse", 1024),
        (4096, 2048, "attention_sparse", 2048),
    ],
)
def test_a_query_reaches_no_further_than_window_and_choice(
    window: float, attended: float, name: str, reach: float
) -> None:
    part = replace(LLAMA, window=window, attended=attended)
    (kernel,) = part.core_kernels(BF16)
    assert (kernel.name, kernel.window) == (name, reach)
    # What an indexer leaves out is kept all the same; only a window drops tokens.
    assert part.caches() == (Cache(2048, 8, window),)


@pytest.mark.parametrize(("kv", "value_bytes"), [("bf16", 2), ("fp8", 1), ("fp32", 4)])
def test_the_cache_is_read_in_its_own_format(kv: str, value_bytes: int) -> None:
    (kernel,) = LLAMA.core_kernels(Formats.of("bf16", kv=kv))
    assert kernel.bytes_per_cached == 2048 * value_bytes
    assert kernel.weight_format == kv
    assert kernel.compute == "bf16"


def test_products_of_grouped_query_attention() -> None:
    """Llama-3.1-8B: q splits 32 ways, k and v 8 ways; both are one launch."""
    query, key_value, out = linear_kernels(LLAMA.linears(), BF16)
    assert (query.name, key_value.name, out.name) == ("qkv_proj", "qkv_proj", "o_proj")
    assert (query.launches, key_value.launches, out.launches) == (1, 0, 1)
    assert (query.weight_ways, key_value.weight_ways, out.weight_ways) == (32, 8, 32)
    assert query.flops_per_token == 2 * 4096 * 4096 == 33_554_432
    assert key_value.flops_per_token == 2 * 4096 * 2048 == 16_777_216
    assert query.weight_bytes == 2 * 4096 * 4096
    assert key_value.weight_bytes == 2 * 4096 * 2048
    assert out.activation_values_per_token == 4096 + 4096


def test_products_of_multi_head_attention_are_one_law() -> None:
    """Llama-2-7B: all three split 32 ways, 4096 read once and 3·4096 written."""
    qkv, out = linear_kernels(replace(LLAMA, kv_heads=32).linears(), BF16)
    assert qkv.flops_per_token == 2 * 4096 * 3 * 4096 == 100_663_296
    assert qkv.activation_values_per_token == 4096 + 3 * 4096
    assert (qkv.launches, out.launches) == (1, 1)


@pytest.mark.parametrize("part", [LLAMA, QWEN, NEXT, MIMO, STEP])
def test_a_token_does_two_flops_a_weight(part: Attention) -> None:
    kernels = list(linear_kernels(part.linears(), BF16))
    vectors = part.norm_params + sum(x.outputs for x in part.linears() if x.bias)
    matrices = part_params(part) - vectors
    assert token_flops(kernels) == 2 * matrices
    assert weights(kernels) == 2 * (part_params(part) - part.norm_params)


def test_cross_attention_costs_a_text_nothing_but_its_weights() -> None:
    """Llama-3.2-11B-Vision: a layer that looks at an image has the matrices of any other."""
    cross = CrossAttention(4096, heads=32, kv_heads=8, head_dim=128, norm_params=2 * 128)
    assert part_params(cross) == 41_943_040 + 256
    assert cross.caches() == ()
    assert cross.core_kernels(BF16) == ()
    assert cross.rotary_width is None


V32 = Indexer(7168, query_inputs=1536, heads=64, head_dim=128, norm_params=256)
"""DeepSeek-V3.2-Exp: index queries from the query latent of 1536, 64 heads of 128."""
M3 = Indexer(6144, query_inputs=6144, heads=4, head_dim=128, head_weights=False)
"""MiniMax-M3: four index heads of 128 over the hidden state, the largest score counts."""


@pytest.mark.parametrize(
    ("part", "params"),
    [
        # Queries 1536×8192, key 7168×128, weights of heads 7168×64; norm of weight and bias.
        (V32, 12_582_912 + 917_504 + 458_752 + 256),
        # Queries 6144×512, key 6144×128, no weights.
        (M3, 3_145_728 + 786_432),
    ],
)
def test_parameters_of_an_indexer(part: Indexer, params: int) -> None:
    assert part_params(part) == params
    assert {linear.ways for linear in part.linears()} == {1}
    assert {linear.role for linear in part.linears()} == {"indexer"}


@pytest.mark.parametrize(
    ("part", "stride", "flops", "moved", "activations"),
    [
        # 2·64·128 FLOPs and one key of 128 values; 64 queries of 128 and 64 weights.
        (V32, 1, 16_384, 256, 64 * 129),
        (M3, 1, 2 * 4 * 128, 256, 4 * 128),
        # One key for four tokens: a quarter of either.
        (V32, 4, 4_096, 64, 64 * 129),
    ],
)
def test_the_scan_of_an_indexer(
    part: Indexer, stride: int, flops: float, moved: float, activations: int
) -> None:
    part = replace(part, cache_stride=stride)
    (scan,) = part.core_kernels(BF16)
    assert (scan.kind, scan.window) == ("indexer", math.inf)
    assert scan.flops_per_cached == flops
    assert scan.bytes_per_cached == moved
    assert scan.activation_values_per_token == activations
    assert (scan.flop_ways, scan.cache_ways) == (1, 1)
    assert part.caches() == (Cache(128 / stride, 1, index=True),)


def test_an_index_may_be_kept_in_a_format_of_its_own() -> None:
    """vLLM keeps DeepSeek-V3.2's index keys as 128 bytes and an fp32 scale: 132."""
    formats = replace(Formats.of("bf16"), index=Formats.of("fp8_index").weights["other"])
    (scan,) = V32.core_kernels(formats)
    assert scan.bytes_per_cached == 132
    assert formats.of_cache(V32.caches()[0]).id == "fp8_index"
    assert formats.of_cache(LLAMA.caches()[0]).id == "bf16"
