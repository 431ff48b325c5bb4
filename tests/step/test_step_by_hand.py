"""One step of a small model on a machine of round numbers, every figure worked by hand.

The model of `machine.DENSE`: a layer multiplies a token with 10,240 + 49,152 = 59,392 weights, four
of them and the head of 64,000 with 301,568. Attention reads 32 values a cached token and layer and
does 2·8·16 = 256 FLOPs on each. Peak 1 TFLOP/s, memory 10 GB/s: a ridge of 100 FLOP/byte.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.kernels import Kernel
from planner.models.attention import Attention
from planner.models.mlp import Dense
from planner.models.parts import Block, LayerGroup
from planner.models.spec import ModelSpec
from planner.step.breakdown import breakdown, kernel_work
from planner.step.coefficients import InseparableKernel, Layout, is_cached
from planner.step.evaluator import Step, make_step
from planner.step.limits import limits, saturation_intensity
from planner.step.model_steps import model_step, prompt_context, prompt_points
from planner.step.parallel import Sharding
from planner.step.ridges import ridges
from planner.step.timing import BOUNDS, Efficiency, Features, item_time
from tests.step.machine import DENSE, MIXTURE, machine

LAYER = 2 * 64 * 64 + 2 * 64 * 16 + 3 * 64 * 256
WEIGHTS = 4 * LAYER + 64_000
"""Weights a token is multiplied with [-]."""
CACHED_FLOPS = 4 * 2 * 8 * 16
CACHED_BYTES = 4 * 2 * 2 * 8 * 2
"""Of one cached token in all layers."""


def step_of(spec: ModelSpec = DENSE, **split: int) -> Step:
    return model_step(spec, machine(), Sharding(**split), spec.formats())


@pytest.mark.parametrize(("batch", "context"), [(1, 0), (1, 1000), (16, 1000), (512, 10)])
def test_work_of_a_step(batch: int, context: int) -> None:
    points = step_of().at(float(batch), float(context))
    flops = batch * (2 * WEIGHTS + context * CACHED_FLOPS)
    moved = 2 * WEIGHTS + batch * context * CACHED_BYTES
    assert float(points.flops) == flops
    assert float(points.bytes) == moved
    assert float(points.cache_bytes) == batch * context * CACHED_BYTES
    assert float(points.intensity) == pytest.approx(flops / moved, rel=1e-12)


def test_roofline_time_of_one_sequence() -> None:
    """All memory-bound at batch 1: 603,136 bytes of weights and 256,000 of cache at 10 GB/s."""
    assert WEIGHTS == 301_568
    points = step_of().at(1.0, 1000.0)
    assert float(points.roofline_s) == pytest.approx((603_136 + 256_000) / 1e10, rel=1e-12)


def test_roofline_time_where_products_are_compute_bound() -> None:
    """At batch 200 every product's 200 FLOP/byte passes the ridge of 100; attention's 4 does not.

    200·603,136 FLOPs at 1 TFLOP/s and 200·256,000 bytes at 10 GB/s.
    """
    points = step_of().at(200.0, 1000.0)
    expected = 200 * 603_136 / 1e12 + 200 * 256_000 / 1e10
    assert float(points.roofline_s) == pytest.approx(expected, rel=1e-12)
    assert float(points.of_batch.compute_s) == pytest.approx(200 * 603_136 / 1e12)
    assert float(points.of_batch.memory_s) == pytest.approx(603_136 / 1e10)


@pytest.mark.parametrize(
    ("split", "weights", "cache_share"),
    [
        ({"tp": 2}, WEIGHTS / 2, 1 / 2),
        # k and v (1,024 weights each) and their cache stay at a half.
        ({"tp": 4}, (WEIGHTS - 4 * 2_048) / 4 + 4 * 2_048 / 2, 1 / 2),
        ({"tp": 8}, (WEIGHTS - 4 * 2_048) / 8 + 4 * 2_048 / 2, 1 / 2),
    ],
)
def test_roofline_time_of_a_rank(split: dict[str, int], weights: float, cache_share: float) -> None:
    points = step_of(**split).at(1.0, 1000.0)
    expected = (2 * weights + 1000 * CACHED_BYTES * cache_share) / 1e10
    assert float(points.roofline_s) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(
    ("pp", "batch", "micro"),
    # Sequences of a stage at a time: batch/pp, one at least where there is one.
    [(1, 8, 8.0), (2, 8, 4.0), (4, 8, 2.0), (4, 2, 1.0), (4, 1, 1.0)],
)
def test_microbatches_of_a_pipeline(pp: int, batch: int, micro: float) -> None:
    figures = step_of(pp=pp).of_batch(float(batch))
    assert float(figures.sequences) == micro
    assert float(figures.microbatches) == batch / micro
    assert float(figures.weight_bytes) == 2 * WEIGHTS * batch / micro


@pytest.mark.parametrize(
    ("dp", "batch", "sequences"), [(1, 8, 8.0), (4, 8, 2.0), (8, 4, 1.0), (8, 8, 1.0)]
)
def test_sequences_of_a_rank_of_attention_dp(dp: int, batch: int, sequences: float) -> None:
    figures = step_of(attention_dp=dp).of_batch(float(batch))
    assert float(figures.sequences) == sequences
    assert float(figures.tokens[0]) == sequences
    assert float(figures.stage_tokens[0]) == batch


@pytest.mark.parametrize(("batch", "hit"), [(1, 2.0), (2, 3.5), (4, 5.46875)])
def test_a_mixture_reads_the_experts_it_hits(batch: int, hit: float) -> None:
    """Four layers of attention, router 512 and 8 experts of 6,144; head 64,000."""
    points = step_of(MIXTURE).at(float(batch), 0.0)
    weights = 4 * (10_240 + 512 + hit * 6_144) + 64_000
    assert float(points.bytes) == pytest.approx(2 * weights, rel=1e-9)
    active = 4 * (10_240 + 512 + 2 * 6_144) + 64_000
    assert float(points.flops) == batch * 2 * active


def test_experts_cost_a_rank_its_share_of_stage_tokens() -> None:
    """8 tokens on 4 ranks: a rank does 8·2·6,144·2/4 FLOPs a layer and reads a quarter of 7.2."""
    figures = step_of(MIXTURE, attention_dp=4, ep=4).of_batch(8.0)
    (row,) = figures.terms.experts.rows
    hit = 8 * (1 - 0.75**8)
    assert float(figures.pure.compute_s[row, 0]) == pytest.approx(4 * 8 * 2 * 2 * 6_144 / 4 / 1e12)
    assert float(figures.pure.memory_s[row, 0]) == pytest.approx(4 * hit * 6_144 * 2 / 4 / 1e10)
    # Two grouped products of 4 layers visit the experts hit, a quarter on each rank.
    assert float(figures.pure.visits[row, 0]) == pytest.approx(2 * 4 / 2 * hit / 4)


@pytest.mark.parametrize(
    ("efficiency", "seconds"),
    [
        # compute 3 s, memory 4 s, two launches, five visits.
        ({}, 4.0),
        ({"sharpness": 2.0}, 5.0),
        ({"sharpness": 1.0}, 7.0),
        ({"memory": 0.5}, 8.0),
        ({"compute": 0.25}, 12.0),
        ({"compute": 0.5, "memory": 0.5, "sharpness": 2.0}, 10.0),
        ({"launch_s": 0.1}, 4.2),
        ({"visit_s": 0.1}, 4.5),
        ({"launch_s": 0.1, "visit_s": 0.1, "sharpness": 2.0}, 5.7),
    ],
)
def test_time_of_an_item(efficiency: dict[str, float], seconds: float) -> None:
    features = Features(*(np.array([[x]]) for x in (3.0, 4.0, 2.0, 5.0)))
    values = {"memory": 1.0, "compute": 1.0, "launch_s": 0.0, "visit_s": 0.0, "sharpness": math.inf}
    reached = Efficiency(**{k: np.array([v]) for k, v in (values | efficiency).items()})
    assert item_time(features, reached.column(slice(None)))[0, 0] == pytest.approx(seconds)


def slowed(step: Step, **figures: float) -> Step:
    ideal = Efficiency.ideal(len(step.items))
    arrays = {name: np.full(len(step.items), value) for name, value in figures.items()}
    scale = arrays.pop("scale", np.array([1.0]))[0]
    return step.reaching(replace(ideal, **arrays, scale=float(scale)))


def test_launches_of_a_step() -> None:
    """Four layers of qkv, o, gate and up, down and attention; the head; a glue item a layer and one
    of the step: 4·5 + 1 + 4 + 1 = 26 launches of 1 µs.
    """
    step = slowed(step_of(), launch_s=1e-6)
    points = step.at(1.0, 0.0)
    floors = float(points.kernel_launch_s)
    assert floors == pytest.approx(21e-6)
    glue = 4 * 64 * 2 / 1e10
    pure = 2 * WEIGHTS / 1e10
    assert float(points.total_s) == pytest.approx(26e-6 + pure + glue)


@pytest.mark.parametrize(("batch", "visits"), [(1, 8), (3, 24)])
def test_visits_of_attention_are_pairs_of_sequence_and_head(batch: int, visits: int) -> None:
    """Two KV heads in each of four layers."""
    points = slowed(step_of(), visit_s=1e-6).at(float(batch), 10.0)
    assert float(points.kernel_launch_s) == pytest.approx(visits * 1e-6)


@pytest.mark.parametrize("scale", [1.0, 1.5, 3.0])
def test_a_scale_is_on_the_whole_step(scale: float) -> None:
    plain = slowed(step_of(), launch_s=1e-6, visit_s=1e-7, memory=0.8)
    scaled = slowed(step_of(), launch_s=1e-6, visit_s=1e-7, memory=0.8, scale=scale)
    before, after = (float(s.at(7.0, 99.0).total_s) for s in (plain, scaled))
    assert after == pytest.approx(before * scale)
    bounds = [s.at(7.0, 99.0).bounds_s for s in (plain, scaled)]
    assert bounds[1] == pytest.approx(bounds[0] * scale)


@given(
    st.integers(1, 300),
    st.integers(0, 5000),
    st.sampled_from([{}, {"tp": 2}, {"tp": 4, "pp": 2}, {"pp": 4}]),
)
@settings(max_examples=40, deadline=None)
def test_bounds_and_kernels_add_up(batch: int, context: int, split: dict[str, int]) -> None:
    step = slowed(step_of(**split), launch_s=1e-6, visit_s=1e-8, memory=0.7, sharpness=3.0)
    points = step.at(float(batch), float(context))
    assert points.bounds_s.shape == (len(BOUNDS),)
    assert float(points.bounds_s.sum()) == pytest.approx(float(points.total_s), rel=1e-9)
    table = breakdown(step, points)
    others = np.add.reduce(points.of_batch.item_s[points.of_batch.kernels :], axis=0)
    assert table.time_s.sum() + float(others[0]) == pytest.approx(float(points.total_s), rel=1e-9)
    assert (table.time_s >= table.launch_s).all()
    assert (table.compute_s + table.memory_s + table.launch_s >= table.time_s * (1 - 1e-9)).all()


def test_breakdown_of_one_point() -> None:
    step = step_of()
    table = breakdown(step, step.at(2.0, 100.0))
    rows = dict(
        zip(table.names, zip(table.launches, table.flops, table.bytes, strict=True), strict=True)
    )
    assert rows["mlp_up"] == (4, 4 * 2 * 2 * 64 * 512, 4 * 2 * 64 * 512)
    assert rows["qkv_proj"] == pytest.approx((4, 4 * 2 * 2 * 64 * 96, 4 * 2 * 64 * 96))
    assert rows["attention"] == pytest.approx((4, 2 * 100 * CACHED_FLOPS, 2 * 100 * CACHED_BYTES))
    assert rows["lm_head"] == pytest.approx((1, 2 * 2 * 64_000, 2 * 64_000))
    flops, moved = kernel_work(step, step.at(2.0, 100.0))
    assert sum(flops) == pytest.approx(sum(row[1] for row in rows.values()))
    assert sum(moved) == pytest.approx(sum(row[2] for row in rows.values()))


def test_intensity_saturates_at_that_of_the_cache() -> None:
    """(603,136 + 1000·1,024)/(1000·256) = 6.36 FLOP/byte at 1000 tokens, 4 at ever more."""
    step = step_of()
    assert saturation_intensity(step, 1000.0) == pytest.approx(1_627_136 / 256_000)
    assert saturation_intensity(step, 1e9) == pytest.approx(4.0, abs=1e-3)
    # Two tokens a sequence: their FLOPs twice, the cache once.
    assert saturation_intensity(step, 1000.0, 2.0) == pytest.approx(2 * 1_627_136 / 256_000)
    # Half the KV heads on four ranks: the cache is read twice.
    assert saturation_intensity(step_of(tp=4), 1000.0) == pytest.approx(1_627_136 / 512_000)


@pytest.mark.parametrize(
    ("context", "batch"),
    [
        # B·(603,136 + 1,024·C)/1e12 ≥ (603,136 + 256·B·C)/1e10:
        # B ≥ 100·603,136/(603,136 − 24,576·C).
        (0, 100),
        (10, 169),
        (20, 541),
        (24, 4531),
        (25, None),
        (1000, None),
    ],
)
def test_crossover(context: int, batch: int | None) -> None:
    if batch is not None:
        exact = 100 * 603_136 / (603_136 - (25_600 - 1_024) * context)
        assert batch == math.ceil(exact - 1e-9)
    assert limits(step_of(), float(context)).crossover_batch == batch


def test_limits_at_a_context() -> None:
    """603,136 bytes of weights equal 2,560 bytes of cache a sequence from batch 236 on."""
    found = limits(step_of(), 10.0)
    assert (found.ridge_point, found.ridge_format) == (100, "bf16")
    assert found.crossover_batch == 169
    assert found.weights_equal_kv_batch == 236
    assert found.crossover_reason == "compute-bound from batch 169 on"
    never = limits(step_of(), 1000.0)
    assert never.crossover_batch is None
    assert never.crossover_reason.startswith("memory-bound at every batch: intensity saturates at")
    empty = limits(step_of(), 0.0)
    assert (empty.saturation_intensity, empty.weights_equal_kv_batch) == (None, None)


def test_the_knee_is_where_a_sequence_adds_half_of_the_first() -> None:
    """Without a cache a step takes max(60.3, 0.603·B) µs: rates rise evenly to batch 100."""
    assert limits(step_of(), 0.0).knee_batch == 99
    # With 100 tokens each sequence adds 2.56 µs: B/(60.3 + 2.56·B) grows by half its first at
    # (1 + B·0.0424)² ≈ 2·1.0424: batch 10.
    rate = [b / (60.3136 + 2.56 * b) for b in range(30)]
    half = 0.5 * rate[1]
    expected = max(b for b in range(29) if rate[b + 1] - rate[b] >= half)
    assert limits(step_of(), 100.0).knee_batch == expected


@pytest.mark.parametrize(
    ("isl", "hit", "context", "fresh"),
    [
        (1000, 0.0, 500, 1000),
        (1000, 0.5, 750, 500),
        (1000, 0.9, 950, 100),
        # One token at least is fresh.
        (1000, 1.0, 999.5, 1),
        (1, 0.0, 0.5, 1),
    ],
)
def test_what_a_prompt_token_attends_to(
    isl: float, hit: float, context: float, fresh: float
) -> None:
    attended, new = prompt_context(isl, hit)
    assert float(attended) == pytest.approx(context)
    assert float(new) == pytest.approx(fresh)


def test_a_prompt_runs_the_head_once() -> None:
    """1000 tokens through four layers, 500 attended on average; logits of one need no product."""
    step = model_step(DENSE, machine(), Sharding(), DENSE.formats(), prompt=True)
    points = prompt_points(step, 1000.0)
    assert float(points.flops) == 1000 * (2 * 4 * LAYER + 500 * CACHED_FLOPS)
    assert float(points.bytes) == 2 * WEIGHTS + 500 * CACHED_BYTES
    two = prompt_points(step, 1000.0, prompts=2.0)
    assert float(two.flops) == 2 * float(points.flops)


WINDOWED = replace(
    DENSE,
    groups=(
        LayerGroup(2, Block((Attention(64, 8, 2, 8),), (Dense(64, 256),))),
        LayerGroup(2, Block((Attention(64, 8, 2, 8, window=100.0),), (Dense(64, 256),))),
    ),
)


@pytest.mark.parametrize(
    ("context", "tokens"), [(50, 4 * 50), (100, 4 * 100), (101, 2 * 101 + 200), (1000, 2200)]
)
def test_windows_stop_growing(context: int, tokens: int) -> None:
    points = step_of(WINDOWED).at(3.0, float(context))
    assert float(points.cache_bytes) == 3 * tokens * CACHED_BYTES / 4


def test_a_kernel_of_weights_and_cache_is_refused() -> None:
    both = Kernel("odd", "gemm", "bf16", 0.0, weight_bytes=10.0, bytes_per_cached=1.0)
    with pytest.raises(InseparableKernel, match="kernel odd reads weights and a cache"):
        is_cached(both)
    with pytest.raises(InseparableKernel):
        make_step((both,), (), Sharding(), machine(), Layout())
    assert is_cached(replace(both, weight_bytes=0.0))
    assert not is_cached(replace(both, bytes_per_cached=0.0))


def test_ridges_of_datasheets() -> None:
    """H100 SXM: 989.4 (bf16) and 1978.9 (fp8) TFLOP/s dense over 3.35 TB/s."""
    rows = {row["format"]: row for row in ridges(["h100-sxm5"])}
    assert rows["bf16"]["ridge_point"] == pytest.approx(295.4, abs=0.5)
    assert rows["fp8"]["ridge_point"] == pytest.approx(590.7, abs=1.0)
    for row in ridges():
        assert row["ridge_point"] == row["peak_flops_per_s"] / row["bandwidth_bytes_per_s"]


def test_ridges_of_an_own_machine() -> None:
    own = {
        "peaks_flops_per_s": {"bf16": 1e12, "fp8": 2e12},
        "bandwidth_bytes_per_s": 1e10,
        "memory_bytes": 1e9,
        "source": "round numbers",
    }
    rows = ridges([own])
    assert [(row["gpu"], row["format"], row["ridge_point"]) for row in rows] == [
        ("custom", "bf16", 100.0),
        ("custom", "fp8", 200.0),
    ]
    assert {row["measured_ridge_point"] for row in rows} == {None}
