"""The schedule against one that takes every step by itself, and against the closed form."""

from __future__ import annotations

import heapq
import math
from collections import deque
from dataclasses import replace

import numpy as np
import pytest

from planner.deployment import Deployment, Options, deploy
from planner.hw import get_accelerator
from planner.models import get_model
from planner.serving.simulation.policy import Policy
from planner.serving.simulation.run import Seen, Simulator
from planner.serving.simulation.schedule import steps_within
from planner.serving.simulation.tables import StepTables
from planner.serving.steady import serve
from planner.step.parallel import Sharding
from planner.workload.arrivals import RequestList, arrivals, draw
from planner.workload.distributions import Lognormal, moments

LLAMA = "RedHatAI/Meta-Llama-3.1-70B-Instruct-FP8"
CASES = (
    (LLAMA, "h200-sxm", Sharding(4), "vllm"),
    (LLAMA, "h200-sxm", Sharding(2, 2), "sglang"),
    ("openai/gpt-oss-120b", "h100-sxm5", Sharding(1, 1, 1, 4), "vllm"),
    ("openai/gpt-oss-120b", "h100-sxm5", Sharding(2), "trtllm"),
)


def deployed(case: tuple[str, str, Sharding, str]) -> Deployment:
    model, gpu, split, engine = case
    return deploy(get_model(model), get_accelerator(gpu), split, Options(engine=engine))


def spread(mean: float, cv: float = 0.3) -> Lognormal:
    return Lognormal.model_validate({"lognormal": {"mean": mean, "cv": cv}})


def requests(count: int, isl: float, osl: float, rate: float | None, seed: int = 1) -> RequestList:
    rng = np.random.default_rng(seed)
    times = np.zeros(count) if rate is None else arrivals(count, rate, 1.0, rng)
    return RequestList(times, draw(spread(isl), count, rng), draw(spread(osl), count, rng))


def simulator(deployment: Deployment, isl: float, osl: float) -> Simulator:
    return Simulator.of(deployment, isl, osl, 4 * (isl + osl))


def brute(  # noqa: C901 - a reference is read more easily as one loop
    tables: StepTables, policy: Policy, load: RequestList, clients: int | None
) -> tuple[np.ndarray, np.ndarray]:
    """TTFT and TPOT of requests, every sequence advanced by itself in every step."""
    count = len(load)
    isl, osl = load.isl.astype(int), load.osl.astype(int)
    square = tables.attention_of(load.isl) / load.isl**2
    now, coming, started = 0.0, [], 0
    if clients is None:
        coming = [(t, i) for i, t in enumerate(load.arrivals_s.tolist())]
    else:
        coming = [(0.0, i) for i in range(min(clients, count))]
        started = len(coming)
    heapq.heapify(coming)
    queue: deque[int] = deque()
    running: dict[int, float] = {}  # tokens that a request still has to yield
    context: dict[int, float] = {}
    prompts: list[list[int]] = []
    ttft, tpot = np.zeros(count), np.zeros(count)
    arrived, first = np.zeros(count), np.zeros(count)

    def needs(i: int) -> float:
        return float(isl[i] + policy.output_reserved * osl[i])

    used = 0.0
    while coming or queue or running or prompts:
        while coming and coming[0][0] <= now:
            at, i = heapq.heappop(coming)
            arrived[i] = at
            queue.append(i)
        while queue:
            held = len(running) + len(prompts)
            full = held >= policy.most_sequences or used + needs(queue[0]) > policy.cache_tokens
            if held and full:
                break
            i = queue.popleft()
            used += needs(i)
            prompts.append([i, 0])
        if not prompts and not running:
            now = coming[0][0]
            continue
        decodes = bool(running) and (policy.mixes or not prompts)
        taken, done, later = 0.0, [], 0.0
        if decodes:
            taken = tables.step_s(len(running), sum(context.values()) / len(running))
        if prompts:
            beside = math.ceil(len(running) * policy.queries / policy.ranks) if policy.mixes else 0
            room = [max(policy.step_tokens - beside, 1)] * policy.ranks
            size, attention = [0] * policy.ranks, [0.0] * policy.ranks
            for prompt in prompts:
                rank = size.index(min(size))
                chunk = min(isl[prompt[0]] - prompt[1], room[rank] - size[rank])
                if chunk <= 0:
                    break
                size[rank] += chunk
                end = prompt[1] + chunk
                attention[rank] += square[prompt[0]] * (end**2 - prompt[1] ** 2)
                prompt[1] = end
                if end == isl[prompt[0]]:
                    done.append(prompt[0])
            linear = tables.linear_s
            added = linear[max(size) + beside] - linear[beside] + max(attention)
            added += tables.overhead_s
            taken += added / policy.stages
            later = added - added / policy.stages
        now += taken
        left = []
        if decodes:
            for i in running:
                running[i] -= policy.tokens_per_step
                context[i] += policy.tokens_per_step
            left = [i for i, more in running.items() if more <= 1e-9]
        for i in left:
            del running[i], context[i]
            tpot[i] = (now - first[i]) / max(osl[i] - 1, 1)
            used -= needs(i)
        for i in done:
            ttft[i] = now - arrived[i] + later
            if policy.ahead_steps and running:
                step = tables.step_s(len(running), sum(context.values()) / len(running))
                ttft[i] += policy.ahead_steps * step
            ttft[i] = (ttft[i] + policy.first_s) * policy.scale
            first[i] = now
            if osl[i] > 1:
                running[i], context[i] = float(osl[i] - 1), float(isl[i] + 1)
            else:
                used -= needs(i)
                left.append(i)
        prompts = [p for p in prompts if p[1] < isl[p[0]]]
        if clients is not None:
            for _ in left:
                if started < count:
                    heapq.heappush(coming, (now, started))
                    started += 1
    return ttft, tpot


@pytest.mark.parametrize("case", CASES, ids=lambda c: f"{c[3]}-{c[2].gpus}")
@pytest.mark.parametrize("load", [12, 0.6], ids=["closed", "open"])
def test_jumping_over_decode_agrees_with_taking_every_step(
    case: tuple[str, str, Sharding, str], load: float
) -> None:
    """Mean TTFT and TPOT within 0.1%: y(C) is taken as linear over a jump."""
    one = simulator(deployed(case), 1500, 120)
    asked = requests(120, 1500, 120, None if load > 1 else 4.0)
    clients = int(load) if load > 1 else None
    outcome = one.closed(asked, clients) if clients else one.open(asked)
    ttft, tpot = brute(one.tables, one.policy, asked, clients)
    assert outcome.tpot_s.mean() == pytest.approx(tpot.mean(), rel=1e-3)
    assert outcome.first_token_s.mean() == pytest.approx(ttft.mean(), rel=1e-3)


@pytest.mark.parametrize("case", CASES, ids=lambda c: f"{c[3]}-{c[2].gpus}")
@pytest.mark.parametrize(("isl", "osl"), [(500, 500), (2000, 300)])
@pytest.mark.parametrize("clients", [4, 16, 48])
def test_mean_tpot_is_that_of_the_closed_form(
    case: tuple[str, str, Sharding, str], isl: int, osl: int, clients: int
) -> None:
    """Within 10% where prompts and memory leave room: the closed form knows means alone."""
    deployment = deployed(case)
    lengths = moments(spread(isl)), moments(spread(osl))
    steady = serve(deployment, float(clients), *lengths)
    if float(steady.prompt_share) > 0.8 or float(steady.queued) > 0:
        pytest.skip("beyond 80% of what the replica can do")
    one = simulator(deployment, isl, osl)
    if deployment.sharding.attention_dp > 1:  # the closed form has a prompt on every rank at once
        one = replace(one, policy=replace(one.policy, hold_steps=osl))
    outcome = one.closed(requests(20 * clients, isl, osl, None), clients)
    seen = Seen.of(outcome, 0.2)
    assert seen.at("tpot", None) == pytest.approx(float(steady.tpot_s), rel=0.10)


def test_steps_within_a_time_end_at_or_after_it() -> None:
    """Steps of 1, 1.5, 2, 2.5 s: three take 4.5 s, four 7 s."""
    assert steps_within(4.5, 1.0, 0.5) == 3
    assert steps_within(4.6, 1.0, 0.5) == 4
    assert steps_within(2.0, 1.0, 0.0) == 2
    assert steps_within(1e-9, 1.0, 0.0) == 1


def test_percentiles_are_ordered_and_grow_with_the_load() -> None:
    one = simulator(deployed(CASES[0]), 1500, 120)
    p99 = []
    for rate in (0.5, 2.0, 4.0):
        seen = Seen.of(one.open(requests(600, 1500, 120, rate)))
        assert seen.at("ttft", 50) <= seen.at("ttft", 90) <= seen.at("ttft", 99)
        p99.append(seen.at("ttft", 99))
    assert p99 == sorted(p99)


def test_no_request_is_lost_and_none_ends_before_it_came() -> None:
    one = simulator(deployed(CASES[0]), 1500, 120)
    load = requests(300, 1500, 120, 50.0)  # far more than can be served
    outcome = one.open(load)
    assert (outcome.arrived_s == load.arrivals_s).all()
    assert (outcome.first_token_s > 0).all()
    assert (outcome.e2e_s >= outcome.first_token_s).all()
    tokens_per_s = load.osl.sum() / outcome.ended_s
    most = float(serve(deployed(CASES[0]), 400.0, 1500.0, 120.0).requests_per_s) * 120
    assert tokens_per_s == pytest.approx(most, rel=0.15)


def test_contexts_do_not_drift_where_a_step_yields_several_tokens() -> None:
    """1.9 tokens a step leave part of the last step unused: what a sequence grew by is taken off
    when it ends, so that a long run has the same step times as a short one."""
    deployment = deployed(CASES[0])
    one = simulator(deployment, 1000, 100)
    one = replace(one, policy=replace(one.policy, tokens_per_step=1.9))
    means = []
    for count in (1600, 12000):
        load = RequestList(np.zeros(count), np.full(count, 1000.0), np.full(count, 100.0))
        means.append(Seen.of(one.closed(load, 16)).at("tpot", None))
    assert means[1] == pytest.approx(means[0], rel=0.005)
