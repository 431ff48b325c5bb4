"""The service's memory figures are the library's, settings of the engine included."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from planner import Scenario, plan
from tests.api.conftest import Client, make_settings, started
from tests.deployments import deployments, form, planned_memory


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    """The service on SQLite: plans do not read the database."""
    with started(make_settings(f"sqlite:///{tmp_path_factory.mktemp('alone') / 'p.db'}")) as opened:
        yield opened


@given(deployments)
@settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))
def test_the_service_agrees_on_any_deployment(alone: Client, fields: dict[str, Any]) -> None:
    answers_as_the_library_does(alone, fields)


@pytest.mark.slow
@given(deployments)
@settings(max_examples=400, deadline=None, suppress_health_check=list(HealthCheck))
def test_the_service_agrees_on_many_deployments(alone: Client, fields: dict[str, Any]) -> None:
    answers_as_the_library_does(alone, fields)


def answers_as_the_library_does(client: Client, fields: dict[str, Any]) -> None:
    """The same memory, to every figure; or the same line of refusal, as a problem of the client."""
    answered = client.post("/v1/plans", json=form(fields))
    planned = planned_memory(fields)
    if isinstance(planned, str):
        assert 400 <= answered.status_code < 500
        assert planned in answered.json()["detail"]
    else:
        assert answered.status_code == 200, answered.text
        assert answered.json()["memory"] == planned.model_dump(mode="json")


SETTINGS: tuple[dict[str, Any], ...] = (
    {},
    {"memory_fraction": 0.85, "max_sequences": 7, "max_model_len": 8192},
    {"kv_pool_bytes": 8e9, "block_size": 32, "graphs": "off", "vision": "off"},
    {"lora": {"adapters": 2, "rank": 8}, "max_batched_tokens": 4096, "prefix_caching": False},
)


@pytest.mark.parametrize("changes", SETTINGS)
@pytest.mark.parametrize(
    "model", ["openai/gpt-oss-120b", "deepseek-ai/DeepSeek-V4-Flash", "google/gemma-3-27b-it"]
)
def test_the_service_gives_the_same_memory(
    shared: Client, model: str, changes: dict[str, Any]
) -> None:
    body = {"model": model, "gpu": "h200-sxm", "tp": 2, "engine": "vllm", "context": [777]}
    answered = shared.post("/v1/plans", json={**body, **changes})
    assert answered.status_code == 200
    expected = plan(Scenario(**body, **changes)).memory
    assert answered.json()["memory"] == expected.model_dump(mode="json")


def test_an_impossible_setting_is_a_problem_that_names_it(shared: Client) -> None:
    body = {"model": "openai/gpt-oss-120b", "gpu": "h200-sxm", "engine": "vllm"}
    answered = shared.post("/v1/plans", json={**body, "layers_on_gpu": 3})
    assert answered.status_code == 422
    assert "layers_on_gpu: not of vLLM" in answered.text
