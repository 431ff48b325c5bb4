"""What an agent's tools answer: catalogue ids, plans, explanations, and what none of them opens."""

from __future__ import annotations

from pathlib import Path
from typing import Any, get_args

import pytest

from planner.errors import InvalidInput
from planner.handover.checking import CheckQuestion
from planner.handover.tools import MOST_MATCHES, MOST_POINTS, TOOLS, Named
from planner.hw import list_accelerators
from planner.models import list_models
from planner.plans.planning import plan
from planner.plans.recommend import RecommendationRequest
from planner.scenario import Scenario

MODEL = "meta-llama/Llama-3.1-8B-Instruct"
QUESTION: dict[str, Any] = {
    "model": MODEL,
    "gpu": "h100-sxm5",
    "engine": "vllm",
    "concurrency": 8,
    "isl": 1000,
    "osl": 200,
}


def ask(tool: str, **arguments: Any) -> dict[str, Any]:
    return TOOLS[tool](**arguments)


def test_models_are_found_by_their_words() -> None:
    answer = ask("find_model", text="llama 3.1 8b instruct")
    # The checkpoint of the catalogue of which the name that was asked for is another.
    (one,) = [row for row in answer["matches"] if row["id"] == "meta-llama/Meta-Llama-3.1-8B"]
    assert one["total_params"] == 8_030_261_248
    assert one["kv_bytes_per_token"] == 131_072  # 2·32 layers·8 heads·128 values of 16 bits
    assert ask("find_model", text="no such model at all")["matches"] == []


@pytest.mark.parametrize("limit", [1, 3])
def test_what_is_not_told_is_counted(limit: int) -> None:
    all_of = len(list_models(text="llama"))
    answer = ask("find_model", text="llama", limit=limit)
    assert len(answer["matches"]) == limit
    assert answer["more"] == all_of - limit > 0
    assert MOST_MATCHES >= 10


def test_accelerators_are_found_by_their_memory() -> None:
    """At least 141 GB, of which a nominal 141 GB card has 141e9 byte."""
    answer = ask("find_accelerator", text="h", min_memory_gb=141, limit=MOST_MATCHES)
    assert all(one["memory_bytes"] >= 141e9 for one in answer["matches"])
    ids = {one["id"] for one in answer["matches"]}
    assert "h100-sxm5" not in ids
    everything = ask("find_accelerator", limit=1)
    assert everything["more"] == len(list(list_accelerators())) - 1
    assert everything["matches"][0]["sources"]


def test_a_plan_is_that_of_the_library() -> None:
    assert ask("plan", scenario=Scenario(**QUESTION)) == plan(Scenario(**QUESTION)).model_dump(
        mode="json"
    )


@pytest.mark.parametrize(
    ("batches", "contexts", "refused"),
    [(16, 16, False), (17, 16, True), (257, 1, True), (1, 256, False)],
)
def test_points_of_a_plan_are_bounded(batches: int, contexts: int, refused: bool) -> None:
    scenario = Scenario(
        model=MODEL,
        gpu="h100-sxm5",
        batch=list(range(1, batches + 1)),
        context=list(range(1, contexts + 1)),
    )
    if not refused:
        assert len(ask("plan", scenario=scenario)["points"]) == batches * contexts <= MOST_POINTS
        return
    with pytest.raises(InvalidInput, match=rf"^batch: {batches * contexts} points; accepted: 256"):
        ask("plan", scenario=scenario)


@pytest.mark.parametrize("figure", get_args(Named))
def test_a_figure_that_is_explained_is_the_plan_s(figure: str) -> None:
    answer = ask("explain", scenario=Scenario(**QUESTION), figure=figure)
    result = plan(Scenario(**QUESTION))
    assert result.serving is not None
    expected = {
        "tpot_s": result.serving.tpot_s.p50,
        "ttft_s": result.serving.ttft_s.p50,
        "tokens_per_s": result.serving.output_tokens_per_s,
        "tokens_per_s_per_gpu": result.serving.output_tokens_per_s,
        "max_batch": result.memory.max_batch,
        "kv_pool_tokens": result.memory.kv_pool_tokens,
    }
    if figure in expected:
        assert answer["value"] == pytest.approx(expected[figure])
    else:  # a price an hour over the tokens of an hour
        assert answer["value"] > 0
    assert answer["meaning"]
    assert sum(kernel["share"] for kernel in answer["kernels"]) == pytest.approx(1.0)
    assert answer["memory"]["max_batch"] == result.memory.max_batch
    assert {lever["code"] for lever in answer["levers"]}


def test_a_decode_question_has_no_first_token() -> None:
    scenario = Scenario(model=MODEL, gpu="h100-sxm5", batch=8, context=1000)
    assert ask("explain", scenario=scenario, figure="ttft_s")["value"] is None
    assert ask("explain", scenario=scenario)["value"] == plan(scenario).points[-1].tpot_s.p50


def test_how_sure_a_figure_is() -> None:
    """Factors from the prediction to its ends, as the plan's intervals have them."""
    answer = ask("accuracy", scenario=Scenario(**QUESTION))
    serving = plan(Scenario(**QUESTION)).serving
    assert serving is not None
    for name, interval in (("tpot", serving.tpot_s), ("ttft", serving.ttft_s)):
        factors = answer["factors"][name]
        assert factors["p50"] == 1.0
        assert factors["p10"] * interval.p50 == pytest.approx(interval.p10)
        assert factors["p90"] * interval.p50 == pytest.approx(interval.p90)
    assert answer["nearness"].startswith("measured accelerator")
    far = ask("accuracy", scenario=Scenario(**{**QUESTION, "gpu": "gaudi3", "engine": None}))
    assert far["nearness"] == "datasheet only"
    # No narrower, as neither is narrower than sources that were left out.
    assert far["factors"]["tpot"]["p90"] >= answer["factors"]["tpot"]["p90"]


def test_a_manifest_is_checked_against_what_it_replaces() -> None:
    before, after = (f"vllm serve {MODEL} -tp {tp}\n" for tp in (1, 4))
    question = CheckQuestion(gpu="h100-sxm5", concurrency=8, isl=1000, osl=200)
    answer = ask("check", files={"a.sh": after}, question=question, baseline=before)
    (one,) = answer["checks"]
    assert one["verdict"] == "fail"
    assert {row["figure"] for row in one["regressions"]} >= {"tokens_per_s_per_gpu"}
    same = ask("check", files={"a.sh": before}, question=question, baseline=before)
    assert same["checks"][0]["regressions"] == []


def test_scenarios_are_compared_and_attributed() -> None:
    scenarios = [Scenario(**QUESTION), Scenario(**{**QUESTION, "kv": "fp8", "tp": 2})]
    answer = ask("compare", scenarios=scenarios)
    (item,) = answer["attributions"]
    assert {field for step in item["steps"] for field in step["fields"]} == {"kv", "tp"}
    reverse = ask("compare", scenarios=scenarios, baseline=1)
    assert reverse["baseline"] == answer["columns"][1]["label"]


@pytest.fixture
def own(tmp_path: Path) -> str:
    """A file that the library itself would open."""
    file = tmp_path / "own.json"
    file.write_text("{}")
    return str(file)


@pytest.mark.parametrize("field", ["model", "gpu"])
@pytest.mark.parametrize("tool", ["plan", "explain", "accuracy"])
def test_no_tool_opens_a_file(tool: str, field: str, own: str) -> None:
    with pytest.raises(InvalidInput, match=f"^{field}: unknown "):
        ask(tool, scenario=Scenario(**{**QUESTION, field: own}))


def test_nor_do_those_of_several_questions(own: str) -> None:
    with pytest.raises(InvalidInput, match=r"^gpu: unknown accelerator"):
        ask("compare", scenarios=[Scenario(**QUESTION), Scenario(**{**QUESTION, "gpu": own})])
    with pytest.raises(InvalidInput, match=r"^gpu: unknown accelerator"):
        ask("recommend", request=RecommendationRequest(model=MODEL, gpu=[own]))
    with pytest.raises(InvalidInput, match=r"^model: unknown model"):
        ask("recommend", request=RecommendationRequest(model=own, gpu=["l4"]))
    text = {"a.sh": f"vllm serve {MODEL}\n"}
    for field in ("model", "gpu"):
        with pytest.raises(InvalidInput, match=f"^{field}: unknown "):
            ask("check", files=text, question=CheckQuestion(**{"gpu": "l4", field: own}))
    with pytest.raises(InvalidInput, match="is not in the catalogue; give --model"):
        ask("check", files={"a.sh": f"vllm serve {own}\n"}, question=CheckQuestion(gpu="l4"))
