"""Figures that others published of their own set-ups, none of them in a fit, inside the intervals.

Each was printed by who ran it: a blog, a model's page, an issue. What is not printed is assumed.
"""

from __future__ import annotations

from typing import Any

import pytest

from planner import Scenario, plan
from planner.answer import Serving

NEMOTRON: dict[str, Any] = {
    "model": "nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16",
    "engine": "vllm",
    "concurrency": 256,
    "isl": {"lognormal": {"mean": 4895, "cv": 0.98}},
    "osl": {"lognormal": {"mean": 226, "cv": 0.58}},
}

R1: dict[str, Any] = {
    "model": "deepseek-ai/DeepSeek-R1-0528",
    "gpu": "b200-sxm",
    "engine": "sglang",
    "tp": 8,
}


def served(asked: dict[str, Any]) -> Serving:
    answer = plan(Scenario(**asked)).serving
    assert answer is not None
    return answer


@pytest.mark.parametrize(
    ("asked", "measured_ms"),
    [
        # SGLang as its cookbook starts it, lengths uniform from near 0 (means given).
        ({**R1, "concurrency": 1, "isl": 610, "osl": 421}, 9.2),
        ({**R1, "concurrency": 100, "isl": 500, "osl": 504}, 40.0),
        (
            {
                "model": "mistralai/Ministral-3-14B-Instruct-2512",
                "gpu": "mi300x",
                "engine": "sglang",
                "weights": "fp8",
                "concurrency": 16,
                "isl": 500,
                "osl": 500,
            },
            10.5,
        ),
        # Cached prompts: three fresh tokens of a request ride on the steps.
        (
            {
                "model": "mistralai/Mixtral-8x7B-v0.1",
                "gpu": "h100-sxm5",
                "engine": "vllm",
                "tp": 2,
                "concurrency": 102,
                "isl": 574,
                "osl": 248,
                "prefix_hit": 0.995,
            },
            20.7,
        ),
        # Two hosts of 8 over InfiniBand, one client.
        (
            {
                "model": "deepseek-ai/DeepSeek-R1",
                "gpu": "h100-sxm5",
                "engine": "sglang",
                "tp": 16,
                "concurrency": 1,
                "isl": 1000,
                "osl": 1000,
            },
            23.2,
        ),
    ],
    ids=["r1-one-client", "r1-hundred", "ministral-mi300x", "mixtral-cached", "r1-two-nodes"],
)
def test_time_per_token(asked: dict[str, Any], measured_ms: float) -> None:
    tpot = served(asked).tpot_s
    assert tpot.p10 * 1e3 <= measured_ms <= tpot.p90 * 1e3


@pytest.mark.parametrize("measured_ms", [126.0, 153.0])
def test_time_to_first_token_of_one_client(measured_ms: float) -> None:
    ttft = served({**R1, "concurrency": 1, "isl": 610, "osl": 421}).ttft_s
    assert ttft.p10 * 1e3 <= measured_ms <= ttft.p90 * 1e3


@pytest.mark.parametrize(
    ("gpu", "measured"), [("h200-sxm", 2550.0), ("rtx-pro-6000-server", 1167.0)]
)
def test_output_of_a_hybrid_under_lengths_that_differ(gpu: str, measured: float) -> None:
    rate = served({**NEMOTRON, "gpu": gpu}).output_tokens_per_s_interval
    assert rate.p10 <= measured <= rate.p90


def test_prompts_that_saturate_an_engine() -> None:
    """Inputs of 9000 tokens, 30 out: 4.2 requests/s were measured, which is what the GPU takes."""
    found = served(
        {
            "model": "Qwen/Qwen3-8B",
            "gpu": "h200-sxm",
            "engine": "vllm",
            "engine_version": "0.18.0",
            "concurrency": 32,
            "isl": 9000,
            "osl": 30,
        }
    )
    rate = found.requests_per_s_interval
    assert rate.p10 <= 4.2 <= rate.p90
