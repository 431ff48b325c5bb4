"""Lengths asked for as a distribution: their moments, and what an answer makes of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

from planner import Scenario, plan
from planner.deployment import deployment_of
from planner.errors import one_line
from planner.workload.distributions import MOST_BINS, MOST_REQUESTS, mean_context, moments

LLAMA = "meta-llama/Llama-3.1-70B-Instruct"
LOAD: dict[str, Any] = {
    "model": LLAMA,
    "gpu": "h200-sxm",
    "tp": 4,
    "weights": "fp8",
    "engine": "vllm",
    "concurrency": 32,
    "isl": 4096,
    "osl": 512,
}


def asked(**changes: Any) -> Scenario:
    return Scenario(**{**LOAD, **changes})


@pytest.mark.parametrize(
    ("length", "mean", "of_a_step"),
    [
        (1024, 1024, 1024),
        # E[X²]/E[X] = m(1 + cv²), whatever the distribution.
        ({"lognormal": {"mean": 1000, "cv": 0.5}}, 1000, 1250),
        # ∫x²/∫x over [0, 120] is 80; here (100² + 100·400 + 400²)/3 / 250 = 280.
        ({"uniform": {"low": 100, "high": 400}}, 250, 280),
        # (3·100² + 200²)/4 / 125 = 140.
        ({"histogram": {"100": 3, "200": 1}}, 125, 140),
        ({"trace": [100, 200, 100, 100]}, 125, 140),
    ],
)
def test_moments_by_hand(length: Any, mean: float, of_a_step: float) -> None:
    isl = asked(isl=length).isl
    assert isl is not None
    assert moments(isl).mean == pytest.approx(mean)
    assert moments(isl).of_a_step == pytest.approx(of_a_step)


@pytest.mark.parametrize(
    "all_equal",
    [
        {"lognormal": {"mean": 512, "cv": 0}},
        {"uniform": {"low": 512, "high": 512}},
        {"histogram": {"512": 7}},
        {"trace": [512] * 9},
    ],
)
@pytest.mark.parametrize("field", ["isl", "osl"])
def test_lengths_without_spread_are_the_number(field: str, all_equal: dict[str, Any]) -> None:
    number, spread = plan(asked(**{field: 512})), plan(asked(**{field: all_equal}))
    assert spread.serving == number.serving
    assert spread.points == number.points
    assert spread.memory == number.memory


def test_a_number_says_nothing_and_a_distribution_its_moments() -> None:
    assert "length_distribution" not in {note.code for note in plan(asked()).notes}
    answer = plan(asked(osl={"lognormal": {"mean": 512, "cv": 1}}))
    (note,) = [note.text for note in answer.notes if note.code == "length_distribution"]
    assert note.startswith("osl: 512 tokens on average")
    assert note.endswith("1024")
    assert answer.serving is not None
    assert answer.serving.osl == 512
    assert answer.serving.output_tokens_per_s == pytest.approx(512 * answer.serving.requests_per_s)


def test_the_context_of_a_step_is_weighted_by_steps() -> None:
    spread = asked(osl={"lognormal": {"mean": 512, "cv": 1}})
    assert plan(spread).scenario.context == [4096 + 512]
    assert plan(asked()).scenario.context == [4096 + 256]
    assert mean_context(2**30, 2**30) == 2**30


def test_the_pool_holds_fewer_where_outputs_spread() -> None:
    memory, engine = deployment_of(asked()).memory, deployment_of(asked()).engine
    clients = 10 * memory.max_batch(4096)
    for osl, in_pool in ((4000, 4000), ({"lognormal": {"mean": 4000, "cv": 2}}, 20_000)):
        serving = plan(asked(concurrency=clients, osl=osl)).serving
        assert serving is not None
        room = memory.max_batch(4096 + engine.output_reserved * in_pool)
        assert serving.queued == clients - min(room, engine.max_sequences)


def test_spread_inputs_take_longer() -> None:
    fixed, spread = (
        plan(asked(isl=isl)).serving for isl in (8192, {"lognormal": {"mean": 8192, "cv": 1.5}})
    )
    assert fixed is not None
    assert spread is not None
    assert spread.ttft_s.p50 > fixed.ttft_s.p50


def test_a_trace_is_near_the_distribution_it_was_drawn_from() -> None:
    drawn = np.random.default_rng(1).gamma(4, 256, MOST_REQUESTS).round().clip(1)
    histogram = dict(zip(*(a.tolist() for a in np.unique(drawn, return_counts=True)), strict=True))
    trace = asked(isl={"trace": [int(x) for x in drawn]}).isl
    binned = asked(isl={"histogram": {str(int(x)): n for x, n in histogram.items()}}).isl
    assert trace is not None
    assert binned is not None
    assert moments(trace).mean_square == pytest.approx(moments(binned).mean_square)
    assert moments(trace).of_a_step == pytest.approx(1024 * 1.25, rel=0.01)  # cv² of a gamma is 1/4


@pytest.mark.parametrize(
    ("length", "words"),
    [
        ({"lognormal": {"mean": 1024}}, ["isl.lognormal.cv", "required"]),
        ({"lognormal": {"mean": 1024, "cv": -1}}, ["isl.lognormal.cv", "-1"]),
        ({"lognormal": {"mean": float("nan"), "cv": 1}}, ["isl.lognormal.mean"]),
        ({"uniform": {"low": 9, "high": 3}}, ["isl.uniform", "high is below low"]),
        ({"histogram": {"100": 0}}, ["isl", "every count is zero"]),
        ({"histogram": {"x": 1}}, ["isl.histogram.x"]),
        ({"histogram": {str(n + 1): 1 for n in range(MOST_BINS + 1)}}, ["isl.histogram", "4096"]),
        ({"trace": []}, ["isl.trace"]),
        ({"trace": [0]}, ["isl.trace.0"]),
        ({"trace": [1] * (MOST_REQUESTS + 1)}, ["isl.trace", "100000"]),
        ({"pareto": {"mean": 3}}, ["isl", "lognormal", "trace"]),
        ({"lognormal": {"mean": 9, "cv": 1}, "trace": [1]}, ["isl", "lognormal", "trace"]),
        ("many", ["isl", "lognormal", "many"]),
        ([1, 2], ["isl", "lognormal", "trace"]),
        (0, ["isl", "0"]),
        (True, ["isl"]),
    ],
)
def test_what_is_no_length_is_one_line(length: Any, words: list[str]) -> None:
    with pytest.raises(ValidationError) as refused:
        Scenario.model_validate({**LOAD, "isl": length}, strict=True)
    line = one_line(refused.value)
    assert len(line) < 300
    for word in words:
        assert word in line
