"""A plan written as it is computed is the plan: byte for byte, and refused where it is none."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from planner.deployment import deployment_of
from planner.plans import planning
from planner.plans.planning import plan, plan_json
from planner.scenario import Scenario

LLAMA = {"model": "meta-llama/Llama-3.1-70B-Instruct", "gpu": "h100-sxm5", "tp": 4}


def written(question: dict[str, Any]) -> bytes:
    scenario = Scenario.model_validate(question)
    return plan_json(scenario, deployment_of(scenario))


@pytest.mark.parametrize(
    "question",
    [
        {**LLAMA, "batch": [1, 64], "context": [8192]},
        {**LLAMA},
        {**LLAMA, "batch": 100_000, "context": 100},
        {**LLAMA, "batch": [4, 8], "context": [1024, 500_000], "replicas": 3},
        {**LLAMA, "tp": 1, "batch": 1, "context": 100},
        {**LLAMA, "batch": 8, "tpot_ms": 30, "engine": "vllm"},
        {**LLAMA, "isl": 1024, "osl": 256, "concurrency": 8, "engine": "vllm"},
        {**LLAMA, "batch": 8, "context": 512, "speculation": {"drafts": 2}},
        {**LLAMA, "batch": 8, "engine": "vllm", "lora": {"adapters": 2, "rank": 16}},
        {"model": "deepseek-ai/DeepSeek-V3", "gpu": "h200-sxm", "tp": 8, "ep": 8, "batch": [1, 99]},
        {"model": "openai/gpt-oss-120b", "gpu": "mi300x", "batch": 3, "name": "ä", "tags": ["x"]},
    ],
)
def test_it_is_what_the_model_writes(question: dict[str, Any]) -> None:
    assert written(question) == plan(Scenario.model_validate(question)).model_dump_json().encode()


@settings(max_examples=25, deadline=None)
@given(
    st.lists(st.integers(1, 2**20), min_size=1, max_size=4, unique=True),
    st.lists(st.integers(1, 2**17), min_size=1, max_size=4, unique=True),
)
def test_it_is_so_at_any_batch_and_context(batches: list[int], contexts: list[int]) -> None:
    question = {**LLAMA, "batch": batches, "context": contexts}
    body = written(question)
    assert body == plan(Scenario.model_validate(question)).model_dump_json().encode()
    assert len(json.loads(body)["points"]) == len(batches) * len(contexts)


@pytest.mark.parametrize("name", ["NaN", "to Infinity and beyond"])
def test_a_name_may_be_what_no_number_is_called(name: str) -> None:
    assert json.loads(written({**LLAMA, "batch": 1, "name": name}))["scenario"]["name"] == name


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
def test_what_is_no_number_does_not_go_out(number: float, monkeypatch: pytest.MonkeyPatch) -> None:
    kernels = planning.kernel_rows

    def broken(*given: Any) -> list[dict[str, Any]]:
        return [{**row, "flops": number} for row in kernels(*given)]

    monkeypatch.setattr(planning, "kernel_rows", broken)
    with pytest.raises(ValidationError, match="finite"):
        written({**LLAMA, "batch": 1})
