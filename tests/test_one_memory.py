"""One memory model: plan, recommend, sweep, validate and the service give the same figures."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner import Scenario, plan
from planner.deployment import Deployment, deployment_of
from planner.engines.pool import Pool
from planner.plans.recommend import RecommendationRequest, recommend
from planner.plans.sweep import SweepRequest, sweep
from planner.runs.predict import predict
from planner.runs.rows import Row

MODELS = (
    "Qwen/Qwen2.5-7B-Instruct",
    "openai/gpt-oss-120b",
    "google/gemma-3-27b-it",
    "deepseek-ai/DeepSeek-V2-Lite-Chat",
    "deepseek-ai/DeepSeek-V4-Flash",
    "Qwen/Qwen3-Next-80B-A3B-Instruct",
    "meta-llama/Llama-4-Scout-17B-16E-Instruct",
)
"""Growing layers, windows, latents, compressed entries, states, chunks."""
GPUS = ("h100-sxm5", "h200-sxm", "b200-sxm")
ENGINES = (("vllm", "0.19.0"), ("vllm", "0.24.0"), ("vllm", None), ("sglang", None))

scenarios = st.fixed_dictionaries(
    {
        "model": st.sampled_from(MODELS),
        "gpu": st.sampled_from(GPUS),
        "tp": st.sampled_from([1, 2, 4]),
        "engine and version": st.sampled_from([*ENGINES, ("trtllm", None), (None, None)]),
        "memory_fraction": st.sampled_from([None, 0.5, 0.85]),
        "max_sequences": st.sampled_from([None, 7, 5000]),
        "max_model_len": st.sampled_from([None, 8192, 30_000]),
        "vision": st.sampled_from([None, False]),
        "context": st.sampled_from([[1], [777], [8192]]),
    }
)


def question(fields: dict[str, Any]) -> dict[str, Any]:
    engine, version = fields["engine and version"]
    rest = {name: value for name, value in fields.items() if name != "engine and version"}
    return {**rest, "engine": engine, "engine_version": version}


@given(scenarios)
@settings(max_examples=60, deadline=None)
def test_the_largest_batch_fits_and_one_more_does_not(fields: dict[str, Any]) -> None:
    deployment = deployment_of(Scenario(**question(fields)))
    memory, context = deployment.memory, fields["context"][0]
    most = memory.max_batch(context)
    if memory.kv_pool_bytes_per_gpu < 0:
        assert most == 0
        return
    assert most <= memory.max_sequences
    assert most == 0 or blocks_suffice(memory.pool, most, context)
    if most < memory.max_sequences:
        assert not blocks_suffice(memory.pool, most + 1, context)
    for batch in (1, max(1, most)):
        longest = memory.max_context(batch, 2**20)
        assert longest == 0 or memory.max_batch(longest) >= batch
        assert longest == 2**20 or memory.max_batch(longest + 1) < batch


def blocks_suffice(pool: Pool, sequences: int, context: int) -> bool:
    """Whether all but one sequence at rest and one in its prompt fit, counted page by page."""
    for store in pool.stores:
        rest = prompt = 0.0
        for term in store.terms:
            kept, running = min(context, term.reach), min(context, term.reach + term.ahead)
            rest += term.count * (math.ceil(kept / term.tokens) + term.extra)
            prompt += term.count * (math.ceil(running / term.tokens) + term.extra)
        if (sequences - 1) * rest + prompt > store.blocks * (1 + 1e-12):
            return False
    return True


@given(scenarios)
@settings(max_examples=40, deadline=None)
def test_every_way_to_ask_gives_the_same_memory(fields: dict[str, Any]) -> None:
    form = question(fields)
    scenario = Scenario(**form)
    planned = plan(scenario).memory
    deployment = deployment_of(scenario)
    assert planned.max_batch == deployment.memory.max_batch(fields["context"][0])
    _same_in_recommend(form, planned.max_batch, planned.binds)
    _same_in_sweep(scenario, planned.max_batch)
    _same_in_validate(form, deployment, planned.kv_pool_tokens)


def _same_in_recommend(form: dict[str, Any], most: int, binds: str) -> None:
    request = RecommendationRequest(**{**form, "gpu": [form["gpu"]], "context": form["context"][0]})
    result = recommend(request)
    if most:
        choice = result.choices[0]
        assert choice.max_batch == most
        assert choice.binds == binds or choice.binds not in ("memory", "engine_cap")
    else:
        assert not result.choices


def _same_in_sweep(scenario: Scenario, most: int) -> None:
    batches = sorted({1, max(1, most), min(most + 1, 2**20)})
    table = sweep(SweepRequest(scenario=scenario, batch=batches)).columns
    assert table["fits"] == [batch <= most for batch in batches]


def _same_in_validate(form: dict[str, Any], deployment: Deployment, tokens: int | None) -> None:
    if form["engine"] is None:
        return
    names = ("model", "gpu", "tp", "engine", "engine_version", "memory_fraction", "max_sequences")
    inputs = {name: str(form[name] or "") for name in (*names, "max_model_len")}
    inputs |= {"row": "1", "vision": {None: "", False: "off"}[form["vision"]]}
    inputs["kv_dtype"] = deployment.formats.kv.id
    values = predict([Row("memory", inputs, {}, {})])[0].values
    pool = deployment.memory.kv_pool_bytes_per_gpu / 2**30
    assert values["kv_gib"] == pytest.approx(pool)
    assert values.get("kv_tokens") == tokens


def test_arrays_of_contexts_give_what_each_gives() -> None:
    memory = deployment_of(Scenario(model=MODELS[1], gpu="h100-sxm5", engine="vllm")).memory
    contexts = np.array([[1.0, 127.0, 128.0], [129.0, 8192.0, 131_072.0]])
    each = [[memory.max_batch(float(c)) for c in row] for row in contexts]
    assert memory.max_batch(contexts).tolist() == each
