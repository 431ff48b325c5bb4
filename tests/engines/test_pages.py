"""How engines divide a pool, against counts that start-up logs print."""

from __future__ import annotations

import math

import pytest

from planner.engines.pages import Kind, PageRules, Paging, kinds, pool_of
from planner.engines.profiles import GIB
from planner.models import get_model
from planner.step.parallel import Sharding

BLOCKS = Paging(layout="groups", printed="blocks")
REQUESTS = Paging(layout="groups", printed="requests")


def printed_tokens(
    pool: float, layers: list[Kind], paging: Paging, block: int, chunk: int, longest: int
) -> int | None:
    return pool_of(pool, layers, PageRules(paging, block, chunk, longest)).printed


def printed(model: str, pool_gib: float, paging: Paging, tp: int = 1) -> int | None:
    """Tokens printed for a pool in blocks of 16, started for 8,192 tokens in steps of 8,192."""
    spec = get_model(model)
    layers = kinds(spec, Sharding(tp), spec.formats())
    return printed_tokens(pool_gib * GIB, layers, paging, 16, 8192, 8192)


@pytest.mark.parametrize(
    ("model", "pool_gib", "tokens"),
    [  # model, "Available KV cache memory" and "GPU KV cache size" of the same vLLM log
        ("Qwen/Qwen2.5-7B-Instruct", 58.53, 1_096_000),  # M0044
        ("google/gemma-7b", 55.44, 129_760),  # M0012
        ("deepseek-ai/DeepSeek-V2-Lite-Chat", 43.61, 1_505_552),  # M0002: a latent
        ("google/gemma-3-27b-it", 19.53, 36_560),  # M0010: 7 groups of 10 layers
        ("google/gemma-3-4b-it", 62.51, 468_144),  # M0011: 7 groups of 5
        ("openai/gpt-oss-120b", 5.38, 78_384),  # M0165: 2 groups of 18
    ],
)
def test_blocks_of_logs(model: str, pool_gib: float, tokens: int) -> None:
    assert printed(model, pool_gib, BLOCKS) == pytest.approx(tokens, rel=1e-3)


def test_a_pool_of_gemma_3_is_exact() -> None:
    # 19.53 GiB / (16·16·2·128·2 B · 10 layers) = 15,999 blocks; // 7 groups · 16 tokens
    assert printed("google/gemma-3-27b-it", 19.53, BLOCKS) == 36_560


def test_tensor_parallel_splits_heads_but_no_latent() -> None:
    whole = printed("Qwen/Qwen2.5-7B-Instruct", 10, BLOCKS) or 0
    assert printed("Qwen/Qwen2.5-7B-Instruct", 10, BLOCKS, tp=4) == pytest.approx(
        4 * whole, rel=1e-3
    )
    latent = printed("deepseek-ai/DeepSeek-V2-Lite-Chat", 10, BLOCKS)
    assert printed("deepseek-ai/DeepSeek-V2-Lite-Chat", 10, BLOCKS, tp=4) == latent


def test_requests_count_windows_only_as_far_as_they_fill() -> None:
    # 10 + 50 layers, 6 groups: the windows of a request of 262,144 tokens are (1023 + 2048)/16 + 1
    # pages each, the growing group's 262,144/32, as its heads are half as wide at twice a block.
    spec = get_model("google/gemma-4-31B")
    layers = kinds(spec, Sharding(2), spec.formats(kv="fp8"))
    page = max(kind.token_bytes for kind in layers) * 16
    blocks = math.floor(10 * GIB / (page * 10))
    needed = 262_144 // 32 + 5 * (math.ceil((1023 + 2048) / 16) + 1)
    found = printed_tokens(10 * GIB, layers, REQUESTS, 16, 2048, 262_144)
    assert found == math.floor(blocks / needed * 262_144)


def test_requests_and_blocks_agree_where_all_layers_grow() -> None:
    arguments = ("Qwen/Qwen3-8B", 20.0)
    assert printed(*arguments, BLOCKS) == printed(*arguments, REQUESTS)


def test_a_page_is_made_long_enough_for_a_state() -> None:
    # A state of 100 kB beside 1 kB a token: pages of 7 blocks of 16 tokens; 3 + 1 layers, 4 groups.
    layers = [Kind(1, token_bytes=1000), Kind(3, state_bytes=100_000)]
    blocks = 10_000_000 // 112_000
    assert printed_tokens(10e6, layers, BLOCKS, 16, 8192, 8192) == blocks // 4 * 112
    needed = math.ceil(8192 / 112) + 3
    assert printed_tokens(10e6, layers, REQUESTS, 16, 8192, 8192) == int(blocks / needed * 8192)


def test_pools_hold_a_share_of_window_tokens() -> None:
    layers = [Kind(2, token_bytes=100), Kind(2, token_bytes=100, window=128)]
    shares = Paging(layout="shares", window_share=0.8)
    pool = pool_of(36_000, layers, PageRules(shares, 1, 0, 0))
    assert pool.printed == 100  # 36,000 / (200 + 0.8·200)
    assert pool.sequences(40) == 2  # 80 tokens of windows, 100 of the growing
    assert pool.sequences(20) == 4  # 80 // 20, where the growing layers had place for 5
    growing = [Kind(4, token_bytes=100)]
    assert printed_tokens(36_000, growing, Paging(), 1, 0, 0) == 90


def test_a_window_takes_a_page_more_and_a_prompt_the_tokens_of_its_step() -> None:
    # One growing group and one of windows of 128, pages of 16 tokens, prompts in steps of 512:
    # a sequence of 1,024 tokens holds 64 + (⌈127/16⌉ + 1 = 9) pages, in its prompt 64 + 41.
    layers = [Kind(1, token_bytes=100), Kind(1, token_bytes=100, window=128)]
    pool = pool_of(1000 * 1600, layers, PageRules(REQUESTS, 16, 512, 1024))
    assert pool.stores[0].blocks == 1000
    assert pool.stores[0].needed(1, 1024) == 64 + math.ceil((127 + 512) / 16) + 1
    assert pool.sequences(1024) == (1000 - 105) // 73 + 1
    assert pool.printed == math.floor(1000 / 105 * 1024)
    assert pool.longest(1, 2**20) == (1000 - 41) * 16


def test_llama_cpp_allocates_the_cells_it_is_given() -> None:
    # 8 cells of 100 bytes in 2 layers; a window of 4 keeps the 2 tokens of a step besides.
    layers = [Kind(1, token_bytes=100), Kind(1, token_bytes=100, window=4)]
    cells = PageRules(Paging(printed="cells"), 1, 2, 8, cells=8)
    pool = pool_of(10_000, layers, cells)
    assert pool.printed == 8
    assert pool.sequences(4) == 2
    assert pool.stores[0].needed(1, 8) == 100 * 8 + 100 * (4 + 2)


def test_ranks_that_share_a_sequence_hold_more_tokens() -> None:
    spec = get_model("deepseek-ai/DeepSeek-V2-Lite-Chat")
    layers = kinds(spec, Sharding(8), spec.formats())
    alone = pool_of(GIB, layers, PageRules(BLOCKS, 16, 8192, 8192))
    shared = pool_of(GIB, layers, PageRules(BLOCKS, 16, 8192, 8192, decode_cp=8))
    assert alone.printed
    assert shared.printed
    assert shared.printed // 8 == pytest.approx(alone.printed, rel=1e-3)


def test_nothing_grows_and_nothing_is_left() -> None:
    assert printed_tokens(1e9, [Kind(4, state_bytes=1e6)], BLOCKS, 16, 0, 4096) is None
    assert printed_tokens(-1.0, [Kind(4, token_bytes=100)], BLOCKS, 16, 0, 4096) == 0


@pytest.mark.parametrize(
    ("kept", "elements"),
    [  # DeepSeek-V2-Lite: 27 layers, 16 heads, rank 512 + 64; per token at 16 bits
        ("latent", 27 * 576),
        ("latent_and_values", 27 * (576 + 512)),
        ("expanded", 27 * 16 * (128 + 64 + 128)),  # M0103: 0.1318 GiB for 512 tokens
    ],
)
def test_latents_are_kept_in_three_ways(kept: str, elements: int) -> None:
    spec = get_model("deepseek-ai/DeepSeek-V2-Lite-Chat")
    layers = kinds(spec, Sharding(), spec.formats(), kept)
    assert sum(kind.layers * kind.token_bytes for kind in layers) == 2 * elements
