"""tools/pack_kernels.py: what a line of a table of kernel times becomes, worked by hand."""

from __future__ import annotations

from typing import Any

import pytest

from tests.scripts import script

TOOL = script("pack_kernels")

MIXTURE: dict[str, str] = {
    "gpu": "h200_sxm",
    "engine": "trtllm",
    "engine_version": "1.3.0rc20",
    "kernel_source": "moe_torch_flow_cutlass",
    "moe_dtype": "fp8_block",
    "num_tokens": "16",
    "hidden_size": "7168",
    "inter_size": "2048",
    "topk": "8",
    "num_experts": "256",
    "moe_tp_size": "1",
    "moe_ep_size": "8",
    "distribution": "balanced",
}


def test_a_mixture_reads_the_experts_that_balanced_tokens_hit() -> None:
    """16 tokens of 8 experts on 8 ranks: 16 pairs on a rank, an expert each of its 32.

    One has three matrices of 7168·2048: 44.04 million values, a byte and the scale of a block each.
    """
    (line,) = TOOL.moe(MIXTURE)
    each = 3 * 7168 * 2048
    assert (line["kind"], line["format"]) == ("experts", "fp8_block")
    assert (line["launches"], line["visits"]) == (2, 16)
    assert line["flops"] == pytest.approx(2 * 16 * each)
    assert line["bytes"] == pytest.approx(16 * each, rel=2e-3)
    many = TOOL.moe(MIXTURE | {"num_tokens": "1024"})[0]
    assert (many["visits"], many["flops"]) == (32, pytest.approx(64 * line["flops"]))


@pytest.mark.parametrize(
    "other",
    [
        # Two matrices an expert, not three.
        {"kernel_source": "moe_torch_flow_nongated"},
        {"kernel_source": "vllm_marlin_situ_as_silu"},
        {"distribution": "power_law_1.2"},
        # What SGLang runs on Hopper alone, where nothing else is asked for.
        {"gpu": "b200_sxm", "kernel_source": "sglang_fused_moe_triton"},
        {"gpu": "gb200", "moe_dtype": "w4a16_mxfp4"},
        # Less than one pair of a token and an expert on a rank.
        {"num_tokens": "1", "moe_ep_size": "16"},
        {"num_tokens": "32768"},
        # Slices narrower than a tile.
        {"inter_size": "768", "moe_tp_size": "8"},
    ],
)
def test_lines_that_say_nothing_of_a_default_kernel_are_left_out(other: dict[str, str]) -> None:
    assert TOOL.moe(MIXTURE | other) is None


@pytest.mark.parametrize(
    ("op", "ranks", "values", "moved", "visits"),
    [
        # 262,144 values are 0.52 MB, which seven others send whole.
        ("all_reduce", "8", 262_144, 7 * 524_288.0, 3.0),
        # 33.6 MB go in two exchanges: 1.75 of it, and 5.25 MB for the turn.
        ("all_reduce", "8", 16_777_216, 1.75 * 33_554_432 + 5.25e6, 3.0),
        ("all_reduce", "2", 262_144, 524_288.0, 1.0),
        ("all_gather", "4", 262_144, 0.75 * 524_288, 2.0),
        ("alltoall", "8", 262_144, 0.875 * 524_288, 3.0),
    ],
)
def test_a_collective_moves_what_the_law_says(
    op: str, ranks: str, values: int, moved: float, visits: float
) -> None:
    row = {"op": op, "gpus": ranks, "message_elements": str(values), "dtype": "half"}
    (line,) = TOOL.collective(row | {"impl": "trtllm"})
    assert line["bytes"] == pytest.approx(moved)
    assert (line["launches"], line["visits"]) == (1, visits)
    assert line["kind"] == {"alltoall": "all_to_all"}.get(op, op)


@pytest.mark.parametrize(
    "other",
    [
        {"impl": "vllm_eager"},  # host launches, which a graph has none of
        {"dtype": "int8"},
        {"message_elements": "512"},
        {"impl": "NCCL"},  # engines reduce by kernels of their own
    ],
)
def test_collectives_that_no_decode_step_runs_are_left_out(other: dict[str, str]) -> None:
    row = {"op": "all_reduce", "gpus": "8", "message_elements": "262144", "dtype": "half"}
    assert TOOL.collective(row | {"impl": "trtllm"} | other) is None


def samples(table: str, **versions: int) -> dict[tuple[str, ...], list[Any]]:
    """So many samples of versions of one engine, by key."""
    return {
        (table, "fp8", "h100-sxm5", "trtllm", version.replace("_", "."), "experts"): [None] * count
        for version, count in versions.items()
    }


@pytest.mark.parametrize(
    ("versions", "stays"),
    [
        ({"v1_0": 48}, "v1.0"),
        ({"v1_0": 48, "v1_3": 48}, "v1.3"),
        # A newer version of a few samples does not make an older one's table old.
        ({"v1_0": 48, "v1_3": 6}, "v1.0"),
        ({"v1_0": 48, "v1_2": 24, "v1_3": 6}, "v1.2"),
        ({"v1_0": 6, "v1_3": 5}, "v1.3"),
    ],
)
def test_the_newest_version_with_enough_samples_stays(versions: dict[str, int], stays: str) -> None:
    sets = samples("moe", **versions)
    old = TOOL.superseded(sets)
    assert [key[-2] for key in sets if key not in old] == [stays]


def test_other_tables_and_other_engines_stay() -> None:
    sets = samples("gemm", v1_0=48, v1_3=48)
    assert TOOL.superseded(sets) == []
    other = {(*key[:3], "vllm", *key[4:]): rows for key, rows in samples("moe", v1_0=48).items()}
    assert TOOL.superseded(samples("moe", v1_3=48) | other) == []
