"""Sizes of files in llama.cpp's mixes, against what it prints when it loads them [GiB].

Rows M0095 to M0153 of the committed start-ups; M0114 and M0126 are mixes of another maker (their
sizes fit no rule of llama.cpp) and are left out.
"""

from __future__ import annotations

import pytest

from planner.models import get_model
from planner.models.mixes import MIXES, mix_formats
from planner.precision import FORMATS, Format


def formats_of(model: str, mix: str) -> dict[str, Format] | None:
    spec = get_model(model)
    return mix_formats(spec.groups, spec.hidden, spec.tied_embeddings, mix)


@pytest.mark.parametrize(
    ("model", "mix", "gib", "within"),
    [
        ("google/gemma-3-27b-it", "q4_k_m", 15.404, 0.001),
        ("Qwen/Qwen3-32B", "q5_k_m", 21.603, 0.001),
        ("Qwen/Qwen3-30B-A3B", "q5_k_m", 20.228, 0.002),
        ("Qwen/Qwen3-235B-A22B", "q4_k_m", 132.386, 0.001),
        ("Qwen/Qwen3-235B-A22B", "q6_k", 179.75, 0.001),
        ("google/gemma-3-27b-it", "q4_0", 14.539, 0.005),
        ("Qwen/Qwen3-32B", "q4_0", 17.413, 0.005),
        ("meta-llama/Llama-2-13b-hf", "q8_0", 12.881, 0.001),
        ("zai-org/GLM-Z1-32B-0414", "iq4_xs", 16.38, 0.01),
        # Experts of 1,408 values: rows that 256-value blocks do not divide.
        ("deepseek-ai/DeepSeek-V2-Lite", "q4_k_m", 9.649, 0.003),
    ],
)
def test_sizes_of_files(model: str, mix: str, gib: float, within: float) -> None:
    spec = get_model(model)
    assert spec.weights_bytes(spec.formats(mix)) / 2**30 == pytest.approx(gib, rel=within)


@pytest.mark.parametrize(
    ("mix", "bits"),
    [  # bits per weight of Llama-3.1-8B, llama.cpp tools/quantize/README.md
        ("q2_k", 3.1593),
        ("q3_k_s", 3.6429),
        ("q3_k_m", 3.9960),
        ("q3_k_l", 4.2979),
        ("iq4_xs", 4.4597),
        ("q4_k_s", 4.6672),
        ("q4_k_m", 4.8944),
        ("q5_k_s", 5.5704),
        ("q5_k_m", 5.7036),
        ("q6_k", 6.5633),
    ],
)
def test_bits_per_weight_that_llama_cpp_states(mix: str, bits: float) -> None:
    spec = get_model("meta-llama/Llama-3.1-8B")
    bits_per_weight = 8 * spec.weights_bytes(spec.formats(mix)) / spec.total_params
    assert bits_per_weight == pytest.approx(bits, rel=0.008)


@pytest.mark.parametrize("mix", sorted(MIXES))
def test_every_mix_is_a_format(mix: str) -> None:
    assert mix in FORMATS


def test_a_tied_embedding_is_the_head() -> None:
    formats = formats_of("google/gemma-3-27b-it", "q4_k_m")
    assert formats is not None
    assert formats["embedding"].bits == formats["head"].bits == pytest.approx(FORMATS["q6_k"].bits)
    untied = formats_of("Qwen/Qwen3-32B", "q4_k_m")
    assert untied is not None
    assert untied["embedding"].bits == pytest.approx(FORMATS["q4_k"].bits)


def test_other_formats_are_no_mix() -> None:
    assert formats_of("Qwen/Qwen3-32B", "fp8") is None
    assert formats_of("Qwen/Qwen3-32B", "q8_0") is None
