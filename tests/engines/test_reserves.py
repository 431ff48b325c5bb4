"""What SGLang keeps free of weights and cache, and what drafts take, worked from its own lines."""

from __future__ import annotations

from typing import Any

import pytest

from planner import Scenario
from planner.deployment import deployment_of
from planner.engines.memory import Memory
from planner.engines.profiles import reported_bytes
from planner.hw import get_accelerator
from planner.models import get_model

MIB = 2.0**20
R1 = "deepseek-ai/DeepSeek-R1"
ONE = {"drafts": 1}


def taken(engine: str, version: str, model: str, *split: int, **fields: Any) -> Memory:
    names = ("tp", "pp", "ep", "attention_dp")
    fields |= dict(zip(names, split, strict=False))
    scenario = Scenario(
        model=model, gpu="h200-sxm", engine=engine, engine_version=version, **fields
    )
    return deployment_of(scenario).memory


def share(memory: Memory) -> float:
    """The share of reported memory that is planned with, what is taken before it included [-]."""
    total = reported_bytes(get_accelerator("h200-sxm"))
    return memory.requested_bytes_per_gpu / (total - memory.buffer_bytes_per_gpu)


@pytest.mark.parametrize(
    ("version", "fields", "mib"),
    [  # 512 + 1.5·8192 of chunks, 2·512 of graphs, 128 a GPU, 1536 of prompts; at least 10 GiB
        ("0.5.23", {}, 512 + 12288 + 1024 + 1024 + 1536),
        ("0.5.9", {}, 512 + 12288 + 1024 + 1024),
        # 8 ranks: 4.5 for each and each of 512 sequences
        ("0.5.23", {"attention_dp": 8, "tp": 1, "ep": 8}, 16_384 + 4.5 * 512 * 8),
        # drafts: 4 GiB in 0.5.10, the loaded layers since 0.5.16
        ("0.5.10", {"speculation": {"drafts": 1}}, 16_384 + 4096),
        ("0.5.23", {"speculation": {"drafts": 1}}, 16_384),
    ],
)
def test_what_sglang_reserves_of_an_h200(version: str, fields: dict[str, Any], mib: float) -> None:
    memory = taken("sglang", version, R1, **{"tp": 8, **fields})
    total = reported_bytes(get_accelerator("h200-sxm"))
    assert share(memory) == pytest.approx(round(1 - mib * MIB / total, 3))


def test_an_image_encoder_takes_a_share_of_what_sglang_plans_with() -> None:
    with_images = taken("sglang", "0.5.23", "google/gemma-3-27b-it", 2)
    without = taken("sglang", "0.5.23", "google/gemma-3-27b-it", 2, vision=False)
    params = get_model("google/gemma-3-27b-it").vision_params
    more = 1 - 0.1 * (params / (12 * 24 * 1024**2) - 1)
    assert share(with_images) == pytest.approx(share(without) * 0.95 * more)


@pytest.mark.parametrize("engine", ["vllm", "sglang"])
def test_layers_for_drafts_are_loaded_and_cache(engine: str) -> None:
    """DeepSeek-R1 drafts with a 62nd layer: its experts, split 8 ways, and its latent."""
    drafting = taken(engine, "0.24.0" if engine == "vllm" else "0.5.23", R1, 8, speculation=ONE)
    plain = taken(engine, "0.24.0" if engine == "vllm" else "0.5.23", R1, 8)
    assert drafting.kv_bytes_per_token == pytest.approx(plain.kv_bytes_per_token * 62 / 61)
    spec = get_model(R1)
    more = drafting.weights_bytes_per_gpu - plain.weights_bytes_per_gpu
    assert spec.mtp_bytes() / 8 <= more <= spec.mtp_bytes() / 8 * 1.25  # what does not split
    assert drafting.kv_pool_bytes_per_gpu < plain.kv_pool_bytes_per_gpu - 0.9 * more


def test_states_are_kept_for_every_draft() -> None:
    """vLLM: 2 blocks of a state where prefixes are cached, one more for each draft."""
    model = "Qwen/Qwen3-Next-80B-A3B-Instruct"
    blocks = [
        max(term.extra for term in taken("vllm", "0.24.0", model, 4, **fields).pool.stores[0].terms)
        for fields in ({}, {"speculation": ONE}, {"speculation": {"drafts": 3}})
    ]
    assert blocks == [2, 3, 5]
