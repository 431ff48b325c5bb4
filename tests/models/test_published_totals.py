"""Models that the reference table lacks, against what their makers and engines publish."""

from __future__ import annotations

from typing import Any

import pytest

from planner.models import ModelSpec, get_model
from planner.models.huggingface import import_config
from planner.models.mlp import Experts
from planner.models.reader import ConfigError


def norms(spec: ModelSpec) -> int:
    """Vectors of the hidden size that layers hold [-]."""
    return sum(group.count * group.block.other_params for group in spec.groups) // spec.hidden


def test_decilm_7b() -> None:
    """Three files of 4.99, 4.92 and 4.18 GB, 13.12 GiB in all; 7.04 billion in vLLM's PR 2062."""
    spec = get_model("Deci/DeciLM-7B")
    assert spec.total_params == 7_043_551_232
    assert spec.weights_bytes() == pytest.approx((4.99 + 4.92 + 4.18) * 1e9, abs=15e6)
    assert round(spec.weights_bytes() / 2**30, 2) == 13.12
    assert spec.kv_elements_per_token == 2 * 128 * 67  # KV heads of 32 layers: 1, 2 or 4


def test_gemma_4_12b() -> None:
    """11,959,730,224 in the hub's safetensors; 11,907,350,576 in llama.cpp's file of the decoder.

    The first has the embedders of images and sound (transformers 5.24, gemma4_unified): three
    layer norms, a table of positions and three matrices. The second has 256 rotary factors.
    """
    spec = get_model("google/gemma-4-12B-it")
    patch, hidden = 48 * 48 * 3, spec.hidden
    embedders = (
        2 * patch
        + patch * hidden
        + hidden
        + 4 * hidden
        + 1120 * 2 * hidden
        + hidden * hidden
        + 640 * hidden
    )
    assert spec.vision_params == embedders
    assert spec.total_params + spec.vision_params == 11_959_730_224
    assert spec.total_params + 256 == 11_907_350_576
    assert spec.kv_elements_per_token == 8 * 2 * 512
    assert spec.window_elements == 40 * 2 * 8 * 256 * 1024


def test_nemotron_ultra_253b() -> None:
    """llama.cpp prints 253.401 B, 249.199 B of them in layers, and 147 vectors.

    One of the vectors is the final norm, one holds rotary factors; the K cache of 12,288 tokens
    takes 816 MiB in q8_0 (34 bytes for 32 values). Source: ik_llama.cpp, pull request 377.
    """
    spec = get_model("nvidia/Llama-3_1-Nemotron-Ultra-253B-v1")
    tables = 2 * spec.vocab * spec.hidden + spec.hidden
    assert spec.total_params == 253_401_268_224
    assert round(spec.total_params / 1e9, 3) == 253.401
    assert round((spec.total_params - tables) / 1e9, 3) == 249.199
    assert norms(spec) == 147 - 2
    assert spec.kv_elements_per_token / 2 * 12_288 * 34 / 32 == 816 * 2**20


def test_nemotron_3_puzzle_75b() -> None:
    """75.3B and 9.3B active, 62.4 and 73.1 % of Super 120B; means over layers: arXiv 2607.04371.

    whatmodel.sh gives 75.35B.
    """
    spec = get_model("nvidia/NVIDIA-Nemotron-Labs-3-Puzzle-75B-A9B-BF16")
    parent = get_model("nvidia/NVIDIA-Nemotron-3-Super-120B-A12B-BF16")
    assert spec.total_params == 75_353_345_024
    assert spec.active_params == 9_337_076_736
    assert round(spec.total_params / parent.total_params, 3) == 0.624
    assert round(spec.active_params / parent.active_params, 3) == 0.731
    parts = [(group.count, part) for group in spec.groups for part in group.block.parts]
    experts = [part for count, part in parts for _ in range(count) if isinstance(part, Experts)]
    assert len(experts) == 40
    assert len({part.width for part in experts}) == 5  # llama.cpp, release b10776
    assert len({part.top_k for part in experts}) == 7
    assert sum(part.top_k for part in experts) == 40 * 22 * 0.5
    assert round(sum(part.width for part in experts) / 40 / 2688, 3) == 0.599
    assert round(sum(part.width * part.top_k for part in experts) / 40 / 2688 / 22, 3) == 0.309
    assert spec.kv_elements_per_token == parent.kv_elements_per_token
    assert spec.mtp_params == parent.mtp_params


PUZZLE: dict[str, Any] = {
    "model_type": "nemotron_h_puzzle",
    "hidden_size": 64,
    "vocab_size": 512,
    "dtype": "bfloat16",
    "num_attention_heads": 4,
    "n_routed_experts": 8,
    "moe_shared_expert_intermediate_size": 32,
    "block_configs": [
        {"block_type": "moe", "moe_intermediate_size": 16, "num_experts_per_tok": 2},
        {
            "block_type": "moe",
            "moe_intermediate_size": 48,
            "num_experts_per_tok": 4,
            "n_routed_experts": 4,
        },
    ],
}
DECI: dict[str, Any] = {
    "model_type": "deci",
    "hidden_size": 64,
    "vocab_size": 512,
    "dtype": "bfloat16",
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 96,
    "num_key_value_heads_per_layer": [4, 1],
}


def test_a_block_is_sized_by_its_own_fields_then_the_models() -> None:
    spec = import_config(PUZZLE)
    parts = [part for group in spec.groups for part in group.block.mlps]
    experts = [part for part in parts if isinstance(part, Experts)]
    assert [(p.experts, p.top_k, p.width) for p in experts] == [(8, 2, 16), (4, 4, 48)]


@pytest.mark.parametrize(
    ("config", "change", "message"),
    [
        (
            PUZZLE,
            {"block_configs": [{"block_type": "x"}]},
            r"block_configs\[0\].block_type: 'x'; accepted: mamba, attention, mlp and moe",
        ),
        (PUZZLE, {"block_configs": [7]}, r"block_configs\[0\].: expected a JSON object, got int"),
        (
            PUZZLE,
            {"block_configs": [{"block_type": "moe"}]},
            r"block_configs\[0\].num_experts_per_tok: missing",
        ),
        (DECI, {"num_key_value_heads_per_layer": None}, "num_key_value_heads_per_layer: missing"),
        (DECI, {"num_key_value_heads_per_layer": [4]}, "1 entries for 2 layers"),
        (DECI, {"num_key_value_heads_per_layer": [4, 3]}, "3 does not divide 4 attention heads"),
        (DECI, {"num_key_value_heads_per_layer": [4, [1]]}, "is not a whole number"),
    ],
)
def test_what_cannot_be_read_names_the_field(
    config: dict[str, Any], change: dict[str, Any], message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        import_config({**config, **change})
