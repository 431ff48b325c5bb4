"""Figures of start-ups that their users published, through `plan`."""

from __future__ import annotations

import math
from typing import Any

import pytest

from planner import Scenario, plan
from planner.answer import Plan

GIB = 2.0**30


def started(**fields: Any) -> Plan:
    return plan(Scenario(engine="vllm", **fields))


@pytest.mark.parametrize(
    ("version", "longest", "tokens", "within"),
    [  # vLLM issue 43308: gemma-4-31B-it AWQ 4-bit on an A100 of 80 GB at 0.9
        ("0.20.0", None, 55_000, 0.01),
        ("0.21.0", 131_072, 525_000, 0.03),
        ("0.21.0", None, 525_000, 0.15),  # the length was not published
    ],
)
def test_gemma_4_before_and_after_requests_were_counted(
    version: str, longest: int | None, tokens: int, within: float
) -> None:
    memory = started(
        model="google/gemma-4-31B",
        gpu="a100-sxm4-80gb",
        weights="int4_g128",
        engine_version=version,
        memory_fraction=0.9,
        max_model_len=longest,
    ).memory
    assert memory.kv_pool_tokens == pytest.approx(tokens, rel=within)
    assert memory.kv_bytes_per_token == 10 * 2 * 4 * 512 * 2  # 10 growing layers, 4 heads of 512


def test_gpt_oss_grows_by_half_of_what_the_log_counts() -> None:
    # 36 layers of 2·8·64·2 B, half of them windows; "5.38 GiB" held 78,384 tokens (hf-mem issue 60)
    memory = started(
        model="openai/gpt-oss-120b",
        gpu="h100-sxm5",
        engine_version="0.19.0",
        kv_pool_bytes=5.38 * GIB,
    ).memory
    assert memory.kv_bytes_per_token == 36_864
    assert memory.kv_written_bytes_per_token == 73_728
    assert memory.engine_kv_bytes_per_token == pytest.approx(73_728, rel=1e-6)
    assert memory.kv_pool_tokens == pytest.approx(78_384, rel=1e-3)
    assert memory.window_bytes_per_sequence == 18 * 2048 * 128


@pytest.mark.parametrize("engine", ["vllm", "sglang"])
@pytest.mark.parametrize("kv", [None, "fp8"])
def test_sparse_latents_have_a_layout_of_their_own(engine: str, kv: str | None) -> None:
    result = plan(
        Scenario(model="deepseek-ai/DeepSeek-V3.2", gpu="h200-sxm", tp=8, engine=engine, kv=kv)
    )
    assert result.memory.kv_bytes_per_token == pytest.approx(61 * (656 + 132))  # 48,068
    assert result.memory.engine_kv_bytes_per_token == pytest.approx(48_068, rel=1e-6)
    assert ("cache_layout" in {note.code for note in result.notes}) == (kv is None)


def test_sixteen_bits_keep_the_index_in_eight() -> None:
    memory = started(model="deepseek-ai/DeepSeek-V3.2", gpu="h200-sxm", tp=8, kv="bf16").memory
    assert memory.kv_bytes_per_token == pytest.approx(61 * (576 * 2 + 132))


def flash(version: str, pool_gib: float, longest: int | None = None, **fields: Any) -> Plan:
    """DeepSeek-V4-Flash with an 8-bit cache on two H20 of 96 GB."""
    return started(
        model="deepseek-ai/DeepSeek-V4-Flash",
        gpu="h20-96gb",
        tp=2,
        kv="fp8",
        engine_version=version,
        kv_pool_bytes=pool_gib * GIB,
        max_model_len=longest,
        **fields,
    )


@pytest.mark.parametrize(
    ("version", "pool_gib", "longest", "tokens"),
    [  # vLLM issue 51041, both said to be of 0.26 at TP 2; the second reserves two steps in flight
        ("0.25.0", 7.01, 912_128, 1_009_661),
        ("0.26.0", 7.71, 121_344, 150_992),
    ],
)
def test_compressed_attention_reserves_the_steps_of_its_states(
    version: str, pool_gib: float, longest: int, tokens: int
) -> None:
    # Both drafted with the layer for it, whose window is one cache more; pools are rounded.
    memory = flash(version, pool_gib, longest, speculation={"drafts": 1}).memory
    assert memory.kv_pool_tokens == pytest.approx(tokens, rel=0.0005)


def test_compressed_attention_refuses_what_its_states_leave_no_room_for() -> None:
    # The 121,344 tokens of issue 51041: 474 pages of 256 beside 2·259 of windows, 4,099 and 2,065
    # of states, of the 7,156 tuples in 7.01 GiB.
    result = flash("0.26.0", 7.01)
    assert int(7.01 * GIB / (22 * (37_440 + 8_640 + 1_728))) == 474 + 2 * 259 + 4099 + 2065
    assert result.memory.max_context == 121_344
    assert "max_model_len_does_not_fit" in {note.code for note in result.notes}


WINDOW, STATES = 37_440, (32_832, 8_640)
"""Bytes of a page of a window, and of the states of a layer and of its indexer."""


@pytest.mark.parametrize(
    ("version", "block", "at_start"),
    [  # bytes of a block, and those that the check of the longest context takes for it
        ("0.22.0", 22 * 47_808, 22 * 47_808),
        ("0.24.0", 22 * WINDOW + 21 * 8_640 + 20 * 1_728, 22 * 47_808),
        ("0.27.0", 1_002_240, 22 * 47_808),  # 21·(37,440 + 8,640) + 20·1,728 of entries
        ("0.29.0", 1_002_240, 1_002_240),
        ("0.33.0", 1_002_240, 1_002_240),
    ],
)
def test_blocks_of_compressed_attention_by_version(version: str, block: int, at_start: int) -> None:
    result = flash(version, 7.71, max_batched_tokens=2048)
    tokens = 2048 * (1 if version < "0.26" else 2)
    windows = 2 * (math.ceil((127 + tokens) / 64) + 1)
    states = math.ceil((7 + tokens) / 4) + math.ceil((127 + tokens) / 8) + 2
    left = int(7.71 * GIB / at_start) - windows - states
    assert result.memory.max_context == min(left * 256, 1_048_576)
    entries = 1_002_240
    weights = (22 * WINDOW / entries, 21 * WINDOW / entries)
    padded = (21 * (WINDOW + 8_640) / entries, 20 * WINDOW / entries)
    if version >= "0.27":
        weights, padded = (1.0, 1.0), (1.0, 1.0)
    counted = 4096 + windows / 2 * sum(weights)
    counted += padded[0] * (math.ceil((7 + tokens) / 4) + 1)
    counted += padded[1] * (math.ceil((127 + tokens) / 8) + 1)
    expected = int(int(7.71 * GIB / block) / math.ceil(counted) * 1_048_576)
    assert result.memory.kv_pool_tokens == expected


def test_old_versions_printed_the_blocks_of_one_group() -> None:
    # vLLM 0.20 printed blocks over groups, times the shortest page: 7,871 // 5 groups · 4 tokens
    assert flash("0.20.0", 7.71).memory.kv_pool_tokens == 7871 // 5 * 4


@pytest.mark.parametrize(
    ("tokens", "fields", "within"),
    [
        # 263 blocks of 1,056 tokens hold 2.008 requests of 131,072, 125 + 3·2 each
        (263_144, {"memory_fraction": 0.9, "max_model_len": 131_072}, 0.05),
        (263_144, {"memory_fraction": 0.9}, 0.08),
        # club-3090 issues 612 and 652: 299 and 300 blocks of 2,096 tokens of an 8-bit cache
        (567_978, {"kv_pool_bytes": 5.98 * GIB, "kv": "fp8", "max_model_len": 131_072}, 0.0),
        (569_878, {"kv_pool_bytes": 6.01 * GIB, "kv": "fp8", "max_model_len": 131_072}, 0.0),
    ],
)
def test_states_of_cached_prefixes_take_two_blocks(
    tokens: int, fields: dict[str, Any], within: float
) -> None:
    memory = started(
        model="nvidia/Qwen3.6-35B-A3B-NVFP4", gpu="rtx-5090", engine_version="0.24.0", **fields
    ).memory
    assert memory.kv_pool_tokens == pytest.approx(tokens, rel=within)


def test_chunked_local_attention_keeps_every_token_in_vllm() -> None:
    # Llama-4-Scout FP8 on two H100: 132,048 tokens held; 48 layers of 2·8·128·2 B
    memory = started(
        model="meta-llama/Llama-4-Scout-17B-16E-Instruct",
        gpu="h100-sxm5",
        tp=2,
        weights="fp8",
        memory_fraction=0.9,
        engine_version="0.19.0",
    ).memory
    assert memory.engine_kv_bytes_per_token == pytest.approx(48 * 4096, rel=1e-6)
    assert memory.kv_pool_tokens == pytest.approx(132_048, rel=0.05)
