"""The largest model for a card: what is told fits and is fast enough, and agrees with plans."""

from __future__ import annotations

import pytest

from planner.hw import get_accelerator
from planner.plans.largest import Largest, LargestRequest, largest_models
from planner.plans.planning import plan
from planner.scenario import Scenario


@pytest.fixture(scope="module")
def card() -> Largest:
    return largest_models(LargestRequest(gpu="rtx-4090"))


def test_models_are_the_largest_first_and_fast_enough(card: Largest) -> None:
    sizes = [one.total_params for one in card.models]
    assert sizes == sorted(sizes, reverse=True)
    assert all(one.tokens_per_s.p50 >= 10 and one.max_context >= 8192 for one in card.models)


def test_a_model_agrees_with_its_plan(card: Largest) -> None:
    one = card.models[0]
    scenario = Scenario(
        model=one.model,
        gpu="rtx-4090",
        weights=one.weights,
        engine="llama.cpp",
        batch=1,
        context=[8192, one.max_context],
    )
    answer = plan(scenario)
    assert answer.memory.fits
    assert answer.points[0].tokens_per_s == pytest.approx(one.tokens_per_s.p50)
    beyond = plan(scenario.model_copy(update={"context": [one.max_context + 512]}))
    assert not beyond.memory.fits or beyond.points[0].tokens_per_s < 10


def test_host_memory_holds_larger_models_more_slowly(card: Largest) -> None:
    wide = largest_models(
        LargestRequest(gpu="rtx-4090", host_memory_bytes=64e9, host_bytes_per_s=80e9)
    )
    assert wide.models[0].total_params > card.models[0].total_params
    partly = [one for one in wide.models if one.layers_on_gpu < one.layers]
    assert partly
    weights = get_accelerator("rtx-4090").memory() + 64e9
    assert all(one.total_params * 0.5 < weights for one in partly)  # 4 bits and more a value
