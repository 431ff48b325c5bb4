"""Which layers of a network are mixtures of experts, by every field that says so; refusals."""

from __future__ import annotations

import math
from typing import Any

import pytest

from planner.models.attention import Attention
from planner.models.mlp import Dense, Experts
from planner.models.spec import ModelSpec
from tests.models.layers import layer_kernels, parts_of, read
from tests.models.test_mixture_families import DBRX, GPT_OSS, MIXTRAL, QWEN3, SCOUT


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


def test_hunyuan_large_makes_keys_in_every_second_layer() -> None:
    """Cross-layer attention: half the layers keep no cache, and have no k and v of their own."""
    fields = {**QWEN3, "model_type": "hunyuan", "use_qk_norm": True}
    whole, shared = read(**fields), read(**{**fields, "use_cla": True, "cla_share_factor": 2})
    assert whole.kv_elements_per_token == 2 * shared.kv_elements_per_token
    saved = 2 * 2048 * 4 * 128 + 128  # k and v, and the norm of the keys
    assert whole.total_params - shared.total_params == 24 * saved


def test_chunked_and_sliding_mixtures_attend_alike() -> None:
    spec = read(**GPT_OSS)
    assert {part.window for _, part in parts_of(spec, Attention)} == {128, math.inf}
    names = {name for group in spec.groups for name in layer_kernels(group)}
    assert {"attention", "attention_window", "experts", "router"} <= names


@pytest.mark.parametrize(
    ("config", "change", "message"),
    [
        (MIXTRAL, {"num_experts_per_tok": 9}, "num_experts_per_tok: 9 of 8 experts a token"),
        (QWEN3, {"num_experts_per_tok": 0}, "num_experts_per_tok: 0 is out of range"),
        (QWEN3, {"num_experts": 70000}, "num_experts: 70000 is out of range; accepted: 1 to 65536"),
        (QWEN3, {"moe_layer_freq": [1]}, "moe_layer_freq: 1 entries for 48 layers"),
        (DBRX, {"ffn_config": {"moe_num_experts": 4}}, "ffn_config.num_experts_per_tok or"),
        (SCOUT, {"attention_chunk_size": 0}, "attention_chunk_size: 0 is out of range"),
    ],
)
def test_what_cannot_be_read_names_the_field(
    config: dict[str, Any], change: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message) as raised:
        read(**{**config, **change})
    assert "\n" not in str(raised.value)
