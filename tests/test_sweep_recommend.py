"""Sweeps agree with plans; recommendations respect memory, the limit, knee and crossover."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
from pydantic import ValidationError

from planner.hw import list_accelerators
from planner.plans.planning import plan
from planner.plans.recommend import RecommendationRequest, recommend
from planner.plans.sweep import COLUMNS, SweepRequest, rows_of, sweep
from planner.scenario import Scenario

LLAMA = "meta-llama/Llama-3.1-70B-Instruct"
BASE = Scenario(model=LLAMA, gpu="h100-sxm5", tp=4)


def test_a_sweep_agrees_with_plans() -> None:
    found = sweep(
        SweepRequest(
            scenario=BASE, gpu=["h100-sxm5", "b200-sxm"], batch=[1, 64], context=[1024, 8192]
        )
    ).columns
    for i in range(8):
        answer = plan(
            BASE.model_copy(
                update={
                    "gpu": found["gpu"][i],
                    "batch": [found["batch"][i]],
                    "context": [found["context"][i]],
                }
            )
        ).points[0]
        assert found["tpot_p50_s"][i] == pytest.approx(answer.tpot_s.p50, rel=1e-12)
        assert found["bytes"][i] == answer.bytes
        assert found["bound"][i] == answer.bound


def test_the_formats_used_are_told_whether_asked_or_not() -> None:
    one = {"model": "deepseek-ai/DeepSeek-V3", "gpu": "b200-sxm", "tp": 8}
    for engine, weights, kv in (
        ("trtllm", None, None),
        ("vllm", "W4A16", "E4M3"),
        (None, None, None),
    ):
        asked = Scenario(**one, engine=engine, weights=weights, kv=kv)
        found, filled = sweep(SweepRequest(scenario=asked)).columns, plan(asked).scenario
        assert (found["weights"], found["kv"]) == ([filled.weights], [filled.kv])
        assert filled.weights
        assert filled.kv


def test_an_impossible_combination_keeps_its_rows() -> None:
    found = sweep(SweepRequest(scenario=BASE, tp=[3, 4], batch=[1, 2])).columns
    assert found["tp"] == [3, 3, 4, 4]
    assert "attention heads" in found["error"][0]
    assert found["tpot_p50_s"][0] is None
    assert found["error"][2] is None
    assert found["tpot_p50_s"][2] > 0


def test_the_columns_of_a_sweep_do_not_depend_on_its_rows() -> None:
    for degrees in ([4], [3], [3, 4], [4, 3]):
        assert tuple(sweep(SweepRequest(scenario=BASE, tp=degrees)).columns) == COLUMNS
    [possible] = SweepRequest(scenario=BASE).deployments()
    assert tuple(rows_of(possible)) == COLUMNS


def test_a_sweep_runs_on_any_executor() -> None:
    request = SweepRequest(scenario=BASE, tp=[2, 4, 8], batch=[1, 2, 4])
    with ThreadPoolExecutor(2) as pool:
        assert sweep(request, pool) == sweep(request)


def test_a_sweep_too_large_names_the_limit() -> None:
    with pytest.raises(ValidationError, match="200000 rows at most"):
        SweepRequest(scenario=BASE, batch=list(range(1, 4097)), context=list(range(1, 100)))


def choices(**asked: object) -> dict[str, object]:
    request = RecommendationRequest(model=LLAMA, context=8192, **asked)
    return {choice.gpu: choice for choice in recommend(request).choices}


def test_a_limit_binds_and_is_met() -> None:
    tight = choices(gpu=["h200-sxm"], tp=4, tpot_ms=20)["h200-sxm"]
    assert tight.binds == "tpot"
    assert tight.tpot_s.p50 <= 0.020
    answer = plan(
        Scenario(model=LLAMA, gpu="h200-sxm", tp=4, batch=tight.batch + 1, context=8192)
    ).points[0]
    assert answer.tpot_s.p50 > 0.020


def test_without_a_limit_the_knee_or_memory_binds() -> None:
    found = choices(gpu=["h200-sxm", "h100-sxm5"])
    assert found["h200-sxm"].binds in ("knee", "memory")
    for choice in found.values():
        assert 1 <= choice.batch <= choice.max_batch
        assert choice.headroom == pytest.approx(1 - choice.batch / choice.max_batch)


def test_the_smallest_tp_that_holds_the_model_is_chosen() -> None:
    """141 GB of weights: one B300 (288 GB), two H200, two H100 leave too little, so four or two."""
    found = choices(gpu=["b300-sxm", "h200-sxm"])
    assert found["b300-sxm"].tp == 1
    assert found["h200-sxm"].tp == 2
    refused = recommend(RecommendationRequest(model=LLAMA, gpu=["h200-sxm", "t4"], tp=1)).refused
    assert any("weights take" in row.reason for row in refused)


def test_what_cannot_hold_the_model_is_listed_with_the_reason() -> None:
    answer = recommend(RecommendationRequest(model="deepseek-ai/DeepSeek-V3", context=8192))
    reasons = {row.gpu: row.reason for row in answer.refused}
    assert "weights take" in reasons["rtx-4090"]
    assert "no peak on record" in reasons["cerebras-wse3"]
    assert len(answer.choices) + len(answer.refused) == len(list_accelerators())


def test_weights_that_fit_without_a_sequence_are_not_blamed_alone() -> None:
    [row] = recommend(
        RecommendationRequest(model=LLAMA, gpu=["h100-sxm5"], tp=2, context=131072)
    ).refused
    assert "weights take 70.6 GB per GPU at tp=2, the cache of one sequence 21.5 GB" in row.reason


def test_notes_of_the_model_are_told_once() -> None:
    model = "openai-community/gpt2"  # whose config.json has no dtype
    found = recommend(RecommendationRequest(model=model, context=512, gpu=["v100-sxm2-16gb", "t4"]))
    assert [note.code for note in found.notes if note.code == "assumed_dtype"] == ["assumed_dtype"]
    own = [{note.code for note in choice.notes} for choice in found.choices]
    assert own == [{"emulated_format"}] * 2


def test_a_request_about_no_model_is_refused_not_listed() -> None:
    with pytest.raises(ValueError, match=r"^model: unknown model"):
        recommend(RecommendationRequest(model="nope"))


def test_the_engine_version_counts() -> None:
    found = choices(gpu=["h100-sxm5"], engine="vllm", engine_version="0.11.0")["h100-sxm5"]
    asked = Scenario(
        model=LLAMA,
        gpu="h100-sxm5",
        tp=found.tp,
        batch=found.batch,
        context=8192,
        engine="vllm",
        engine_version="0.11.0",
    )
    assert found.tpot_s == plan(asked).points[0].tpot_s


def test_the_best_degree_is_at_least_as_good_as_the_smallest() -> None:
    smallest = choices(gpu=["h100-sxm5"], tpot_ms=50)["h100-sxm5"]
    best = choices(gpu=["h100-sxm5"], tpot_ms=50, best_tp=True)["h100-sxm5"]
    assert best.tp > smallest.tp
    assert best.tokens_per_s_per_gpu > smallest.tokens_per_s_per_gpu
