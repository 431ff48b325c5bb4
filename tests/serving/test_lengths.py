"""Distributions of lengths by their moments."""

from __future__ import annotations

import numpy as np
import pytest

from planner.deployment import Deployment, Options, deploy
from planner.hw import get_accelerator
from planner.models import get_model
from planner.serving.steady import serve
from planner.step.parallel import Sharding
from planner.workload.lengths import InvalidLengths, Lengths


def deployment(tp: int = 4) -> Deployment:
    return deploy(
        get_model("meta-llama/Llama-3.1-70B-Instruct"),
        get_accelerator("h200-sxm"),
        Sharding(tp=tp),
        Options(weights="fp8", engine="vllm"),
    )


def test_moments() -> None:
    assert Lengths.fixed(100).of_a_step == 100
    assert Lengths.lognormal(100, 1).of_a_step == pytest.approx(200)
    assert Lengths.uniform(0, 120).of_a_step == pytest.approx(80)
    assert Lengths.histogram({100: 3, 200: 1}).mean == pytest.approx(125)
    trace = Lengths.trace([100, 100, 100, 200])
    assert trace == Lengths.histogram({100: 3, 200: 1})


def test_a_trace_agrees_with_the_distribution_it_was_drawn_from() -> None:
    drawn = np.random.default_rng(0).lognormal(6, 0.8, 200_000)
    found, wanted = (
        Lengths.trace(drawn),
        Lengths.lognormal(drawn.mean(), drawn.std() / drawn.mean()),
    )
    assert found.of_a_step == pytest.approx(wanted.of_a_step, rel=1e-6)


@pytest.mark.parametrize(
    "bad",
    [
        lambda: Lengths.fixed(0),
        lambda: Lengths.trace([]),
        lambda: Lengths.histogram({}),
        lambda: Lengths.fixed(np.nan),
        lambda: Lengths.histogram({10: -1}),
    ],
)
def test_refuses_what_is_no_distribution(bad) -> None:
    with pytest.raises(InvalidLengths, match="lengths: "):
        bad()


def test_fixed_lengths_are_the_plain_question() -> None:
    plain = serve(deployment(), 32, 4096, 512)
    fixed = serve(deployment(), 32, Lengths.fixed(4096), Lengths.fixed(512))
    assert float(fixed.tpot_s) == pytest.approx(float(plain.tpot_s))
    assert float(fixed.ttft_s) == pytest.approx(float(plain.ttft_s))


def test_spread_costs() -> None:
    fixed = serve(deployment(), 32, 4096, 2048)
    spread = serve(deployment(), 32, Lengths.lognormal(4096, 1), Lengths.lognormal(2048, 1))
    assert spread.decode_s > fixed.decode_s
    assert spread.prompts.own_s > fixed.prompts.own_s
