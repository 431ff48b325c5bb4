"""llama.cpp's mixes on Llama-3.1-8B, bits of every role worked by hand.

Blocks: Q4_K 4.5 bits, Q5_K 5.5, Q6_K 6.5625, Q3_K 3.4375, Q2_K 2.625, IQ4_NL 4.5, Q8_0 8.5. Of 32
layers an eighth is 4; `more` is the first and last four and every third between: 4 + 4 + 8 = 16.
"""

from __future__ import annotations

import pytest

from planner.models.attention import Attention
from planner.models.mixes import MIXES, mix_formats
from planner.models.mlp import Dense, Experts
from planner.models.parts import Block, LayerGroup

Q, KV, OUT = 4096 * 4096, 4096 * 1024, 4096 * 4096
LLAMA = (LayerGroup(32, Block((Attention(4096, 32, 8, 128),), (Dense(4096, 14336),))),)


def bits(name: str, groups: tuple[LayerGroup, ...] = LLAMA, tied: bool = False) -> dict[str, float]:
    found = mix_formats(groups, groups[0].block.mixers[0].hidden, tied, name)
    assert found is not None
    return {role: fmt.bits for role, fmt in found.items()}


def attention(q: float, k: float, v: float, o: float) -> float:
    return (Q * q + KV * (k + v) + OUT * o) / (2 * Q + 2 * KV)


@pytest.mark.parametrize(
    ("name", "of_attention", "of_mlp", "head"),
    [
        # All matrices alike, the head in Q6_K.
        ("q4_0", 4.5, 4.5, 6.5625),
        ("q6_k", 6.5625, 6.5625, 6.5625),
        ("q5_k_s", 5.5, 5.5, 6.5625),
        ("q3_k_s", 3.4375, 3.4375, 6.5625),
        # Half of the layers have their value and down projections in Q6_K.
        (
            "q4_k_m",
            attention(4.5, 4.5, (6.5625 + 4.5) / 2, 4.5),
            (2 * 4.5 + (6.5625 + 4.5) / 2) / 3,
            6.5625,
        ),
        (
            "q5_k_m",
            attention(5.5, 5.5, (6.5625 + 5.5) / 2, 5.5),
            (2 * 5.5 + (6.5625 + 5.5) / 2) / 3,
            6.5625,
        ),
        # Four layers of 32 in Q5_K.
        (
            "q4_k_s",
            attention(4.5, 4.5, 5.5 / 8 + 4.5 * 7 / 8, 4.5),
            (2 * 4.5 + 5.5 / 8 + 4.5 * 7 / 8) / 3,
            6.5625,
        ),
        # Value, down and output projections of every layer.
        ("q3_k_m", attention(3.4375, 3.4375, 4.5, 4.5), (2 * 3.4375 + 4.5) / 3, 6.5625),
        ("q3_k_l", attention(3.4375, 3.4375, 5.5, 5.5), (2 * 3.4375 + 5.5) / 3, 6.5625),
        # Four query heads share a value head: it takes Q4_K instead of Q3_K.
        ("q2_k", attention(2.625, 2.625, 4.5, 3.4375), (2 * 2.625 + 3.4375) / 3, 6.5625),
    ],
)
def test_bits_of_llama_3_1_8b(name: str, of_attention: float, of_mlp: float, head: float) -> None:
    found = bits(name)
    assert found["attention"] == pytest.approx(of_attention)
    assert found["mlp"] == pytest.approx(of_mlp)
    assert found["head"] == pytest.approx(head)


@pytest.mark.parametrize(("tied", "table"), [(False, 4.5), (True, 6.5625)])
def test_a_tied_table_is_stored_as_the_head(tied: bool, table: float) -> None:
    assert bits("q4_k_m", tied=tied)["embedding"] == pytest.approx(table)


def test_fewer_than_four_query_heads_share_no_value_format() -> None:
    """Multi-head attention: values take Q3_K in Q2_K, not Q4_K."""
    whole = (LayerGroup(32, Block((Attention(4096, 32, 32, 128),), (Dense(4096, 11008),))),)
    assert bits("q2_k", whole)["attention"] == pytest.approx((2 * 2.625 + 2 * 3.4375) / 4)


def test_rows_that_are_no_multiple_of_256_take_smaller_blocks() -> None:
    """A width of 4160 = 16·256 + 64: Q5_0 (5.5 bits) stands in for Q4_K, Q8_0 for Q6_K."""
    odd = (LayerGroup(32, Block((Attention(4160, 32, 8, 128),), (Dense(4160, 14336),))),)
    found = bits("q4_k_m", odd)
    # q, k and v have rows of 4160, o of 4096; gate and up of 4160, down of 14336.
    q, kv, o = 4160 * 4096, 4160 * 1024, 4096 * 4160
    wide = (8.5 + 5.5) / 2
    assert found["attention"] == pytest.approx(
        (q * 5.5 + kv * (5.5 + wide) + o * 4.5) / (q + 2 * kv + o)
    )
    assert found["mlp"] == pytest.approx((2 * 5.5 + (6.5625 + 4.5) / 2) / 3)
    assert found["head"] == 8.5


def test_experts_are_mixed_as_a_mlp_is_and_routers_left_alone() -> None:
    groups = (LayerGroup(32, Block((Attention(4096, 32, 8, 128),), (Experts(4096, 8, 2, 14336),))),)
    found = bits("q4_k_m", groups)
    assert found["experts"] == pytest.approx((2 * 4.5 + (6.5625 + 4.5) / 2) / 3)
    assert "router" not in found


def test_names_that_are_no_mix() -> None:
    assert mix_formats(LLAMA, 4096, False, "q4_k") is None
    assert mix_formats(LLAMA, 4096, False, "Q4_K_M") is not None
    assert set(MIXES) >= {"q2_k", "q3_k_s", "q3_k_m", "q4_k_s", "q4_k_m", "q5_k_m", "q6_k"}


@pytest.mark.parametrize("name", sorted(MIXES))
def test_a_mix_lies_between_its_blocks(name: str) -> None:
    found = bits(name)
    assert all(2.6 <= value <= 6.6 for value in found.values())
    assert found["head"] >= found["mlp"]
