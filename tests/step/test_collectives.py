"""Collectives of a step: how many, how large, and what each puts on the wire, worked by hand."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from planner.hw import MissingFigure
from planner.models import get_model
from planner.models.spec import ModelSpec
from planner.step.model_steps import model_step
from planner.step.parallel import (
    ONE_SHOT_BYTES,
    Collective,
    InvalidSharding,
    Sharding,
    collectives,
    link_bandwidth,
)
from tests.step.machine import DENSE, MIXTURE, machine

LLAMA = "meta-llama/Llama-3.1-70B-Instruct"
V3 = "deepseek-ai/DeepSeek-V3"
SCOUT = "meta-llama/Llama-4-Scout-17B-16E-Instruct"


@pytest.mark.parametrize(
    ("op", "ranks", "factor"),
    [
        # Ring all-reduce: reduce-scatter and all-gather, each (n − 1)/n of the message.
        ("all_reduce", 2, 1.0),
        ("all_reduce", 4, 1.5),
        ("all_reduce", 8, 1.75),
        ("all_gather", 2, 0.5),
        ("all_gather", 8, 0.875),
        ("reduce_scatter", 4, 0.75),
        ("all_to_all", 16, 0.9375),
        ("send", 2, 1.0),
    ],
)
def test_bytes_on_the_wire_of_a_byte_of_message(op: str, ranks: int, factor: float) -> None:
    assert Collective(op, 1, ranks, 1.0).wire_factor == factor


@pytest.mark.parametrize(
    ("op", "ranks", "tokens", "wire_bytes"),
    [
        # One token of 8192 values at 16 bits is 16,384 bytes; with two ranks both forms are one.
        ("all_reduce", 2, 1, 16_384),
        ("all_reduce", 2, 1024, 16_777_216),
        # Each rank gets the whole message of 7 others: 32 tokens are 0.52 MB.
        ("all_reduce", 8, 1, 7 * 16_384),
        ("all_reduce", 8, 32, 7 * 524_288),
        # Past 1 MB (61 tokens) a second exchange pays: 1.75·16.8 MB + (7 − 1.75)·1 MB.
        ("all_reduce", 8, 1024, 1.75 * 16_777_216 + 5.25e6),
        ("all_reduce", 4, 1024, 1.5 * 16_777_216 + 1.5e6),
        # Only an all-reduce has two forms.
        ("all_gather", 8, 32, 0.875 * 524_288),
        ("all_to_all", 8, 1024, 0.875 * 16_777_216),
        ("send", 2, 32, 524_288),
    ],
)
def test_bytes_of_a_message(op: str, ranks: int, tokens: int, wire_bytes: float) -> None:
    assert Collective(op, 160, ranks, 16_384).wire_bytes(tokens) == pytest.approx(wire_bytes)


@pytest.mark.parametrize("ranks", [2, 3, 4, 6, 8, 16])
def test_both_forms_of_an_all_reduce_meet_at_one_size(ranks: int) -> None:
    """At 1 MB (n − 1)·m = 2(n − 1)/n·m + turn; bytes grow with the message, and ever slower."""
    sent = Collective("all_reduce", 1, ranks, 1.0)
    at = float(sent.wire_bytes(ONE_SHOT_BYTES))
    assert at == pytest.approx((ranks - 1) * 1e6)
    sizes = np.geomspace(1.0, 1e9, 200)
    moved = np.asarray(sent.wire_bytes(sizes))
    assert (np.diff(moved) > 0).all()
    assert (np.diff(moved / sizes) <= 1e-9).all()
    assert moved[-1] / sizes[-1] == pytest.approx(sent.wire_factor, rel=0.02)


@pytest.mark.parametrize(
    ("tokens", "measured_s"),
    [
        # Llama-70B in FP8 on 8 H200 under TensorRT-LLM, 1024 tokens in and 8192 out: TPOT of 4 to
        # 128 clients grows from 6.45 to 20.7 ms; taking away what 160 all-reduces share with all
        # else, one takes 3.6 µs at 4 tokens, 8.8 µs at 16, 15.9 µs at 32, 31 µs at 64.
        (16, 8.8e-6),
        (32, 15.9e-6),
        (64, 31.3e-6),
    ],
)
def test_one_exchange_explains_what_eight_ranks_take(tokens: int, measured_s: float) -> None:
    """2.5 µs and the bytes of one exchange at 56% of 450 GB/s, within a seventh."""
    sent = Collective("all_reduce", 1, 8, 16_384)
    seconds = 2.5e-6 + float(sent.wire_bytes(tokens)) / (0.56 * 450e9)
    assert seconds == pytest.approx(measured_s, rel=0.15)


@pytest.mark.parametrize("split", [{"tp": 8}, {"tp": 2, "attention_dp": 4}, {"tp": 4, "pp": 2}])
def test_a_step_takes_the_bytes_of_its_collectives(split: dict[str, int]) -> None:
    """Batches on both sides of the turn: links carry `count` messages of each collective."""
    step = model_step(DENSE, machine(), Sharding(**split), DENSE.formats())
    batch = np.array([4.0, 400.0, 4e4, 4e6])
    figures = step.of_batch(batch)
    first = figures.kernels
    for place, sent in enumerate(step.collectives):
        tokens = figures.stage_tokens if sent.tokens_of == "stage" else figures.tokens
        expected = sent.count * np.asarray(sent.wire_bytes(tokens)) / 1e9
        assert figures.pure.memory_s[first + place] == pytest.approx(expected)


def summary(spec: ModelSpec, sharding: Sharding) -> list[tuple[str, int, int, float, str]]:
    return [
        (c.op, c.count, c.ranks, c.bytes_per_token, c.tokens_of)
        for c in collectives(spec, sharding)
    ]


HIDDEN = 64 * 2
"""A token's hidden state at 16 bits [byte]."""


@pytest.mark.parametrize(
    ("spec", "split", "sent"),
    [
        (DENSE, {}, []),
        # After attention and MLP of each of 4 layers; logits of 1000 tokens are gathered.
        (
            DENSE,
            {"tp": 2},
            [("all_reduce", 8, 2, HIDDEN, "rank"), ("all_gather", 1, 2, 2000, "rank")],
        ),
        (
            DENSE,
            {"tp": 4, "pp": 2},
            [
                ("all_reduce", 8, 4, HIDDEN, "rank"),
                ("all_gather", 1, 4, 2000, "rank"),
                ("send", 1, 2, HIDDEN, "rank"),
            ],
        ),
        (DENSE, {"pp": 4}, [("send", 3, 2, HIDDEN, "rank")]),
        # Replicas of a dense model have nothing to say to each other.
        (DENSE, {"attention_dp": 8}, []),
        # A mixture under tensor parallelism alone is reduced like a dense model.
        (
            MIXTURE,
            {"tp": 2},
            [("all_reduce", 8, 2, HIDDEN, "rank"), ("all_gather", 1, 2, 2000, "rank")],
        ),
        # Experts split by width: everybody's tokens are gathered and results scattered.
        (
            MIXTURE,
            {"attention_dp": 4},
            [("all_gather", 4, 4, HIDDEN, "stage"), ("reduce_scatter", 4, 4, HIDDEN, "stage")],
        ),
        # By expert: each token goes to its two experts and comes back.
        (MIXTURE, {"attention_dp": 4, "ep": 4}, [("all_to_all", 8, 4, 2 * HIDDEN, "rank")]),
        # Attention is reduced within a pair, experts exchange over all 8.
        (
            MIXTURE,
            {"tp": 2, "attention_dp": 4, "ep": 8},
            [
                ("all_reduce", 4, 2, HIDDEN, "rank"),
                ("all_gather", 1, 2, 2000, "rank"),
                ("all_to_all", 8, 8, 2 * HIDDEN, "rank"),
            ],
        ),
    ],
)
def test_collectives_of_a_step(
    spec: ModelSpec, split: dict[str, int], sent: list[tuple[str, int, int, float, str]]
) -> None:
    assert summary(spec, Sharding(**split)) == sent


def test_a_token_goes_to_no_more_ranks_than_there_are() -> None:
    """Two experts of eight on two ranks: at most two messages; with one expert a token, one."""
    pair = collectives(MIXTURE, Sharding(attention_dp=2, ep=2))[0]
    assert pair.bytes_per_token == 2 * HIDDEN
    wide = get_model(V3)
    assert collectives(wide, Sharding(attention_dp=4, ep=4))[0].bytes_per_token == 4 * 7168 * 2
    assert collectives(wide, Sharding(attention_dp=64, ep=64))[0].bytes_per_token == 8 * 7168 * 2


@pytest.mark.parametrize(
    ("model", "split", "op", "count"),
    [
        # 80 layers, two reductions each.
        (LLAMA, {"tp": 8}, "all_reduce", 160),
        # 61 layers; 58 mixtures leave their reduction to the exchange.
        (V3, {"tp": 8}, "all_reduce", 122),
        (V3, {"tp": 4, "attention_dp": 2, "ep": 8}, "all_reduce", 122 - 58),
        (V3, {"attention_dp": 8}, "reduce_scatter", 58),
        # Shared and routed experts of a layer are reduced together.
        (SCOUT, {"tp": 8}, "all_reduce", 96),
        # Every layer is one mixer or one MLP.
        ("nvidia/Nemotron-H-56B-Base-8K", {"tp": 8}, "all_reduce", 118),
    ],
)
def test_reductions_of_published_models(
    model: str, split: dict[str, int], op: str, count: int
) -> None:
    found = {c.op: c for c in collectives(get_model(model), Sharding(**split))}
    assert found[op].count == count


@pytest.mark.parametrize(
    ("split", "batch", "wire_s"),
    [
        # All-reduce at 2: 8·1.0·128 bytes a token; gathered logits 0.5·2000: 2,024 B at 1 GB/s.
        ({"tp": 2}, 1, 2_024e-9),
        ({"tp": 2}, 10, 20_240e-9),
        # At 4, messages of 1,280 bytes to 3 others: 8·3·128 + 0.75·2000 a token.
        ({"tp": 4}, 10, 45_720e-9),
        # Of 1.28 MB, in two exchanges: 8·(1.5·1.28 + 1.5·1) + 0.75·20 MB.
        ({"tp": 4}, 10_000, 42.36e-3),
        # Two microbatches of 5 sequences: one send of 128 bytes each.
        ({"pp": 2}, 10, 5 * 128e-9),
        ({"tp": 2, "pp": 2}, 10, 5 * (2_024 + 128) * 1e-9),
    ],
)
def test_time_on_the_wire(split: dict[str, int], batch: int, wire_s: float) -> None:
    step = model_step(DENSE, machine(), Sharding(**split), DENSE.formats())
    figures = step.of_batch(float(batch))
    kernels, sent = figures.kernels, len(step.collectives)
    memory = figures.pure.memory_s[kernels : kernels + sent, 0]
    assert float(memory.sum()) == pytest.approx(wire_s, rel=1e-12)
    assert not figures.pure.compute_s[kernels : kernels + sent].any()


@pytest.mark.parametrize(
    ("split", "wire_bytes"),
    [
        # 12 sequences on 4 ranks. Of all 12 tokens: 4·(0.75 + 0.75)·128.
        ({"attention_dp": 4}, 12 * 4 * 1.5 * 128),
        # Of a rank's 3 tokens: 8·0.75·256.
        ({"attention_dp": 4, "ep": 4}, 3 * 8 * 0.75 * 256),
    ],
)
def test_wire_of_experts(split: dict[str, int], wire_bytes: float) -> None:
    step = model_step(MIXTURE, machine(), Sharding(**split), MIXTURE.formats())
    figures = step.of_batch(12.0)
    sent = figures.pure.memory_s[figures.kernels : figures.kernels + len(step.collectives)]
    assert float(sent.sum()) == pytest.approx(wire_bytes / 1e9, rel=1e-12)


def test_visits_of_a_collective_are_doublings_of_its_group() -> None:
    """8 reductions over 4 ranks: 8·log2(4) = 16; the gather once: 2."""
    step = model_step(DENSE, machine(), Sharding(tp=4), DENSE.formats())
    terms = step.batch_items
    first = len(terms.kernels)
    assert terms.visits[first : first + 2].tolist() == [16, 2]
    assert terms.launches[first : first + 2].tolist() == [8, 1]
    assert [item.kind for item in terms.items[first:]] == [
        "all_reduce",
        "all_gather",
        "layer",
        "step",
    ]


@pytest.mark.parametrize(
    ("split", "ranks", "gpus"),
    [
        ({}, 1, 1),
        ({"tp": 8}, 8, 8),
        ({"tp": 2, "pp": 3}, 2, 6),
        ({"tp": 2, "pp": 3, "attention_dp": 4, "ep": 8}, 8, 24),
    ],
)
def test_gpus_of_a_replica(split: dict[str, int], ranks: int, gpus: int) -> None:
    sharding = Sharding(**split)
    assert (sharding.ranks, sharding.gpus) == (ranks, gpus)


@pytest.mark.parametrize(
    ("tp", "ways", "share"),
    [(1, 8, 1.0), (4, 8, 0.25), (8, 2, 0.5), (16, 1, 1.0), (4, math.inf, 0.25)],
)
def test_share_of_what_splits_so_many_ways(tp: int, ways: float, share: float) -> None:
    assert Sharding(tp).share(ways) == share


def test_shares_broadcast() -> None:
    assert Sharding(8).share(np.array([1.0, 4.0, 64.0])).tolist() == [1.0, 0.25, 0.125]


@pytest.mark.parametrize(
    ("spec", "split", "message"),
    [
        (DENSE, {"tp": 3}, r"tp: 3 does not divide the 8 attention heads of small; .*1, 2, 4, 8"),
        (DENSE, {"tp": 16}, "tp: 16 does not divide the 8 attention heads"),
        (DENSE, {"tp": 2, "ep": 3}, r"ep: 3 does not divide tp·attention_dp = 2; accepted: 1, 2"),
        (DENSE, {"pp": 5}, "pp: 5 exceeds the model's 4 layers"),
        (MIXTURE, {"tp": 2, "attention_dp": 3, "ep": 4}, r"= 6; accepted: 1, 2, 3, 6"),
    ],
)
def test_impossible_splits_name_the_field(
    spec: ModelSpec, split: dict[str, int], message: str
) -> None:
    with pytest.raises(InvalidSharding, match=message) as raised:
        Sharding(**split).check(spec)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("split", [{"tp": 8, "pp": 4}, {"attention_dp": 16, "ep": 16}, {"tp": 2}])
def test_possible_splits_pass(split: dict[str, int]) -> None:
    Sharding(**split).check(MIXTURE)


def test_no_link_no_collective() -> None:
    alone = machine(link=None)
    assert model_step(DENSE, alone, Sharding(), DENSE.formats()).collectives == ()
    with pytest.raises(MissingFigure, match="gpu: custom has no link bandwidth on record"):
        model_step(DENSE, alone, Sharding(tp=2), DENSE.formats())
    assert link_bandwidth(machine()) == 1e9


@pytest.mark.parametrize(("tp", "pp", "dp"), list(product([1, 2, 4], [1, 2, 4], [1, 2])))
def test_a_split_changes_neither_work_nor_weights(tp: int, pp: int, dp: int) -> None:
    """The same FLOPs however a step is split; its weights once a rank and microbatch."""
    whole = model_step(DENSE, machine(), Sharding(), DENSE.formats()).at(16.0, 100.0)
    split = Sharding(tp, pp, attention_dp=dp)
    points = model_step(DENSE, machine(), split, DENSE.formats()).at(16.0, 100.0)
    assert float(points.flops) == pytest.approx(float(whole.flops), rel=1e-12)
    assert float(points.cache_bytes) == pytest.approx(
        float(whole.cache_bytes) * max(1, tp / 2), rel=1e-12
    )


def test_a_wider_vocabulary_gathers_more() -> None:
    wide = replace(DENSE, vocab=4000)
    gathered = collectives(wide, Sharding(tp=2))[1]
    assert gathered.bytes_per_token == 8_000
