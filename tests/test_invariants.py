"""Invariants that hold for every model, machine and load."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.deployment import deploy
from planner.hw import get_accelerator
from planner.hw.inline import override
from planner.kernels import expected_distinct_experts
from planner.models import get_model
from planner.plans.columns import columns
from planner.plans.planning import plan
from planner.plans.recommend import RecommendationRequest, recommend
from planner.roofline import Roof, Work, p_norm
from planner.scenario import Scenario
from planner.step.evaluator import Step
from planner.step.limits import saturation_intensity
from planner.step.model_steps import model_step
from planner.step.parallel import Sharding
from planner.step.timing import Efficiency

MODELS = (
    "meta-llama/Llama-3.1-8B-Instruct",
    "meta-llama/Llama-3.1-70B-Instruct",
    "mistralai/Mixtral-8x7B-Instruct-v0.1",
    "deepseek-ai/DeepSeek-V3",
    "openai/gpt-oss-120b",
    "nvidia/Nemotron-H-56B-Base-8K",
    "Qwen/Qwen3.5-397B-A17B",
)
models = st.sampled_from(MODELS)
batches = st.integers(1, 4096)
contexts = st.integers(1, 200_000)
positive = st.floats(1e-9, 1e9)


def step_of(model: str, sharding: Sharding | None = None) -> Step:
    spec = get_model(model)
    return model_step(spec, get_accelerator("h200-sxm"), sharding or Sharding(), spec.formats())


@given(positive, positive, st.floats(1, 64))
def test_p_norm_lies_between_max_and_sum(a: float, b: float, p: float) -> None:
    value = float(p_norm(a, b, p))
    assert max(a, b) * (1 - 1e-12) <= value <= (a + b) * (1 + 1e-12)
    assert float(p_norm(a, b, math.inf)) == max(a, b)


@given(models, batches, contexts, st.floats(1.01, 10))
@settings(max_examples=40, deadline=None)
def test_time_falls_with_bandwidth(model: str, batch: int, context: int, factor: float) -> None:
    slow = get_accelerator("h100-sxm5")
    faster = {"bandwidth_bytes_per_s": slow.bandwidth_bytes_per_s * factor, "source": "a test"}
    fast = override(slow, faster)
    times = [
        float(deploy(get_model(model), gpu, Sharding()).step.at(batch, context).roofline_s)
        for gpu in (slow, fast)
    ]
    assert times[1] <= times[0] <= times[1] * factor * (1 + 1e-12)


@given(models, contexts)
@settings(max_examples=40, deadline=None)
def test_intensity_rises_with_batch_and_never_passes_saturation(model: str, context: int) -> None:
    step = step_of(model)
    intensity = step.at(2.0 ** np.arange(0, 50), float(context)).intensity
    experts = any(kernel.experts for kernel in step.kernels)
    steps = np.diff(intensity)
    if not experts:  # the second token may hit other experts than the first: bytes double too
        assert (steps >= -1e-9 * intensity[:-1]).all()
    top = saturation_intensity(step, context)
    assert (intensity <= top * (1 + 1e-9)).all()
    assert intensity[-1] == pytest.approx(top, rel=1e-4)


@given(models, batches, contexts, st.sampled_from([1, 2, 4, 8]))
@settings(max_examples=40, deadline=None)
def test_flops_do_not_depend_on_tp(model: str, batch: int, context: int, tp: int) -> None:
    one = step_of(model).at(batch, context).flops
    assert step_of(model, Sharding(tp=tp)).at(batch, context).flops == pytest.approx(one)


@given(models, batches, contexts, st.sampled_from([1, 2, 4, 8]), st.sampled_from([1, 2, 4]))
@settings(max_examples=60, deadline=None)
def test_no_plan_beats_the_roofline(model: str, batch: int, context: int, tp: int, pp: int) -> None:
    point = plan(
        Scenario(model=model, gpu="h200-sxm", tp=tp, pp=pp, batch=batch, context=context)
    ).points[0]
    gpu = get_accelerator("h200-sxm")
    floor = max(
        point.bytes / (gpu.bandwidth_bytes_per_s * tp * pp),
        point.flops / (max(gpu.peaks_flops_per_s.values()) * tp * pp),
    )
    assert point.tpot_s.p10 >= point.roofline_tpot_s * (1 - 1e-12)
    assert point.tpot_s.p50 >= point.roofline_tpot_s * (1 - 1e-12)
    assert point.roofline_tpot_s >= floor * (1 - 1e-9)
    assert point.mbu <= 1 + 1e-9
    assert point.mfu <= 1 + 1e-9


@given(
    models, st.lists(batches, min_size=1, max_size=4), st.lists(contexts, min_size=1, max_size=4)
)
@settings(max_examples=30, deadline=None)
def test_scalar_and_array_calls_agree(model: str, many: list[int], lengths: list[int]) -> None:
    deployment = deploy(get_model(model), get_accelerator("b200-sxm"), Sharding(tp=2))
    batch, context = np.meshgrid(many, lengths, indexing="ij")
    together = deployment.time_s(batch.astype(float), context.astype(float))
    points = deployment.step.at(batch.astype(float), context.astype(float))
    for index in np.ndindex(batch.shape):
        alone = deployment.step.at(float(batch[index]), float(context[index]))
        one = deployment.time_s(float(batch[index]), float(context[index]))
        assert float(one) == pytest.approx(float(together[index]), rel=1e-12)
        assert float(alone.bytes) == pytest.approx(float(points.bytes[index]), rel=1e-12)


@given(st.integers(1, 512), st.integers(1, 16), st.integers(1, 10_000))
def test_distinct_experts_are_at_least_top_k_and_at_most_all(
    experts: int, top_k: int, tokens: int
) -> None:
    top_k = min(top_k, experts)
    hit = float(expected_distinct_experts(experts, top_k, tokens))
    assert top_k * (1 - 1e-9) <= hit <= experts * (1 + 1e-9)
    assert float(expected_distinct_experts(experts, top_k, 1)) == pytest.approx(top_k, rel=1e-6)


@given(st.sampled_from(MODELS), st.lists(st.floats(1, 500), min_size=2, max_size=4))
@settings(max_examples=15, deadline=None)
def test_raising_the_tpot_limit_never_lowers_the_batch(model: str, limits: list[float]) -> None:
    gpus = ["h100-sxm5", "b200-sxm", "mi300x", "rtx-4090"]
    batches_by_gpu: dict[str, list[int]] = {gpu: [] for gpu in gpus}
    for limit in sorted(limits):
        request = RecommendationRequest(model=model, context=4096, tpot_ms=limit, gpu=gpus)
        found = {choice.gpu: choice.batch for choice in recommend(request).choices}
        for gpu in gpus:
            batches_by_gpu[gpu].append(found.get(gpu, 0))
    for chosen in batches_by_gpu.values():
        assert chosen == sorted(chosen)


@given(positive, positive, st.floats(1.0, 1e15), st.floats(1.0, 1e12))
def test_roof_time_is_what_attainable_says(
    flops: float, moved: float, peak: float, bandwidth: float
) -> None:
    roof, work = Roof(peak, bandwidth), Work(flops, moved)
    expected = flops / float(roof.attainable(work.intensity))
    assert float(roof.time(work)) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("model", MODELS)
def test_no_step_uses_more_than_there_is(model: str) -> None:
    """On the roofline itself MBU is one, and not a last bit more."""
    found = deploy(get_model(model), get_accelerator("dgx-spark-gb10"), Sharding())
    ideal = found.step.reaching(Efficiency.ideal(len(found.step.items)))
    batch, context = (a.ravel() for a in np.meshgrid(np.arange(1.0, 65.0), [1.0, 1000.0, 8192.0]))
    on_the_roof = replace(found, step=ideal)
    figures = columns(on_the_roof, 1, on_the_roof.passes(batch, context), batch)
    assert figures["mbu"].max() <= 1
    assert figures["mfu"].max() <= 1
    assert figures["mbu"].max() > 0.999
