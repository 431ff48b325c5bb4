"""Kernels of typed sizes against the worked figures of the roofline texts."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from planner.hw import get_accelerator
from planner.step.typed import KERNELS, UnknownKernel, typed_kernel

SIZES = st.integers(1, 2**14)
H100 = get_accelerator("h100-sxm5")


def test_a_square_gemm_naive_tiled_and_ideal() -> None:
    """4096³ in bf16 (facts 4, 6, 20): 2·4096³ FLOP; 2·3·4096² byte where each value moves once."""
    result = typed_kernel("gemm", (4096, 4096, 4096), H100)
    naive, tiled, ideal = result.ways
    assert result.flops == 2 * 4096**3
    assert ideal.bytes == 2 * 3 * 4096**2
    assert ideal.arithmetic_intensity == pytest.approx(4096 / 3)
    assert ideal.compute_s == pytest.approx(139e-6, rel=0.01)
    assert ideal.memory_s == pytest.approx(30e-6, rel=0.01)
    assert naive.bytes == 2 * (2 * 4096**3 + 4096**2)
    assert tiled.bytes == pytest.approx(2 * (2 * 4096**3 / 128 + 4096**2))
    assert (naive.bound, tiled.bound, ideal.bound) == ("memory", "memory", "compute")


def test_attention_naive_and_fused() -> None:
    """I = d/2 at 16 bits where scores are kept, N/2 where they stay on chip (facts 14, 15)."""
    naive, tiled, fused = typed_kernel("attention", (8192, 128, 64), H100).ways
    assert naive.arithmetic_intensity == 64
    assert fused.arithmetic_intensity == 4096
    assert naive.arithmetic_intensity < tiled.arithmetic_intensity < fused.arithmetic_intensity


@pytest.mark.parametrize(
    ("name", "sizes", "number_format", "intensity"),
    [
        ("gemv", (4096, 4096), "bf16", 1.0),
        ("gemv", (4096, 4096), "fp32", 0.5),
        ("add", (10**6,), "fp32", 1 / 12),
        ("add", (10**6,), "bf16", 1 / 6),
        ("rmsnorm", (8192 * 8192,), "bf16", 1.5),
    ],
)
def test_intensities_of_the_texts(
    name: str, sizes: tuple[int, ...], number_format: str, intensity: float
) -> None:
    (way,) = typed_kernel(name, sizes, H100, number_format).ways
    assert way.arithmetic_intensity == pytest.approx(intensity)
    assert way.bound == "memory"


@pytest.mark.parametrize("name", KERNELS)
def test_examples_of_every_kernel_are_taken(name: str) -> None:
    sizes = [int(part) for part in KERNELS[name].example.split(",")]
    result = typed_kernel(name, sizes, get_accelerator("epyc-9654"), "fp32")
    assert len(result.sizes) == len(KERNELS[name].sizes)
    assert result.ways[-1].bytes == min(way.bytes for way in result.ways)
    assert any("derived" in note.text for note in result.notes)  # said where a peak comes from


@given(m=SIZES, n=SIZES, k=SIZES, tile=SIZES)
@settings(suppress_health_check=[HealthCheck.too_slow])  # other work may hold this machine up
def test_tiling_lies_between_naive_and_ideal(m: int, n: int, k: int, tile: int) -> None:
    naive, tiled, ideal = typed_kernel("gemm", (m, n, k), H100, tile=tile).ways
    assert naive.bytes >= tiled.bytes >= ideal.bytes * (1 - 1e-12)
    assert naive.time_s >= tiled.time_s >= ideal.time_s * (1 - 1e-12)


@pytest.mark.parametrize(
    ("name", "sizes", "words"),
    [
        ("conv", (1,), "kernel: 'conv' is unknown; accepted: gemm"),
        ("gemm", (1, 2), "gemm: 2 sizes given; accepted: M,N,K"),
        ("gemm", (0, 1, 1), "gemm: 3 sizes given; accepted: M,N,K, each of 1 to"),
    ],
)
def test_refusals_name_what_is_accepted(name: str, sizes: tuple[int, ...], words: str) -> None:
    with pytest.raises(UnknownKernel, match=words):
        typed_kernel(name, sizes, H100)
