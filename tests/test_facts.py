"""The 24 worked figures of the roofline texts, each named by its row.

Sources: R. Austin et al., "How to scale your model" (2025), chapter on rooflines; NVIDIA A100, H100
and B200 datasheets; the FlashAttention paper (Dao et al., 2022); public add and GEMM benchmarks.
"""

from __future__ import annotations

import numpy as np
import pytest

from planner.hw import get_accelerator
from planner.kernels import (
    attention,
    elementwise,
    gemm,
    gemm_traffic,
    gemv,
    residual_add,
    rmsnorm,
    softmax,
    swiglu,
)
from planner.models import get_model
from planner.plans.planning import plan
from planner.roofline import Roof, Work
from planner.scenario import Scenario
from planner.step.evaluator import Step
from planner.step.limits import limits, saturation_intensity
from planner.step.model_steps import model_step
from planner.step.parallel import Sharding

LLAMA = "meta-llama/Meta-Llama-3-70B"
H100 = Roof(989e12, 3.35e12)


def llama_step(weights: str | None = None) -> Step:
    spec = get_model(LLAMA)
    return model_step(spec, get_accelerator("h100-sxm5"), Sharding(), spec.formats(weights))


def b200_at_8() -> object:
    return get_accelerator("b200-sxm").alternative("bandwidth_bytes_per_s")


def test_fact_1_a100_ridge() -> None:
    assert Roof(312e12, 2.04e12).ridge == pytest.approx(153, abs=0.5)
    assert get_accelerator("a100-sxm4-80gb").ridge_point("bf16") == pytest.approx(153, rel=0.01)


@pytest.mark.parametrize(("fmt", "ridge"), [("bf16", 295), ("fp8", 590)])
def test_fact_2_h100_ridge(fmt: str, ridge: float) -> None:
    assert get_accelerator("h100-sxm5").ridge_point(fmt) == pytest.approx(ridge, abs=1)


def test_nvfp4_is_not_arithmetic_of_mx_units() -> None:
    """AMD CDNA4 scales by powers of two per 32 values; NVFP4 has an fp8 scale per 16."""
    one = {"model": "meta-llama/Llama-3.1-70B-Instruct", "batch": 64}
    widened = plan(Scenario(**one, gpu="mi355x", weights="nvfp4"))
    assert widened.limits.ridge_point == get_accelerator("mi355x").ridge_point("bf16")
    text = next(note.text for note in widened.notes if note.code == "emulated_format")
    assert text == "mi355x has no nvfp4 arithmetic: values are converted and run in bf16"
    for gpu, weights in (("mi355x", "mxfp4_w4a4"), ("b200-sxm", "nvfp4")):
        native = plan(Scenario(**one, gpu=gpu, weights=weights))
        assert native.limits.ridge_point == get_accelerator(gpu).ridge_point("fp4")
        assert "emulated_format" not in {note.code for note in native.notes}


@pytest.mark.parametrize(("fmt", "ridge"), [("bf16", 281), ("fp8", 562), ("fp4", 1125)])
def test_fact_3_b200_ridge_at_8_tb_per_s(fmt: str, ridge: float) -> None:
    assert b200_at_8().ridge_point(fmt) == pytest.approx(ridge, abs=0.6)


@pytest.mark.parametrize(("value_bytes", "divisor"), [(2, 3), (4, 6)])
def test_fact_4_square_gemm(value_bytes: float, divisor: float) -> None:
    n = np.array([64.0, 1024.0, 8192.0])
    work = gemm(n, n, n, value_bytes)
    np.testing.assert_allclose(work.intensity, n / divisor)
    assert gemm(3, 5, 7, value_bytes).flops == 2 * 3 * 5 * 7
    assert gemm(3, 5, 7, value_bytes).bytes == value_bytes * (3 * 7 + 7 * 5 + 3 * 5)


def test_fact_5_square_gemm_crosses_h100_ridge() -> None:
    assert 3 * H100.ridge == pytest.approx(885, abs=1)
    assert gemm(885, 885, 885).intensity == pytest.approx(H100.ridge, rel=1e-3)


def test_fact_6_gemm_4096() -> None:
    work, roof = gemm(4096, 4096, 4096), Roof(990e12, 3.35e12)
    assert work.flops == pytest.approx(1.37e11, rel=5e-3)
    assert work.bytes == pytest.approx(1.01e8, rel=5e-3)
    assert work.intensity == pytest.approx(1365, abs=1)
    assert roof.compute_time(work) == pytest.approx(138e-6, rel=0.01)
    assert roof.memory_time(work) == pytest.approx(30e-6, rel=0.01)


@pytest.mark.parametrize(("value_bytes", "intensity"), [(2, 1.0), (4, 0.5)])
@pytest.mark.parametrize("size", [16, 4096, 131072])
def test_fact_7_gemv(value_bytes: float, intensity: float, size: int) -> None:
    assert gemv(size, size, value_bytes).intensity == intensity


def test_fact_8_skinny_gemm() -> None:
    tokens = np.arange(1.0, 17.0)
    np.testing.assert_allclose(gemm(tokens, 28672, 8192).intensity, tokens, rtol=0.01)
    needed = next(t for t in range(1, 600) if gemm(t, 28672, 8192).intensity >= H100.ridge)
    assert needed == pytest.approx(300, rel=0.05)


def test_fact_9_ffn_up_projection() -> None:
    """The text prints 3591.1; its own formula (fact 4) gives 3584.0, which is what we keep."""
    work = gemm(8192, 28672, 8192)
    assert work.intensity == pytest.approx(3584.0, abs=0.05)
    assert work.intensity == pytest.approx(3591.1, rel=0.0025)
    assert H100.time(work) == pytest.approx(3.9e-3, rel=0.01)
    assert H100.compute_time(work) > H100.memory_time(work)


def test_fact_10_elementwise_add_fp32() -> None:
    assert elementwise(1e6, reads=2, value_bytes=4).intensity == pytest.approx(1 / 12)


def test_fact_11_residual_add_bf16() -> None:
    work = residual_add(1e6)
    assert work.bytes / work.flops == 6


def test_fact_12_rmsnorm() -> None:
    work = rmsnorm(8192 * 8192)
    assert work.intensity == pytest.approx(1.5)
    assert work.bytes == pytest.approx(2 * 134e6, rel=0.005)
    seconds = H100.time(work)
    assert seconds == pytest.approx(80e-6, rel=0.01)
    assert work.flops / seconds == pytest.approx(5e12, rel=0.01)
    assert work.flops / seconds / 989e12 == pytest.approx(0.005, rel=0.05)
    assert H100.compute_time(work) == pytest.approx(0.4e-6, rel=0.05)


@pytest.mark.parametrize("work", [softmax(1e6), swiglu(1e6), rmsnorm(1e6), residual_add(1e6, 2)])
def test_fact_13_memory_bound_helpers(work: Work) -> None:
    assert 0.16 <= work.intensity <= 3


@pytest.mark.parametrize("tokens", [256, 8192, 131072])
def test_fact_14_naive_attention(tokens: int) -> None:
    work = attention(tokens, 128, fused=False)
    assert work.flops == 4 * tokens**2 * 128
    assert work.bytes == 8 * tokens**2
    assert work.intensity == 64


def test_fact_15_fused_attention() -> None:
    work = attention(8192, 128)
    assert work.bytes == 8 * 8192 * 128
    assert work.intensity == 4096
    crossing = next(n for n in range(1, 4096) if attention(n, 128).intensity >= H100.ridge)
    assert 300 <= crossing <= 700


def test_fact_16_llama_3_70b_cache() -> None:
    assert get_model(LLAMA).kv_elements_per_token * 2 == 320 * 1024


@pytest.mark.parametrize(("context", "about"), [(8192, 60), (131072, 11)])
def test_fact_17_saturation(context: int, about: float) -> None:
    step, spec = llama_step(), get_model(LLAMA)
    found = saturation_intensity(step, context)
    assert found == pytest.approx(about, rel=0.03)
    multiplied = spec.total_params - spec.embedding_params - 161 * 8192  # 161 norms
    closed = (2 * multiplied + 4 * context * 8192 * 80) / (context * 320 * 1024)
    assert found == pytest.approx(closed, rel=1e-12)
    assert float(step.at(1e15, context).intensity) == pytest.approx(found, rel=1e-6)
    ridges = get_accelerator("a100-sxm4-80gb").ridge_points | b200_at_8().ridge_points
    assert all(found < ridge for name, ridge in ridges.items() if name in ("bf16", "fp8", "fp4"))


def crossover_of_weights(weights: str, compute: str) -> tuple[float, float]:
    """Crossover batch of one weight matrix on B200 at 8 TB/s, and the time at batch 1."""
    value_bytes = {"bf16": 2.0, "fp8": 1.0, "fp4": 0.5}
    machine = b200_at_8()
    roof = Roof(machine.peak(compute), machine.bandwidth_bytes_per_s)
    one = Work(2.0 * 8192 * 8192, value_bytes[weights] * 8192 * 8192)
    return float(roof.memory_time(one) / roof.compute_time(one)), float(roof.time(one))


def test_fact_18_weights_only_crossover_is_the_same_in_every_precision() -> None:
    found = {fmt: crossover_of_weights(fmt, fmt) for fmt in ("bf16", "fp8", "fp4")}
    for batch, _ in found.values():
        assert batch == pytest.approx(281, abs=1)
    assert found["bf16"][1] == pytest.approx(2 * found["fp8"][1])
    assert found["fp8"][1] == pytest.approx(2 * found["fp4"][1])


def test_fact_19_faster_arithmetic_alone_moves_the_ridge_not_the_point() -> None:
    machine = b200_at_8()
    same = llama_step().at(8, 8192).intensity
    assert float(same) == pytest.approx(float(llama_step("bf16").at(8, 8192).intensity))
    assert machine.ridge_point("fp8") == pytest.approx(2 * machine.ridge_point("bf16"))
    assert crossover_of_weights("bf16", "fp8")[0] == pytest.approx(562, abs=1)


def test_fact_20_tiling() -> None:
    m, n, k = 512, 1024, 2048
    naive = gemm_traffic(m, n, k)
    tiled = gemm_traffic(m, n, k, tile_m=64, tile_n=128)
    ideal = gemm_traffic(m, n, k, tile_m=m, tile_n=n)
    assert naive == 2 * (m * n * k + m * n * k + m * n)
    assert tiled == 2 * (m * k * n / 128 + k * n * m / 64 + m * n)
    assert ideal == gemm(m, n, k).bytes
    assert naive > tiled > ideal


def test_fact_21_cpu_ridge_in_the_low_tens() -> None:
    assert 4 <= Roof(64 * 40e9, 200e9).ridge <= 40


def test_fact_22_what_kernels_reach() -> None:
    h100 = get_accelerator("h100-sxm5")
    assert 0.70 <= h100.measured_peaks["fp16"].value / h100.peak("fp16") <= 0.90
    assert 0.80 <= h100.measured_bandwidth.value / h100.bandwidth_bytes_per_s <= 0.95


@pytest.mark.parametrize(
    ("gpu", "ridge"),
    [
        ("t4", 99),
        ("l4", 247),
        ("a10", 159),
        ("l40s", 292),
        ("a100-sxm4-80gb", 134),
        ("h100-sxm5", 252),
        ("h200-sxm", 179),
    ],
)
def test_fact_23_measured_ridge(gpu: str, ridge: float) -> None:
    machine = get_accelerator(gpu)
    assert machine.measured_ridge_points["fp16"] == pytest.approx(ridge, rel=0.01)
    assert "fp16" in machine.ridge_points


def test_fact_24_levers_are_priced() -> None:
    from planner.plans.advice import advise

    scenario = Scenario(model=LLAMA, gpu="h100-sxm5", tp=4, batch=32, context=32768)
    levers = {lever.code: lever for lever in advise(scenario)}
    base = plan(scenario).points[0].tpot_s.p50
    faster = plan(scenario.model_copy(update={"kv": "fp8"})).points[0].tpot_s.p50
    assert levers["kv_fp8"].gain == pytest.approx(base / faster)
    assert levers["kv_fp8"].gain > levers["weights_fp8"].gain > 1


def test_crossover_reason_names_both_figures() -> None:
    found = limits(llama_step(), 8192)
    assert found.crossover_batch is None
    assert "saturates at 59.8" in found.crossover_reason
    assert "ridge is 295" in found.crossover_reason
