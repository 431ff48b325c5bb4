"""The service's memory figures are the library's, settings of the engine included."""

from __future__ import annotations

from typing import Any

import pytest

from planner import Scenario, plan
from tests.api.conftest import Client

SETTINGS: tuple[dict[str, Any], ...] = (
    {},
    {"memory_fraction": 0.85, "max_sequences": 7, "max_model_len": 8192},
    {"kv_pool_bytes": 8e9, "block_size": 32, "graphs": "off", "vision": "off"},
    {"lora": {"adapters": 2, "rank": 8}, "max_batched_tokens": 4096, "prefix_caching": False},
)


@pytest.mark.parametrize("settings", SETTINGS)
@pytest.mark.parametrize(
    "model", ["openai/gpt-oss-120b", "deepseek-ai/DeepSeek-V4-Flash", "google/gemma-3-27b-it"]
)
def test_the_service_gives_the_same_memory(
    shared: Client, model: str, settings: dict[str, Any]
) -> None:
    body = {"model": model, "gpu": "h200-sxm", "tp": 2, "engine": "vllm", "context": [777]}
    answered = shared.post("/v1/plans", json={**body, **settings})
    assert answered.status_code == 200
    expected = plan(Scenario(**body, **settings)).memory
    assert answered.json()["memory"] == expected.model_dump(mode="json")


def test_an_impossible_setting_is_a_problem_that_names_it(shared: Client) -> None:
    body = {"model": "openai/gpt-oss-120b", "gpu": "h200-sxm", "engine": "vllm"}
    answered = shared.post("/v1/plans", json={**body, "layers_on_gpu": 3})
    assert answered.status_code == 422
    assert "layers_on_gpu: not of vLLM" in answered.text
