"""One memory model: plan, recommend, sweep, validate and the service give the same figures."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

from planner import Scenario
from planner.answer import MemoryAnswer
from planner.deployment import deployment_of
from planner.engines.pool import Pool
from planner.engines.profiles import get_engine
from planner.engines.settings import MemorySettings
from planner.models import get_model
from planner.plans.recommend import Recommendation, RecommendationRequest, recommend
from planner.plans.sweep import SweepRequest, sweep
from planner.runs.predict import predict
from planner.runs.rows import Row
from tests.deployments import answer_or_refusal, deployments, form, planned_memory


@pytest.mark.slow
@given(deployments)
@settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_the_largest_batch_of_any_deployment_fits_and_one_more_does_not(
    fields: dict[str, Any],
) -> None:
    largest_batch_fits(fields)


@given(deployments)
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_the_largest_batch_fits_and_one_more_does_not(fields: dict[str, Any]) -> None:
    largest_batch_fits(fields)


def largest_batch_fits(fields: dict[str, Any]) -> None:
    deployment = answer_or_refusal(lambda: deployment_of(Scenario(**form(fields))))
    if isinstance(deployment, str):
        return
    memory, context = deployment.memory, fields["context"][0]
    most = memory.max_batch(context)
    if memory.kv_pool_bytes_per_gpu < 0 or context > min(
        memory.most_tokens, memory.pool.longest_start
    ):
        assert most == 0
        return
    ranks, each = memory.attention_dp, most // memory.attention_dp
    assert most == ranks * each
    assert each <= memory.max_sequences
    assert each == 0 or blocks_suffice(memory.pool, each, context)
    if each < memory.max_sequences:
        assert not blocks_suffice(memory.pool, each + 1, context)
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


@pytest.mark.slow
@given(deployments)
@settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_every_way_to_ask_of_any_deployment_agrees(fields: dict[str, Any]) -> None:
    every_way_agrees(fields)


@given(deployments)
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_every_way_to_ask_gives_the_same_memory(fields: dict[str, Any]) -> None:
    every_way_agrees(fields)


def every_way_agrees(fields: dict[str, Any]) -> None:
    given_fields = form(fields)
    planned = planned_memory(fields)
    _same_in_sweep(given_fields, planned)
    if given_fields["speculation"]:
        return  # layers that draft are loaded, of which batches by context and rows say nothing
    if given_fields["pp"] == given_fields["ep"] == given_fields["attention_dp"] == 1:
        _same_in_recommend(given_fields, planned)
    if given_fields["ep"] == given_fields["attention_dp"] == 1 and given_fields["engine"]:
        _same_in_validate(given_fields, planned)


def _same_in_recommend(fields: dict[str, Any], planned: MemoryAnswer | str) -> None:
    rest = {n: v for n, v in fields.items() if n not in ("pp", "ep", "attention_dp", "speculation")}
    rest |= {"gpu": [fields["gpu"]], "context": fields["context"][0]}
    result = answer_or_refusal(lambda: recommend(RecommendationRequest(**rest)))
    if isinstance(planned, str) or isinstance(result, str):
        assert result == planned or (not isinstance(result, str) and planned == reasons(result))
    elif planned.max_batch:
        (choice,) = result.choices
        assert choice.max_batch == planned.max_batch
        assert choice.binds == planned.binds or choice.binds not in ("memory", "engine_cap")
    else:
        assert not result.choices


def reasons(result: Recommendation) -> str:
    return "; ".join(refusal.reason for refusal in result.refused)


def _same_in_sweep(fields: dict[str, Any], planned: MemoryAnswer | str) -> None:
    most = 1 if isinstance(planned, str) else planned.max_batch
    batches = sorted({1, max(1, most), min(most + 1, 2**20)})
    table = sweep(SweepRequest(scenario=Scenario(**fields), batch=batches)).columns
    if isinstance(planned, str):
        assert set(table["error"]) == {planned}
    else:
        assert table["fits"] == [batch <= most for batch in batches]


_ROW = ("model", "gpu", "tp", "pp", "engine", "engine_version")


def _same_in_validate(fields: dict[str, Any], planned: MemoryAnswer | str) -> None:
    """A row of a start-up holds what a scenario says, but for speculation; it may name a longer
    context than the model's, and no share of memory of llama.cpp's."""
    engine = get_engine(fields["engine"], fields["engine_version"])
    longest, spec = fields["max_model_len"], get_model(fields["model"])
    if engine.whole_model or (longest and longest > (spec.max_context or math.inf)):
        return
    inputs = {name: str(fields[name] or "") for name in _ROW}
    inputs |= {"row": "1", "kv_dtype": fields["kv"] or ""}
    inputs |= {
        each.name: _cell(fields.get(each.name)) for each in dataclasses.fields(MemorySettings)
    }
    (result,) = predict([Row("memory", inputs, {}, {})])
    if isinstance(planned, str):
        assert not result.values
        assert result.notes == [planned]
        return
    overdrawn = max(0.0, result.values["kv_gib"])  # an engine prints what is missing
    assert overdrawn == pytest.approx(planned.kv_pool_bytes_per_gpu / 2**30)
    assert result.values["weights_gib"] == pytest.approx(planned.weights_bytes_per_gpu / 2**30)
    assert result.values.get("kv_tokens") == planned.kv_pool_tokens


def _cell(value: Any) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, dict):
        return f"{value['adapters']}:{value['rank']}"
    return "" if value is None else str(value)


def test_arrays_of_contexts_give_what_each_gives() -> None:
    memory = deployment_of(
        Scenario(model="openai/gpt-oss-120b", gpu="h100-sxm5", engine="vllm")
    ).memory
    contexts = np.array([[1.0, 127.0, 128.0], [129.0, 8192.0, 131_072.0]])
    each = [[memory.max_batch(float(c)) for c in row] for row in contexts]
    assert memory.max_batch(contexts).tolist() == each
