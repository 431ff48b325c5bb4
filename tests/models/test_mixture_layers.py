"""Which layers of a network are mixtures of experts, by every field that says so."""

from __future__ import annotations

from typing import Any

import pytest

from planner.models.mlp import Dense, Experts
from planner.models.spec import ModelSpec
from tests.models.layers import parts_of, read
from tests.models.test_mixture_families import QWEN3


def mixtures(spec: ModelSpec) -> int:
    return sum(count for count, _ in parts_of(spec, Experts))


@pytest.mark.parametrize(
    ("changes", "layers"),
    [
        ({}, 48),
        ({"mlp_only_layers": [0, 1, 47]}, 45),
        # (layer + 1) divisible by the step.
        ({"decoder_sparse_step": 2}, 24),
        ({"decoder_sparse_step": 5}, 9),
        ({"first_k_dense_replace": 3}, 45),
        ({"first_k_dense_replace": 3, "moe_layer_freq": 4}, 11),
        ({"moe_layer_freq": [0] * 40 + [1] * 8}, 8),
        ({"mlp_layer_types": ["dense"] * 10 + ["sparse"] * 38}, 38),
    ],
)
def test_which_layers_are_mixtures(changes: dict[str, Any], layers: int) -> None:
    spec = read(**{**QWEN3, **changes})
    assert mixtures(spec) == layers
    plain = sum(count for count, _ in parts_of(spec, Dense))
    assert plain == 48 - layers
    expert = 3 * 2048 * 768
    assert spec.routed_params == layers * 128 * expert


@pytest.mark.parametrize(
    ("changes", "layers"),
    [({}, 27), ({"moe_layer_interval": 2}, 14), ({"moe_layer_end_index": 9}, 9)],
)
def test_ernie_names_first_and_last_mixture(changes: dict[str, Any], layers: int) -> None:
    """baidu/ERNIE-4.5-21B-A3B-PT: layers 1 to 27 of 28, -1 standing for the last."""
    spec = read(
        **{
            **QWEN3,
            "model_type": "ernie4_5_moe",
            "num_hidden_layers": 28,
            "moe_num_experts": 64,
            "moe_k": 6,
            "num_experts": None,
            "num_experts_per_tok": None,
            "moe_layer_start_index": 1,
            "moe_layer_end_index": -1,
            **changes,
        }
    )
    assert mixtures(spec) == layers
