"""Sharding: shares of weights and caches, collectives, refusals."""

from __future__ import annotations

import numpy as np
import pytest

from planner.engines.memory import sequence_bytes
from planner.hw import get_accelerator
from planner.models import get_model
from planner.models.spec import ModelSpec
from planner.roofline import Array
from planner.step.figures import StepPoints
from planner.step.model_steps import model_step
from planner.step.parallel import Collective, InvalidSharding, Sharding, collectives

LLAMA = "meta-llama/Llama-3.1-70B-Instruct"
V3 = "deepseek-ai/DeepSeek-V3"


@pytest.mark.parametrize(
    ("tp", "share"), [(1, 1.0), (2, 0.5), (8, 1 / 8), (16, 1 / 8), (64, 1 / 8)]
)
def test_kv_heads_replicate_beyond_their_number(tp: int, share: float) -> None:
    """Llama-3-70B has 8 KV heads: 327,680 B per token at 16 bits, an eighth at tp=8 and beyond."""
    spec = get_model(LLAMA)
    assert sequence_bytes(spec, Sharding(tp=tp), spec.formats()).per_token == 327_680 * share


def test_weights_of_a_rank() -> None:
    """70,553,706,496 parameters at 16 bits; 161 norms of 8,192 are on every rank."""
    spec = get_model(LLAMA)
    norms = 161 * 8192 * 2
    assert spec.weights_bytes() == 2 * 70_553_706_496
    assert spec.weights_bytes(tp=4, ranks=4) == (2 * 70_553_706_496 - norms) / 4 + norms


def test_k_and_v_projections_replicate_with_their_heads() -> None:
    spec = get_model(LLAMA)
    extra = spec.weights_bytes(tp=16, ranks=16) - spec.weights_bytes(tp=8, ranks=8) / 2
    k_and_v = 80 * 2 * 8192 * 1024 * 2
    assert extra == pytest.approx(k_and_v / 8 - k_and_v / 16 + 161 * 8192, rel=1e-9)


def points(spec: ModelSpec, sharding: Sharding, batch: float = 64.0) -> StepPoints:
    step = model_step(spec, get_accelerator("h200-sxm"), sharding, spec.formats())
    return step.at(batch, 1024.0)


def expert_times(spec: ModelSpec, sharding: Sharding) -> Array:
    """Time of the experts' FLOPs and bytes at datasheet rates, on one rank [s]."""
    of_batch = points(spec, sharding).of_batch
    rows = of_batch.terms.experts.rows
    return np.array([of_batch.pure.compute_s[rows].sum(), of_batch.pure.memory_s[rows].sum()])


def test_experts_spread_over_attention_dp_ranks() -> None:
    spec = get_model(V3)
    wide = spec.weights_bytes(tp=1, ranks=8)
    routed = sum(
        group.count * experts.experts * experts.params
        for group in spec.groups
        for part in group.block.mlps
        if (experts := part.routed())
    )
    per_expert_byte = spec.formats().weights["experts"].bytes
    assert spec.weights_bytes() - wide == pytest.approx(routed * per_expert_byte * 7 / 8)


@pytest.mark.parametrize("sharding", [Sharding(tp=8), Sharding(attention_dp=8, ep=8)])
def test_experts_read_do_not_depend_on_how_they_are_spread(sharding: Sharding) -> None:
    spec = get_model(V3)
    one, spread = expert_times(spec, Sharding()), expert_times(spec, sharding)
    assert 8 * spread == pytest.approx(one)


def test_a_pipeline_reads_weights_once_a_microbatch() -> None:
    spec = get_model(LLAMA)
    flat, piped = points(spec, Sharding()), points(spec, Sharding(pp=4))
    assert piped.of_batch.weight_bytes == pytest.approx(4 * flat.of_batch.weight_bytes)
    assert piped.cache_bytes == pytest.approx(flat.cache_bytes)
    single = points(spec, Sharding(pp=4), batch=1.0)
    assert single.of_batch.weight_bytes == pytest.approx(flat.of_batch.weight_bytes)


@pytest.mark.parametrize(
    ("op", "ranks", "factor"),
    [("all_reduce", 8, 2 * 7 / 8), ("all_gather", 4, 3 / 4), ("send", 2, 1.0)],
)
def test_wire_bytes_of_a_collective(op: str, ranks: int, factor: float) -> None:
    """Bandwidth-optimal algorithms: Thakur, Rabenseifner and Gropp, 2005."""
    assert Collective(op, 1, ranks, 1.0).wire_factor == factor


def test_two_all_reduces_a_layer_under_tp() -> None:
    found = collectives(get_model(LLAMA), Sharding(tp=8))
    assert [(c.op, c.count) for c in found] == [("all_reduce", 160), ("all_gather", 1)]
    assert found[0].bytes_per_token == 8192 * 2
    assert collectives(get_model(LLAMA), Sharding()) == ()


def test_experts_exchange_tokens_under_attention_dp() -> None:
    """DeepSeek-V3: 58 of 61 layers are mixtures; a token goes to 8 experts."""
    found = collectives(get_model(V3), Sharding(attention_dp=8, ep=8))
    assert [(c.op, c.count) for c in found] == [("all_to_all", 116)]
    assert found[0].bytes_per_token == 8 * 7168 * 2


@pytest.mark.parametrize(
    ("model", "sharding", "words"),
    [
        (LLAMA, Sharding(tp=3), "tp: 3 does not divide the 64 attention heads"),
        (V3, Sharding(tp=8, ep=3), "ep: 3 does not divide tp·attention_dp = 8"),
        (LLAMA, Sharding(pp=81), "pp: 81 exceeds the model's 80 layers"),
    ],
)
def test_impossible_splits_are_refused(model: str, sharding: Sharding, words: str) -> None:
    with pytest.raises(InvalidSharding, match=words):
        sharding.check(get_model(model))
