"""Ways files state how weights are stored: each read, noted where assumed, or refused by field."""

from __future__ import annotations

from typing import Any

import pytest

from planner.models import ConfigError
from planner.models.huggingface import import_config
from planner.models.spec import ModelSpec
from tests.models.configs import llama

GPTQ = 4 + 16 / 128 + 4 / 128
"""Bits a weight of 4 bits with an fp16 scale and a 4-bit zero a group of 128."""
GPTQ8 = 8 + 16 / 128 + 8 / 128


def read(**quantization: Any) -> ModelSpec:
    return import_config(llama(quantization_config=quantization))


def bits(spec: ModelSpec, role: str = "attention") -> float:
    return 8 * spec.formats().weights[role].bytes


@pytest.mark.parametrize(
    ("quantization", "attention", "mlp"),
    [
        ({"quant_method": "gptq", "bits": 4, "group_size": 128}, GPTQ, GPTQ),
        # down_proj, a third of the MLP, at 16 bits; attention at 8.
        (
            {
                "quant_method": "gptq",
                "bits": 4,
                "group_size": 128,
                "dynamic": {r"-:.*\.down_proj": {}, r"+:.*self_attn.*": {"bits": 8}},
            },
            GPTQ8,
            (2 * GPTQ + 16) / 3,
        ),
        (
            {
                "quant_method": "bitsandbytes",
                "load_in_4bit": True,
                "bnb_4bit_use_double_quant": False,
            },
            4.5,
            4.5,
        ),
        ({"quant_method": "quanto", "weights": "int4"}, 4.25, 4.25),
        ({"quant_method": "quanto", "weights": "int8"}, 8, 8),
        (
            {
                "quant_method": "hqq",
                "quant_config": {"weight_quant_params": {"nbits": 4, "group_size": 64}},
            },
            4.5,
            4.5,
        ),
        (
            {
                "quant_method": "torchao",
                "quant_type": {
                    "default": {"_type": "Int4WeightOnlyConfig", "_data": {"group_size": 128}}
                },
            },
            4.25,
            4.25,
        ),
        # 16 bits of code for 8 weights.
        (
            {
                "quant_method": "aqlm",
                "in_group_size": 8,
                "out_group_size": 1,
                "num_codebooks": 1,
                "nbits_per_codebook": 16,
            },
            2,
            2,
        ),
        # Of each four, two values of 16 bits and a mask of 4.
        (
            {
                "quant_method": "compressed-tensors",
                "sparsity_config": {"format": "sparse-24-bitmask", "sparsity_structure": "2:4"},
            },
            9,
            9,
        ),
        # MLX: scale and bias of 16 bits a group of 64.
        ({"bits": 4, "group_size": 64}, 4.5, 4.5),
    ],
)
def test_bits_a_weight(quantization: dict[str, Any], attention: float, mlp: float) -> None:
    spec = read(**quantization)
    assert bits(spec) == pytest.approx(attention, abs=0.1)
    assert bits(spec, "mlp") == pytest.approx(mlp, abs=0.1)


def test_auto_round_keeps_modules_apart() -> None:
    """Half of the layers' down_proj at 8 bits: a sixth of the MLP."""
    extra = {f"model.layers.{i}.mlp.down_proj": {"bits": 8, "group_size": 128} for i in range(16)}
    spec = read(quant_method="auto-round", bits=4, group_size=128, sym=True, extra_config=extra)
    assert bits(spec) == pytest.approx(GPTQ, abs=0.05)
    assert bits(spec, "mlp") == pytest.approx((5 * GPTQ + GPTQ8) / 6, abs=0.05)


@pytest.mark.parametrize(
    ("quantization", "words"),
    [
        ({"quant_method": "vptq"}, "vptq"),
        ({"quant_method": "torchao", "quant_type": "wow"}, "quant_type"),
        ({"quant_method": "bitsandbytes"}, "load_in_4bit"),
        ({"bits": 4}, "no quant_method"),
        (
            {
                "quant_method": "compressed-tensors",
                "config_groups": {
                    "g": {"targets": ["FusedMoE"], "weights": {"num_bits": 4, "type": "int"}}
                },
            },
            "FusedMoE",
        ),
    ],
)
def test_what_is_assumed_is_said(quantization: dict[str, Any], words: str) -> None:
    assert words in " ".join(note.text for note in read(**quantization).notes)


@pytest.mark.parametrize(
    ("quantization", "field"),
    [
        ({"quant_method": "quanto", "weights": "int5"}, "quantization_config.weights"),
        ({"quant_method": "modelopt", "quant_algo": "WAT"}, "quant_algo"),
        (
            {
                "quant_method": "modelopt",
                "quant_algo": "MIXED_PRECISION",
                "quantized_layers": {"model.layers.0.mlp.up_proj": {"quant_algo": "WAT"}},
            },
            "quantized_layers",
        ),
        ({"quant_method": "gptq", "bits": 400}, "bits"),
        ({"quant_method": 4}, "quant_method"),
    ],
)
def test_what_has_no_meaning_is_refused(quantization: dict[str, Any], field: str) -> None:
    with pytest.raises(ConfigError, match=field):
        read(**quantization)
