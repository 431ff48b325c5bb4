"""Attention-DP prompts: the closed form beside the schedule, step by step."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from planner.deployment import Options, deploy
from planner.hw import get_accelerator
from planner.models import get_model
from planner.serving.simulation.policy import Policy
from planner.serving.simulation.run import Seen, Simulator
from planner.serving.steady import Habits, serve
from planner.step.parallel import Sharding
from planner.workload.arrivals import RequestList

CLIENTS, ISL, OSL = 64, 8192, 512


@pytest.mark.parametrize("hold", [0, 60])
def test_prompts_stop_all_ranks_unless_they_are_held(hold: int) -> None:
    """DeepSeek-R1 on eight ranks: alone every prompt stops all, held they run side by side."""
    one = deploy(
        get_model("deepseek-ai/DeepSeek-R1"),
        get_accelerator("b200-sxm"),
        Sharding(attention_dp=8, ep=8),
        Options(weights="nvfp4", engine="trtllm"),
    )
    count, random = 6 * CLIENTS, np.random.default_rng(7)
    isl, osl = (random.uniform(0.9 * n, 1.1 * n, count).round() for n in (ISL, OSL))
    requests = RequestList(np.zeros(count), isl, osl)
    longest = float(isl.max() + osl.max())
    policy = replace(Policy.of(one, longest), hold_steps=hold)
    outcome = Simulator.under(one, policy, longest).closed(requests, CLIENTS)
    simulated = Seen.of(outcome, warm=0.2).at("tpot", None)
    closed = serve(one, CLIENTS, ISL, OSL, habits=Habits(rank_wait=hold))
    assert float(closed.tpot_s) == pytest.approx(simulated, rel=0.2)


def test_holding_makes_tokens_faster_and_starts_later() -> None:
    one = deploy(
        get_model("deepseek-ai/DeepSeek-R1"),
        get_accelerator("b200-sxm"),
        Sharding(attention_dp=8, ep=8),
        Options(weights="nvfp4", engine="trtllm"),
    )
    free, held = (serve(one, CLIENTS, ISL, OSL, habits=Habits(rank_wait=n)) for n in (0.0, 60.0))
    assert held.tpot_s < 0.7 * free.tpot_s
    assert held.requests_per_s > free.requests_per_s
