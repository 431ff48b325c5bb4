"""A search: solved together as alone, bounds that hold, and what is passed over."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from planner import plan
from planner.deployment import Deployment, Options, deploy
from planner.engines.settings import DEFAULTS
from planner.hw import get_accelerator
from planner.models import get_model
from planner.plans import search as searching
from planner.plans.apart import PromptWorkers, apart, least_gpus
from planner.plans.candidate import Candidate, sized
from planner.plans.curves import DecodeAlone, Sampled, decoding_alone, shared_curves
from planner.plans.question import Question
from planner.plans.recommend import recommend
from planner.plans.request import RecommendationRequest
from planner.plans.search import search
from planner.step.coefficients import COLUMNS, kernel_table
from planner.step.model_steps import decode_kernels, prompt_kernels
from planner.step.parallel import Sharding
from tests.models.gguf_headers import write
from tests.models.test_gguf import LLAMA_KEYS, llama_tensors

DENSE = "meta-llama/Llama-3.1-70B-Instruct"
MOE = "openai/gpt-oss-120b"
H200 = get_accelerator("h200-sxm")
SPLITS = (Sharding(2), Sharding(4), Sharding(8), Sharding(2, 2), Sharding(4, 2))
CHAT = {"isl": 4000, "osl": 500, "ttft_ms": 2000.0, "tpot_ms": 40.0}


def question_of(model: str = DENSE, **fields: Any) -> Question:
    request = RecommendationRequest(**{"model": model, **CHAT, **fields})
    return Question.of(request, get_model(request.model))


def deployments(engine: str = "vllm") -> list[Deployment]:
    options = Options(engine=engine, settings=DEFAULTS)
    return [deploy(get_model(DENSE), H200, split, options) for split in SPLITS]


def samples(question: Question, engine: str = "vllm") -> list[Sampled]:
    rows = [Sampled.of(one, question.requests) for one in deployments(engine)]
    return [row for row in rows if row is not None]


@pytest.mark.parametrize("engine", ["vllm", "sglang"])
def test_replicas_solved_together_are_as_those_solved_alone(engine: str) -> None:
    rows = samples(question_of(), engine)
    assert len(rows) == len(SPLITS)
    for row, together in zip(rows, shared_curves(rows), strict=True):
        (alone,) = shared_curves([row])
        for name in ("clients", "running", "ttft_s", "tpot_s", "requests_per_s", "prompt_share"):
            assert getattr(together, name) == pytest.approx(getattr(alone, name), rel=1e-12)


def test_no_replicas_have_no_curves() -> None:
    assert shared_curves([]) == []
    assert decoding_alone([]) == []


DEMANDS: list[dict[str, Any]] = [
    {"concurrency_in_all": 100},
    {"requests_per_s": 7.5},
    {"users": 300, "think_time_s": 5.0},
    {"gpus": 16},
    {"requests_per_s": 7.5, "percentile": 90},
    {"requests_per_s": 7.5, "ttft_ms": 150.0, "tpot_ms": 15.0},
    {"requests_per_s": 7.5, "ttft_ms": 1.0},
]


def pairs(question: Question, alone: DecodeAlone, workers: PromptWorkers) -> list[Candidate]:
    transfer_s = alone.workers.transfer_s
    before_s = workers.before_s[:, 0] + transfer_s
    return [
        sized(question, alone.deployment, "vllm", feeding, alone.fed_by(float(before)), None)
        for feeding, before in zip(workers.feeding, before_s, strict=True)
    ]


@pytest.mark.parametrize("demand", DEMANDS)
def test_gpus_are_never_fewer_than_their_bound(demand: dict[str, Any]) -> None:
    question = question_of(**demand)
    decoding = decoding_alone(samples(question))
    workers = PromptWorkers.of(decoding)
    for alone in decoding:
        before_s = workers.before_s + alone.workers.transfer_s
        bounds = least_gpus(question, alone, before_s, workers.taken_s)
        for candidate, bound in zip(pairs(question, alone, workers), bounds, strict=True):
            if candidate.replicas:
                assert bound <= candidate.gpus / candidate.served * (1 + 1e-9)
            elif not question.request.gpus:
                assert np.isinf(bound) or candidate.load.served <= 0


@pytest.mark.parametrize("demand", DEMANDS)
def test_what_is_passed_over_is_not_better(demand: dict[str, Any]) -> None:
    """The best of all pairs, each sized, takes as many GPUs as the one that the bound leads to."""
    question = question_of(**demand)
    rows = samples(question)
    decoding = decoding_alone(rows)
    workers = PromptWorkers.of(decoding)

    def each(candidates: Sequence[Candidate]) -> float:
        return min((c.gpus / c.served for c in candidates if c.replicas), default=np.inf)

    refused: dict[str, str] = {}
    chosen = list(apart(question, rows, "vllm", None, refused.__setitem__))
    assert not refused
    assert [paired.pairs for paired in chosen] == [len(rows)] * len(rows)
    for paired, alone in zip(chosen, decoding, strict=True):
        assert each([paired.candidate]) == pytest.approx(each(pairs(question, alone, workers)))


def test_workers_for_prompts_take_longer_or_more_gpu_time() -> None:
    """Of the workers that are tried, each takes longer for a prompt and less GPU time."""
    workers = PromptWorkers.of(decoding_alone(samples(question_of())))
    assert (np.diff(workers.before_s[:, 0]) >= 0).all()
    assert (np.diff(workers.taken_s[:, 0]) < 0).all()
    # Two GPUs split their work with least overhead, so that they stand last.
    assert workers.feeding[-1].deployment.sharding.gpus == 2


def test_every_legal_option_of_eight_h200() -> None:
    """10 splits (TP 1 to 8 by PP up to 8 GPUs), 3 engines with one or two cache formats: 50
    replicas with prompts, and each of 50 that decode beside each of the 10 of its group."""
    searched = search(question_of(gpu=["h200-sxm"], gpus=8, weights="fp8"))
    assert searched.evaluated == 50 + 50 * 10
    assert not searched.staged
    assert len(searched.meeting) + len(searched.missing) == 100


def test_many_options_go_in_two_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    """With room for few options the splits other than TP are tried on the best accelerators."""
    gpus = ["h200-sxm", "l40s", "rtx-4090"]
    question = question_of(
        MOE, gpu=gpus, engine="vllm", kv="bf16", concurrency_in_all=50, attention_dp=1, ep=1
    )
    whole = search(question)
    assert not whole.staged
    monkeypatch.setattr(searching, "MOST_WHOLE", 10)
    monkeypatch.setattr(searching, "SECOND_ROUND", 2)
    staged = search(question)
    assert staged.staged
    assert 10 < staged.evaluated < whole.evaluated
    assert min(map(Candidate.usd, staged.meeting)) == min(map(Candidate.usd, whole.meeting))
    wide = {c.gpu for c in staged.meeting if c.deployment.sharding.pp > 1}
    assert 1 <= len(wide) < len({c.gpu for c in whole.meeting})


def test_kernels_are_kept_as_columns() -> None:
    """Splits on all accelerators run the same kernels: one table, whose rows are the kernels'."""
    spec = get_model(MOE)
    kernels = decode_kernels(spec, spec.formats(None))
    assert decode_kernels(spec, spec.formats(None)) is kernels
    assert prompt_kernels(spec, spec.formats(None)) is not kernels
    table = kernel_table(kernels)
    assert kernel_table(kernels) is table
    assert set(COLUMNS) > {"flops_per_token", "weight_bytes", "bytes_per_cached", "experts"}
    for at, kernel in enumerate(kernels):
        assert table.columns["weight_bytes"][at] == kernel.weight_bytes
        assert (at in table.cached) == bool(kernel.bytes_per_cached)
    experts = table.of(table.alone)("experts")
    assert sorted(set(experts.tolist())) == [0, 128]


def test_formats_that_are_equal_hash_alike() -> None:
    spec = get_model(DENSE)
    same, other = spec.formats(None), spec.formats("fp8")
    assert hash(same) == hash(spec.formats(None))
    assert same == spec.formats(None)
    assert same != other


def gguf(folder: Path) -> str:
    """Llama-3-8B as llama.cpp's Q4_K_M stores it."""
    path = folder / "Meta-Llama-3-8B.Q4_K_M.gguf"
    return str(write(path, "llama", LLAMA_KEYS, llama_tensors(), general__file_type=15))


@pytest.mark.parametrize("gpu", ["rtx-4090", "h100-sxm5", "mi300x"])
def test_a_gguf_file_chooses_llama_cpp(gpu: str, tmp_path: Path) -> None:
    """On accelerators that other engines run on, too; no workers for prompts, which it lacks."""
    question = question_of(gguf(tmp_path), gpu=[gpu], concurrency_in_all=4, isl=1000)
    searched = search(question)
    candidates = [*searched.meeting, *searched.missing]
    assert candidates
    assert {c.engine for c in candidates} == {"llama.cpp"}
    assert {c.deployment.weights for c in candidates} == {"q4_k_m"}
    assert not any(c.feeding for c in candidates)


def test_a_gguf_file_is_recommended_from_end_to_end(tmp_path: Path) -> None:
    """Nearly 5 GB of weights on one card of 24 GB; the answer is what `plan` says of it."""
    path = gguf(tmp_path)
    request = RecommendationRequest(
        model=path,
        gpu=["rtx-4090"],
        isl=1000,
        osl=200,
        concurrency_in_all=4,
        tpot_ms=50,
        confirm=False,
    )
    result = recommend(request).sized
    assert result is not None
    assert result.cheapest is not None
    option = result.options[result.cheapest]
    assert (option.engine, option.gpus, option.tp) == ("llama.cpp", 1, 1)
    answered = plan(option.scenario).serving
    assert answered is not None
    assert answered.tpot_s == option.tpot_s


def test_an_engine_that_is_named_is_taken_for_a_gguf_file_too(tmp_path: Path) -> None:
    question = question_of(gguf(tmp_path), gpu=["h100-sxm5"], engine="vllm", concurrency_in_all=4)
    searched = search(question)
    assert {c.engine for c in [*searched.meeting, *searched.missing]} <= {"vllm"}


def test_a_checkpoint_of_a_server_is_not_llama_cpp_s() -> None:
    searched = search(question_of(gpu=["h100-sxm5"], tp=4, pp=1, concurrency_in_all=4))
    engines = {c.engine for c in [*searched.meeting, *searched.missing]}
    assert engines == {"vllm", "sglang", "trtllm"}
