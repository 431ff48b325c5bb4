"""Latent and compressed attention: matrices, caches and passes on numbers worked by hand.

Sizes are those of published configs: DeepSeek-V3 (hidden 7168, 128 heads, ranks 1536 and 512, rope
64, nope 128, values 128), DeepSeek-V2-Lite (2048, 16 heads, no query rank), MiniCPM3-4B (2560, 40
heads, ranks 768 and 256, rope 32, nope 64, values 64), DeepSeek-V4-Flash (4096, 64 heads of 512).
"""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.models.caches import Cache, State
from planner.models.compressed import CompressedAttention, HyperConnection, Picker
from planner.models.gemms import linear_kernels
from planner.models.latent import LatentAttention
from planner.models.parts import Formats
from planner.models.spec import part_params
from tests.models.layers import BF16, token_flops

V3 = LatentAttention(7168, 128, 512, 64, 128, 128, q_rank=1536, norm_params=1536 + 512)
LITE = LatentAttention(2048, 16, 512, 64, 128, 128, q_rank=None, norm_params=512)
MINICPM = LatentAttention(2560, 40, 256, 32, 64, 64, q_rank=768, norm_params=768 + 256)


@pytest.mark.parametrize(
    ("part", "params"),
    [
        # Query latent 7168×1536 and up to 128·192; latent 7168×576; keys and values 512×128·256;
        # output 128·128×7168; norms of both latents.
        (V3, 11_010_048 + 37_748_736 + 4_128_768 + 16_777_216 + 117_440_512 + 2_048),
        # Queries straight from the hidden state: 2048×16·192.
        (LITE, 6_291_456 + 1_179_648 + 2_097_152 + 4_194_304 + 512),
        (MINICPM, 1_966_080 + 768 * 3_840 + 737_280 + 256 * 5_120 + 2_560 * 2_560 + 1_024),
        # An output gate as wide as the heads' values: 7168×16384 more (Kimi-K3 style).
        (replace(V3, output_gate=True), 187_107_328 + 117_440_512),
        # Biases of the down-projections and the output: 1536 + 576 + 7168.
        (replace(V3, bias=True), 187_107_328 + 9_280),
    ],
)
def test_parameters(part: LatentAttention, params: int) -> None:
    assert part_params(part) == params


def test_deepseek_v3_attention_in_all() -> None:
    """61 layers of 187,107,328: 11.4 of the 671 billion (DeepSeek-V3 report, 2024, 4.2)."""
    assert part_params(V3) == 187_107_328
    assert round(61 * part_params(V3) / 1e9, 2) == 11.41


@pytest.mark.parametrize(
    ("part", "latent", "expanded"),
    [
        # 512 + 64 values against 128 heads of 192 + 128: 71 times fewer.
        (V3, 576, 40_960),
        (LITE, 576, 5_120),
        (MINICPM, 288, 6_400),
    ],
)
def test_cache_of_a_token(part: LatentAttention, latent: int, expanded: int) -> None:
    assert part.caches() == (Cache(latent, 1),)
    assert part.latent_cache is not None
    assert part.latent_cache.expanded == Cache(expanded, part.heads)
    assert part.latent_cache.rank == part.kv_rank


@pytest.mark.parametrize(
    ("part", "decode", "prompt"),
    [
        # Absorbed 2·128·(512 + 64 + 512); expanded 2·128·(128 + 64 + 128): 3.4 times fewer.
        (V3, 278_528, 81_920),
        (LITE, 34_816, 10_240),
        # 2·40·(256 + 32 + 256) and 2·40·(64 + 32 + 64).
        (MINICPM, 43_520, 12_800),
    ],
)
def test_flops_of_a_cached_token(part: LatentAttention, decode: int, prompt: int) -> None:
    (absorbed,), (expanded,) = part.core_kernels(BF16), part.prompt_kernels(BF16)
    assert absorbed.flops_per_cached == decode
    assert expanded.flops_per_cached == prompt
    (cache,) = part.caches()
    moved = {absorbed.bytes_per_cached, expanded.bytes_per_cached}
    assert moved == {2 * cache.elements_per_token}
    assert absorbed.kind == expanded.kind == "latent"


@pytest.mark.parametrize(("kv", "moved"), [("bf16", 1152), ("fp8", 576), ("fp8_ds_mla", 656)])
def test_bytes_of_a_cached_latent(kv: str, moved: float) -> None:
    """576 values; FlashMLA's 8-bit layout keeps 512 bytes, four scales of 4 and 64 values of 2."""
    for kernels in (V3.core_kernels, V3.prompt_kernels):
        (kernel,) = kernels(Formats.of("bf16", kv=kv))
        assert kernel.bytes_per_cached == pytest.approx(moved, rel=1e-12)
        assert (kernel.cache_ways, kernel.flop_ways) == (1, 128)


def test_activations_of_absorbed_and_expanded_passes() -> None:
    """V3: queries of 576 and outputs of 512 a head; or queries, keys and values of 192, 128, 128.

    The rotary 64 of the keys comes with the cache, and outputs are 128 wide.
    """
    (absorbed,), (expanded,) = V3.core_kernels(BF16), V3.prompt_kernels(BF16)
    assert absorbed.activation_values_per_token == 128 * (576 + 512) == 139_264
    assert expanded.activation_values_per_token == 128 * (192 + 128 + 128 + 128) == 73_728


def test_up_projection_moves_other_vectors_when_it_is_absorbed() -> None:
    """kv_b_proj of V3: a prompt reads 512 and writes 128·256; a decode step takes each head's query
    from 128 to 512 and its output from 512 to 128.
    """
    decode = {k.name: k for k in linear_kernels(V3.linears(), BF16)}["kv_b_proj"]
    prompt = {k.name: k for k in linear_kernels(V3.linears(), BF16, prompt=True)}["kv_b_proj"]
    assert decode.activation_values_per_token == 128 * (128 + 512 + 512 + 128) == 163_840
    assert prompt.activation_values_per_token == 512 + 128 * 256 == 33_280
    assert decode.flops_per_token == prompt.flops_per_token == 2 * 512 * 32_768


def test_down_projections_are_one_launch_and_never_split() -> None:
    laws = {kernel.name: kernel for kernel in linear_kernels(V3.linears(), BF16)}
    assert list(laws) == ["kv_a_proj", "q_b_proj", "kv_b_proj", "o_proj"]
    down = laws["kv_a_proj"]
    assert down.flops_per_token == 2 * 7168 * (1536 + 576) == 30_277_632
    assert (down.weight_ways, down.launches) == (1, 1)
    assert {laws[name].weight_ways for name in ("q_b_proj", "kv_b_proj", "o_proj")} == {128}
    assert "q_proj" in {kernel.name for kernel in linear_kernels(LITE.linears(), BF16)}


@given(st.integers(1, 100_000))
def test_absorbing_costs_arithmetic_and_saves_traffic(context: int) -> None:
    """Whatever the context, the latent's intensity is 2·128·1088/(2·576) = 241.8 FLOP/byte."""
    (absorbed,) = V3.core_kernels(BF16)
    flops, moved = absorbed.flops_per_cached * context, absorbed.bytes_per_cached * context
    assert flops / moved == pytest.approx(241.78, abs=0.01)


def test_a_sparse_latent_reaches_what_was_picked_and_keeps_everything() -> None:
    sparse = replace(V3, window=2048)
    assert {k.window for k in sparse.core_kernels(BF16) + sparse.prompt_kernels(BF16)} == {2048}
    assert sparse.caches() == V3.caches()


FLASH = CompressedAttention(
    4096, heads=64, head_dim=512, q_rank=1024, o_groups=8, o_rank=1024, window=128
)
PICKED = replace(FLASH, ratio=4, picker=Picker(64, 128, top_k=512))
HEAVY = replace(FLASH, ratio=128)
# q latent 4096×1024, key-value 4096×512, queries 1024×32768, output blocks 8·(4096×1024),
# output 8192×4096.
FLASH_MATRICES = 4_194_304 + 2_097_152 + 33_554_432 + 33_554_432 + 33_554_432


@pytest.mark.parametrize(
    ("part", "matrices", "vectors"),
    [
        # Norms of the latents (1024 and 512) and 64 sinks.
        (FLASH, FLASH_MATRICES, 1_600),
        # The compressor makes an entry and its gate, 4096×1024; 128 position biases and a norm.
        (HEAVY, FLASH_MATRICES + 4_194_304, 1_600 + 129 * 512),
        # Two overlapping series: entry and gate twice; the indexer's compressor 4096×(4·128), its
        # queries 1024×8192 and weights 4096×64; 2·4 position biases and a norm of each width.
        (
            PICKED,
            FLASH_MATRICES + 8_388_608 + 2_097_152 + 8_388_608 + 262_144,
            1_600 + 9 * 512 + 9 * 128,
        ),
    ],
)
def test_parameters_of_compressed_attention(
    part: CompressedAttention, matrices: int, vectors: int
) -> None:
    assert sum(x.inputs * x.outputs for x in part.linears()) == matrices
    assert part.other_params() == vectors
    assert part_params(part) == matrices + vectors


@pytest.mark.parametrize(
    ("part", "caches", "states"),
    [
        (FLASH, (Cache(512, 1, 128),), ()),
        # An entry of 512 for 128 tokens: 4 values a token.
        (HEAVY, (Cache(512, 1, 128), Cache(4, 1)), ()),
        # 512/4 and an index key of 128/4; values and gates of 4 tokens at both widths.
        (
            PICKED,
            (Cache(512, 1, 128), Cache(128, 1), Cache(32, 1, index=True)),
            (State(2 * 4 * (512 + 128), 1),),
        ),
    ],
)
def test_what_compressed_attention_keeps(
    part: CompressedAttention, caches: tuple[Cache, ...], states: tuple[State, ...]
) -> None:
    assert part.caches() == caches
    assert part.states() == states


@pytest.mark.parametrize(
    ("part", "name", "flops", "moved", "window"),
    [
        # 4·64·512 FLOPs and 512 values a token of the window.
        (FLASH, "attention_window", 131_072, 1_024, 128),
        # A 128th and a quarter of that a token beyond it.
        (HEAVY, "attention_compressed", 1_024, 8, math.inf),
        # 512 entries stand for 2048 tokens.
        (PICKED, "attention_compressed", 32_768, 256, 2_048),
        # 2·64·128/4 FLOPs and 128/4 values a token, all of them.
        (PICKED, "indexer", 4_096, 64, math.inf),
    ],
)
def test_passes_of_compressed_attention(
    part: CompressedAttention, name: str, flops: float, moved: float, window: float
) -> None:
    kernels = {kernel.name: kernel for kernel in part.core_kernels(BF16)}
    kernel = kernels[name]
    assert (kernel.flops_per_cached, kernel.bytes_per_cached) == (flops, moved)
    assert kernel.window == window


def test_window_and_entries_are_one_launch() -> None:
    window, entries, scan = PICKED.core_kernels(BF16)
    assert [k.launches for k in (window, entries, scan)] == [1, 0, 1]
    assert window.activation_values_per_token == 2 * 64 * 512
    assert entries.activation_values_per_token == 0
    assert scan.activation_values_per_token == 64 * 129


def test_output_blocks_read_all_heads() -> None:
    """Eight blocks of 4096×1024 on a diagonal: 2·4096·8192 FLOPs, 32,768 values read."""
    blocks = {k.name: k for k in linear_kernels(FLASH.linears(), BF16)}["o_a_proj"]
    assert blocks.flops_per_token == 67_108_864
    assert blocks.activation_values_per_token == 32_768 + 8_192
    assert blocks.weight_ways == 8


def test_cache_of_deepseek_v4_flash() -> None:
    """21 layers at 4 and 20 at 128 of 43: 21·(128 + 32) + 20·4 = 3440 values a token."""
    growing = [
        count * cache.elements_per_token
        for count, part in ((2, FLASH), (21, PICKED), (20, HEAVY))
        for cache in part.caches()
        if math.isinf(cache.window)
    ]
    assert sum(growing) == 3_440


def test_hyper_connections_mix_four_streams() -> None:
    """mHC at 4 streams of 4096: (2 + 4)·4 = 24 weights from 16,384 values, 24 biases, 3 scales."""
    part = HyperConnection(4096, 4)
    assert part_params(part) == 16_384 * 24 + 24 + 3
    assert token_flops(list(linear_kernels(part.linears(), BF16))) == 2 * 16_384 * 24
    assert part.core_kernels(BF16) == ()
    assert part.caches() == part.states() == ()
