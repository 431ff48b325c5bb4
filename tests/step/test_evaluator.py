"""The evaluator: separable in batch and context, and right by hand."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.calibration import shipped, subject_of
from planner.hw import get_accelerator, list_accelerators
from planner.kernels import Kernel, expected_distinct_experts, skewed_distinct_experts
from planner.models import get_model
from planner.models.spec import ModelSpec
from planner.step.busiest import experts_on_busiest, tokens_on_busiest
from planner.step.coefficients import InseparableKernel, Layout
from planner.step.evaluator import Step, make_step
from planner.step.figures import StepPoints
from planner.step.limits import limits
from planner.step.model_steps import model_step, prompt_context, prompt_points
from planner.step.parallel import Sharding
from planner.step.timing import BOUNDS, Efficiency

MODELS = [
    "meta-llama/Llama-3.1-70B-Instruct",
    "deepseek-ai/DeepSeek-V3",
    "google/gemma-3-27b-it",
    "Qwen/Qwen3-Next-80B-A3B-Instruct",
    "openai/gpt-oss-120b",
    "deepseek-ai/DeepSeek-V3.2",
]
SPLITS = [
    Sharding(),
    Sharding(tp=4),
    Sharding(pp=2),
    Sharding(tp=2, pp=4),
    Sharding(attention_dp=8, ep=8),
    Sharding(tp=8, ep=8),
]


def calibrated(spec: ModelSpec, gpu: str, sharding: Sharding, prompt: bool = False) -> Step:
    accelerator, formats = get_accelerator(gpu), spec.formats()
    calibration = shipped()
    step = model_step(
        spec, accelerator, sharding, formats, calibration.routing_spread, prompt=prompt
    )
    subject = subject_of(spec, accelerator, formats, "vllm")
    phase = "prompt" if prompt else "decode"
    return step.reaching(calibration.efficiency(step.items, subject, phase))


def one_by_one(step: Step, batch: float, context: float, queries: float) -> float:
    """The time of a step from its kernels' laws, one kernel at a time in plain Python [s]."""
    split, e, total, roof = step.sharding, step.efficiency, 0.0, 0.0
    positions = [*step.batch_items.kernels, *step.context_items.kernels]
    order = [
        *range(len(step.batch_items.items)),
        *range(len(step.batch_items.items), len(step.items)),
    ]
    kernel_items = order[: len(step.batch_items.kernels)] + order[len(step.batch_items.items) :]
    micro = max(batch / split.pp, min(batch, 1.0))
    sequences = max(micro / split.attention_dp, min(micro, 1.0))
    gpu = step.accelerator

    def timed(item: int, compute: float, memory: float, launches: float, visits: float) -> float:
        a, b, p = compute / e.compute[item], memory / e.memory[item], e.sharpness[item]
        body = max(a, b) if math.isinf(p) or not (a and b) else (a**p + b**p) ** (1 / p)
        return (launches * e.launch_s[item] + visits * e.visit_s[item] + body) * e.scale

    for position, item in zip(positions, kernel_items, strict=True):
        kernel = step.kernels[position]
        peak = gpu.peak(gpu.compute_format(kernel.compute)[0])
        attended = min(context, kernel.window)
        flops = (kernel.flops_per_token + kernel.flops_per_cached * attended) * queries
        cache_share = 1 / min(split.tp, kernel.cache_ways)
        cache = (kernel.bytes_per_sequence + kernel.bytes_per_cached * attended) * sequences
        if kernel.experts:
            tokens = micro * queries
            hit = float(expected_distinct_experts(kernel.experts, kernel.top_k, tokens))
            skewed = float(
                skewed_distinct_experts(kernel.experts, kernel.top_k, tokens, step.routing_spread)
            )
            flops_s = flops * micro / split.ranks / peak
            weights_s = kernel.weight_bytes / kernel.experts / split.ranks
            weights_s /= gpu.bandwidth_bytes_per_s
            most = 1.0
            if split.ep > 1:  # the busiest rank
                skewed = float(experts_on_busiest(kernel.experts, skewed, split.ep))
                laws = (kernel.experts, kernel.top_k, tokens, split.ep, step.routing_spread)
                most = float(tokens_on_busiest(*laws))
            visits = kernel.launches / 2 * skewed / split.ep
            total += timed(item, flops_s * most, weights_s * skewed, kernel.launches, visits)
            roof += max(flops_s, weights_s * hit)
            continue
        flops_s = flops * sequences / min(split.tp, kernel.flop_ways) / peak
        weights = kernel.weight_bytes / min(split.tp, kernel.weight_ways)
        moved_s = (weights + cache * cache_share) / gpu.bandwidth_bytes_per_s
        heads = kernel.cache_ways if math.isfinite(kernel.cache_ways) else 0
        visits = kernel.launches * heads * cache_share * sequences
        total += timed(item, flops_s, moved_s, kernel.launches, visits)
        roof += max(flops_s, moved_s)
    others = range(len(step.batch_items.kernels), len(step.batch_items.items))
    features = step.of_batch(batch, queries).features
    for item in others:
        values = [
            float(np.broadcast_to(x, features.compute_s.shape)[item, 0])
            for x in (features.compute_s, features.memory_s, features.launches, features.visits)
        ]
        total += timed(item, *values)
    return max(total, roof)


@given(
    st.sampled_from(MODELS),
    st.sampled_from(SPLITS),
    st.sampled_from(["h100-sxm5", "mi300x", "rtx-5090"]),
    st.integers(1, 4096),
    st.integers(1, 200_000),
    st.sampled_from([1, 2, 4]),
)
@settings(max_examples=60, deadline=None)
def test_a_point_is_the_sum_of_its_kernels_taken_one_by_one(
    model: str, split: Sharding, gpu: str, batch: int, context: int, queries: int
) -> None:
    step = calibrated(get_model(model), gpu, split)
    point = step.at(float(batch), float(context), float(queries))
    expected = one_by_one(step, batch, context, queries)
    assert float(point.total_s) == pytest.approx(expected, rel=1e-12)


@given(
    st.sampled_from(MODELS),
    st.sampled_from(SPLITS),
    st.lists(st.integers(1, 4096), min_size=1, max_size=5),
    st.lists(st.integers(1, 200_000), min_size=1, max_size=5),
)
@settings(max_examples=40, deadline=None)
def test_a_grid_is_its_points(
    model: str, split: Sharding, batches: list[int], contexts: list[int]
) -> None:
    step = calibrated(get_model(model), "h200-sxm", split)
    grid = step.on_grid(tuple(batches), tuple(contexts))
    names = ("total_s", "roofline_s", "flops", "bytes", "bounds_s", "bound_codes")
    for i, batch in enumerate(batches):
        for j, context in enumerate(contexts):
            point = step.at(float(batch), float(context))
            for name in names:
                whole, one = getattr(grid, name)[..., i, j], getattr(point, name)
                assert whole == pytest.approx(one, rel=1e-12), name


def test_bounds_add_up_to_the_time() -> None:
    step = calibrated(get_model(MODELS[1]), "h200-sxm", Sharding(tp=8))
    grid = step.on_grid((1, 64, 2048), (512, 65_536))
    assert grid.bounds_s.shape == (len(BOUNDS), 3, 2)
    assert grid.bounds_s.sum(axis=0) == pytest.approx(grid.total_s, rel=1e-12)


def test_a_kernel_of_weights_and_cache_is_refused() -> None:
    kernel = Kernel(
        name="both",
        kind="gemm",
        compute="bf16",
        activation_values_per_token=0.0,
        weight_bytes=1.0,
        bytes_per_cached=1.0,
    )
    with pytest.raises(InseparableKernel, match="kernel both reads weights and a cache"):
        make_step((kernel,), (), Sharding(), get_accelerator("h100-sxm5"), Layout())


def test_llama_70b_by_hand() -> None:
    """Llama-3.1-70B in bf16 on one H100 (3.35 TB/s, 989.5 Tflop/s): 64 sequences of 8,192 tokens.

    Weights read once: 70,553,706,496 parameters less the embedding of 128,256·8,192 and 161 norms
    of 8,192 are 69,501,714,432 values, 139.0 GB, 41.49 ms. Cache: 64·8,192·327,680 B, 51.28 ms.
    """
    spec = get_model(MODELS[0])
    step = model_step(spec, get_accelerator("h100-sxm5"), Sharding(), spec.formats())
    point = step.at(64.0, 8192.0)
    weights, cache = 2 * (70_553_706_496 - 128_256 * 8192 - 161 * 8192), 64 * 8192 * 327_680
    assert float(point.of_batch.weight_bytes) == weights
    assert float(point.cache_bytes) == cache
    assert float(point.roofline_s) == pytest.approx((weights + cache) / 3.35e12, rel=1e-12)
    attention = 4 * 64 * 8192 * 64 * 128 * 80
    assert float(point.flops) == weights * 64 + attention


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("split", [Sharding(), Sharding(tp=8)])
def test_limits_are_the_first_batches_of_a_plain_search(model: str, split: Sharding) -> None:
    step = calibrated(get_model(model), "h200-sxm", split)
    batches = np.arange(1.0, 20_001.0)
    for context in (256.0, 4096.0):
        axis = StepPoints(step.of_batch(batches[:, None]), step.of_context(np.array([context])))
        found = limits(step, context)
        s = axis.of_batch.sequences
        compute = axis.of_batch.compute_s + s * axis.of_context.compute_s
        memory = axis.of_batch.memory_s + s * axis.of_context.memory_s
        cache, weights = axis.cache_bytes, axis.of_batch.weight_bytes
        for batch, reached in (
            (found.crossover_batch, (compute >= memory * (1 - 1e-9))[:, 0]),
            (found.weights_equal_kv_batch, (cache >= weights * (1 - 1e-9))[:, 0]),
        ):
            if batch is None or batch > batches[-1]:
                assert not reached.any()
            else:
                assert reached.any()
                assert batch == batches[reached.argmax()]


def test_a_prompt_without_a_window_attends_to_half_of_itself() -> None:
    context, fresh = prompt_context(1000.0)
    assert (float(context), float(fresh)) == (500.0, 1000.0)
    context, fresh = prompt_context(1000.0, 0.75)
    assert (float(context), float(fresh)) == (875.0, 250.0)


def test_prompts_of_an_array_are_those_of_its_members() -> None:
    step = calibrated(get_model(MODELS[1]), "h200-sxm", Sharding(tp=8), prompt=True)
    isl = np.array([16.0, 1024.0, 32_768.0])
    together = prompt_points(step, isl, 2.0).total_s
    alone = [float(prompt_points(step, length, 2.0).total_s) for length in isl]
    assert together == pytest.approx(alone, rel=1e-12)


def test_efficiencies_follow_their_items() -> None:
    """Halving what one kind reaches slows its kernels alone."""
    step = calibrated(get_model(MODELS[0]), "h100-sxm5", Sharding())
    slower = step.efficiency.memory.copy()
    attention = [i for i, item in enumerate(step.items) if item.kind == "attention"]
    slower[attention] /= 2
    other = step.reaching(replace(step.efficiency, memory=slower))
    before, after = step.at(64.0, 8192.0), other.at(64.0, 8192.0)
    assert (after.of_batch.item_s == before.of_batch.item_s).all()
    assert after.of_context.item_s.sum() > 1.5 * before.of_context.item_s.sum()


def test_every_accelerator_with_figures_evaluates() -> None:
    spec = get_model("meta-llama/Llama-3.1-8B-Instruct")
    wide = {"bf16", "fp16", "fp32"}
    with_peaks = [one for one in list_accelerators() if wide & set(one.peaks_flops_per_s)]
    assert len(with_peaks) > 100
    for accelerator in with_peaks:
        step = model_step(spec, accelerator, Sharding(), spec.formats())
        assert float(step.at(1.0, 1024.0).roofline_s) > 0


def test_ideal_efficiency_is_the_roofline() -> None:
    step = model_step(
        get_model(MODELS[3]),
        get_accelerator("h100-sxm5"),
        Sharding(),
        get_model(MODELS[3]).formats(),
    )
    ideal = step.reaching(Efficiency.ideal(len(step.items)))
    grid = ideal.on_grid((1, 32), (128, 8192))
    glue = ideal.of_batch(np.array([[1.0], [32.0]])).item_s[-2:].sum(axis=0)
    assert grid.total_s == pytest.approx(grid.roofline_s + glue[:, None], rel=1e-12)
