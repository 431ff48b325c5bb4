"""The facts kept for lists are those of the models."""

from __future__ import annotations

import json

import pytest

from planner.models import describe, list_models
from planner.models.listing import all_facts, list_facts


def test_they_are_what_the_models_say() -> None:
    """Run `python tools/index_models.py` where this fails."""
    described = [json.loads(json.dumps(describe(spec))) for spec in list_models()]
    assert list(all_facts()) == described


@pytest.mark.parametrize(
    "filters",
    [{"family": "qwen3_moe"}, {"kind": "hybrid"}, {"text": "nemotron ultra fp8"}, {"text": "no!"}],
)
def test_filters_are_those_of_the_catalogue(filters: dict[str, str]) -> None:
    assert [facts["id"] for facts in list_facts(**filters)] == [
        spec.id for spec in list_models(**filters)
    ]


def test_a_listed_model_has_its_published_size() -> None:
    """8,030,261,248 parameters: the total of the weights published for Llama-3.1-8B-Instruct."""
    (facts,) = list_facts(text="meta-llama/llama-3.1-8b-instruct")
    assert facts["total_params"] == 8_030_261_248
