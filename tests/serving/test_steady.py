"""The steady state of a closed loop: conservation of work, limits and monotonicity."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner import Scenario, plan
from planner.calibration import Speculation, Subject, current
from planner.deployment import Options, deploy
from planner.hw import get_accelerator
from planner.models import get_model
from planner.roofline import Array
from planner.serving.prompts import PromptLoad, Prompts
from planner.serving.steady import Habits, Queueing, room_for, serve, steady_state
from planner.step.parallel import Sharding

FREE = Queueing(first_s=0.0, burst=0.0, wait=0.0)
LLAMA = "meta-llama/Llama-3.1-70B-Instruct"


def prompts(seconds: float, spread: float = 0.0) -> Callable[[Array], Prompts]:
    """Prompts that take as long whatever decodes beside them."""
    return lambda _: Prompts(seconds, seconds, seconds, spread)


def deployment(engine: str | None = "vllm"):
    return deploy(
        get_model(LLAMA),
        get_accelerator("h200-sxm"),
        Sharding(tp=4),
        Options(weights="fp8", engine=engine),
    )


def test_one_client_sees_the_step_alone() -> None:
    state = steady_state(lambda b: 0.01 * np.ones_like(b), prompts(0.5), 1, 100, 64, FREE)
    assert state.tpot_s == pytest.approx(0.01)
    assert state.ttft_s == pytest.approx(0.5)
    assert state.running == pytest.approx(0.99 / (0.5 + 0.99))


def test_interleaved_prompts_lengthen_tpot() -> None:
    # FINDINGS, first: 32 clients at 8192/1024, 27 ms of decode and 0.97 s a prompt: about 58 ms.
    state = steady_state(lambda b: 0.027 * np.ones_like(b), prompts(0.97), 32, 1024, 64, FREE)
    assert state.tpot_s == pytest.approx(0.0556, rel=0.02)


def test_tpot_stops_growing_where_the_pool_is_full_and_ttft_does_not() -> None:
    def grow(batch):
        return 0.01 + 0.0005 * batch

    states = [steady_state(grow, prompts(0.1), c, 512, 32, FREE) for c in (32, 64, 128)]
    assert states[1].tpot_s == pytest.approx(states[0].tpot_s, rel=0.02)
    assert states[2].tpot_s == pytest.approx(states[0].tpot_s, rel=0.02)
    assert states[0].ttft_s < states[1].ttft_s < states[2].ttft_s
    assert [float(s.queued) for s in states] == [0, 32, 96]


@settings(max_examples=60, deadline=None)
@given(
    clients=st.integers(1, 2000),
    osl=st.integers(2, 5000),
    prompt=st.floats(1e-4, 2.0),
    burst=st.floats(0, 0.6),
)
def test_no_load_exceeds_the_engine(clients: int, osl: int, prompt: float, burst: float) -> None:
    """Prompts take less than all of the time, and every client completes a request a cycle."""
    queueing = Queueing(first_s=0.0, burst=burst, wait=0.0)
    state = steady_state(
        lambda b: 0.01 * np.ones_like(b), prompts(prompt), clients, osl, 1e9, queueing
    )
    share = float(state.requests_per_s) * prompt
    assert 0 < share <= 1 + 1e-9
    assert share == pytest.approx(float(state.prompt_share))
    cycle = float(state.ttft_s + (osl - 1) * state.tpot_s)
    assert cycle * state.requests_per_s == pytest.approx(clients, rel=1e-3)  # Little 1961
    # `burst` of the others' prompts stand before a new request; the rest holds up the steps.
    held = (1 - burst) * (clients - 1) / clients * float(state.running) / (osl - 1) * prompt
    assert float(state.tpot_s) >= 0.01 + held * (1 - 1e-3)
    assert 0 <= state.running <= clients


@settings(max_examples=40, deadline=None)
@given(osl=st.integers(1, 3000), prompt=st.floats(1e-4, 2.0), burst=st.floats(0, 0.2))
def test_more_clients_never_do_less(osl: int, prompt: float, burst: float) -> None:
    queueing = Queueing(first_s=0.01, burst=burst, wait=1.0)
    clients = np.array([1, 2, 3, 4, 6, 8, 16, 64, 512, 4096])
    state = steady_state(lambda b: 0.01 + 1e-5 * b, prompts(prompt), clients, osl, 1e9, queueing)
    assert (np.diff(state.requests_per_s) >= -1e-3 * state.requests_per_s[1:]).all()
    assert (np.diff(state.tpot_s) >= -1e-3 * state.tpot_s[1:]).all()


def test_prompts_alone_are_done_one_after_another() -> None:
    # One output token: 64 clients share an engine that does 1/0.025 prompts a second.
    state = steady_state(lambda b: 0.01 * np.ones_like(b), prompts(0.025), 64, 1, 1e9, FREE)
    assert state.requests_per_s == pytest.approx(40, rel=0.02)
    assert state.ttft_s == pytest.approx(64 / float(state.requests_per_s), rel=0.01)
    assert state.running < 0.5


def test_a_prompt_waits_for_the_rest_of_another() -> None:
    # Two clients, 100 steps each: the other's prompts take a share ρ of the time, and one that
    # arrives meanwhile waits for half of it.
    state = steady_state(lambda b: 0.01 * np.ones_like(b), prompts(0.5), 2, 101, 1e9, FREE)
    begun = float(state.running) / 100
    assert state.tpot_s == pytest.approx(0.01 + 0.5 * begun * 0.5, rel=1e-3)
    share = begun * 0.5 / float(state.tpot_s)
    assert state.ttft_s == pytest.approx(0.5 + 0.5 * share * 0.5 / 2, rel=1e-3)


def test_prompts_that_fill_steps_saturate_them() -> None:
    # Each prompt fills 1.1 steps of 0.01 + 0.2/1.1 s: 32 clients of 29 more tokens keep 26 decoding
    # and the rest waiting, as in 29 steps at 1/1.1 prompts a step; TPOT is a full step.
    state = steady_state(lambda b: 0.01 * np.ones_like(b), prompts(0.2, 1.1), 32, 30, 1e9, FREE)
    assert state.running == pytest.approx(29 / 1.1, rel=0.1)
    assert state.tpot_s == pytest.approx(0.01 + 0.2 / 1.1, rel=0.1)
    assert state.ttft_s < 2.0


def test_habits_make_a_request_wait() -> None:
    # Every tenth step: 4.5 steps on average; until 8 ranks have one of 0.5 a step, half of 16, and
    # at most half of 6.
    assert Habits(poll=10).wait(np.array(0.5), 8) == pytest.approx(4.5)
    assert Habits(rank_wait=60).wait(np.array(0.5), 8) == pytest.approx(8)
    assert Habits(rank_wait=6).wait(np.array(0.5), 8) == pytest.approx(3)
    assert Habits(rank_wait=60).wait(np.array(0.5), 1) == 0


@pytest.mark.parametrize("running", [1.0, 64.0, 512.0])
def test_a_ride_costs_less_than_a_step_of_its_own(running: float) -> None:
    one = deployment()
    load = PromptLoad(one, np.array(16.0), 0.0, np.array(16.0))
    alone = float(one.prompt_time_s(16.0))
    assert 0 < float(load.time_s(1.0, running)) < alone
    # A long prompt is bound by its arithmetic, which a ride does not spare.
    long = PromptLoad(one, np.array(8192.0), 0.0, np.array(8192.0))
    assert float(long.time_s(1.0, running)) > 0.8 * float(one.prompt_time_s(8192.0))


def test_engines_say_whether_they_mix() -> None:
    assert deployment("vllm").engine.mixes_prompts
    assert deployment("trtllm").engine.mixes_prompts
    assert not deployment("sglang").engine.mixes_prompts  # enable_mixed_chunk is off by default


def test_clients_in_step_wait_for_each_other_and_no_more() -> None:
    # ahead·(1 − 1/B) + (burst + together)·(B − 1), and never more than the B − 1 others.
    queueing = Queueing(first_s=0.0, burst=0.05, wait=0.0, ahead=2.0, together=0.45)
    running = np.array([1.0, 5.0, 101.0])
    assert queueing.before(running) == pytest.approx([0.0, 2.0 * 0.8 + 0.5 * 4, 200 / 101 + 50])
    greedy = Queueing(first_s=0.0, burst=0.5, wait=0.0, ahead=9.0, together=0.9)
    assert greedy.before(running) == pytest.approx(running - 1.0)


def test_own_factor_moves_the_start_alone() -> None:
    plain, slow = (
        steady_state(
            lambda b: 0.01 * np.ones_like(b),
            prompts(0.2),
            1,
            100,
            64,
            Queueing(first_s=0.1, burst=0.0, wait=2.0, scale=scale),
        )
        for scale in (1.0, 3.0)
    )
    assert plain.ttft_s == pytest.approx(0.1 + 0.2 + 2 * 0.01)
    assert slow.ttft_s == pytest.approx(3 * 0.32)
    assert slow.tpot_s == plain.tpot_s


def test_arrays_agree_with_scalars() -> None:
    one = deployment()
    clients, isl = np.array([4.0, 64.0]), np.array([1024.0, 8192.0])
    both = serve(one, clients, isl, 1024)
    for i in range(2):
        alone = serve(one, float(clients[i]), float(isl[i]), 1024)
        assert both.tpot_s[i] == pytest.approx(float(alone.tpot_s), rel=2e-3)
        assert both.ttft_s[i] == pytest.approx(float(alone.ttft_s), rel=2e-3)


def test_cached_prefixes_shorten_ttft_and_tpot() -> None:
    cold, warm = (serve(deployment(), 64, 8192, 1024, hit) for hit in (0.0, 0.8))
    assert warm.ttft_s < cold.ttft_s
    assert warm.tpot_s < cold.tpot_s


def test_speculation_pays_at_small_batch() -> None:
    one = deployment()
    drafting = Speculation(drafts=1, accepted=1.8)
    plain, fast = (replace(one, speculation=s).time_s(1.0, 1024.0) for s in (None, drafting))
    assert 1.5 < float(plain / fast) <= 1.8
    useless = Speculation(drafts=1, accepted=1.0)
    assert replace(one, speculation=useless).time_s(1.0, 1024.0) > plain


def test_plan_answers_the_serving_question() -> None:
    question = {"model": LLAMA, "gpu": "h200-sxm", "tp": 4, "weights": "fp8", "engine": "vllm"}
    answer = plan(Scenario(**question, concurrency=32, isl=7373, osl=922)).serving
    assert answer is not None
    # Measured on this very setup: 28.6 ms and 1.12 s (public nightly benchmark, 2025-10-29, nominal
    # 8192/1024, of which it draws 0.9 on average).
    assert answer.tpot_s.p50 == pytest.approx(0.0286, rel=0.2)
    assert answer.ttft_s.p50 == pytest.approx(1.117, rel=0.35)
    assert answer.tpot_s.p10 < answer.tpot_s.p50 < answer.tpot_s.p90
    rate = 32 / (answer.ttft_s.p50 + 921 * answer.tpot_s.p50)
    assert answer.requests_per_s == pytest.approx(rate)
    assert answer.output_tokens_per_s == pytest.approx(rate * 922)
    assert plan(Scenario(**question)).serving is None


def test_replicas_multiply_rates_alone() -> None:
    question = {
        "model": LLAMA,
        "gpu": "h200-sxm",
        "tp": 4,
        "concurrency": 16,
        "isl": 1024,
        "osl": 256,
    }
    one, two = (plan(Scenario(**question, replicas=n)).serving for n in (1, 2))
    assert two.output_tokens_per_s == pytest.approx(2 * one.output_tokens_per_s)
    assert two.tpot_s == one.tpot_s


def test_an_engine_that_never_evicts_holds_fewer() -> None:
    keeping = deployment("trtllm")
    evicting = replace(keeping, engine=replace(keeping.engine, output_reserved=0.5))
    isl, osl = np.array(1024.0), np.array(8192.0)
    ratio = room_for(evicting, isl, osl) / room_for(keeping, isl, osl)
    assert ratio == pytest.approx((1024 + 8192) / (1024 + 4096), rel=0.02)


def test_the_shipped_speculation_is_a_gain() -> None:
    shipped = current().speculation
    assert 1 < shipped.accepted <= 1 + shipped.drafts


def in_step(engine: str, arrivals: str) -> Queueing:
    one = deployment(engine)
    return Queueing.of(replace(one, subject=Subject({**one.subject.tags, "arrivals": arrivals})))


def test_equal_lengths_keep_clients_in_step_as_the_engine_lets_them() -> None:
    """All prompts first: half of the others stand before each. Mixed: about one. Else: none."""
    first, mixed = in_step("sglang", "bunched"), in_step("vllm", "bunched")
    assert first.ahead == mixed.together == 0
    assert 0.3 < first.together < 0.7
    assert 0.5 < mixed.ahead < 2.5
    for engine in ("sglang", "vllm", "trtllm"):
        apart = in_step(engine, "")
        assert apart.ahead == apart.together == 0  # a question of a user says nothing of it


def ranks(isl: float = 8192.0) -> PromptLoad:
    one = deploy(
        get_model("deepseek-ai/DeepSeek-R1"),
        get_accelerator("h200-sxm"),
        Sharding(attention_dp=8, ep=8),
        Options(engine="trtllm"),
    )
    return PromptLoad(one, np.array(isl), 0.0, np.array(isl))


def test_prompts_that_are_held_run_side_by_side() -> None:
    """0.05 prompts begin a step: alone each stops all ranks; sixty steps gather three of eight."""
    load = ranks()
    assert load.together(50.0, 1000.0) == 1
    assert load.together(50.0, 1000.0, rank_wait=60.0) == pytest.approx(3.0)
    assert load.together(500.0, 1000.0, rank_wait=60.0) == 8
    alone, held = (load.at(np.array(50.0), np.array(1000.0), 1.0, wait) for wait in (0.0, 60.0))
    # Eight ranks with a prompt each take about as long as one with the others idle.
    full = load.at(np.array(500.0), np.array(1000.0), 1.0, 60.0)
    assert float(held.held_s) < 0.6 * float(alone.held_s)
    assert float(full.held_s) < 0.3 * float(alone.held_s)
    assert float(full.own_s) < 2.5 * float(alone.own_s)


def test_one_rank_has_nothing_to_wait_for() -> None:
    load = PromptLoad(deployment(), np.array(1024.0), 0.0, np.array(1024.0))
    running = np.array([1.0, 16.0, 512.0])
    plain, held = (load.together(running, 100.0, 1.0, wait) for wait in (0.0, 60.0))
    assert plain.tolist() == held.tolist() == [1.0, 1.0, 5.12]
