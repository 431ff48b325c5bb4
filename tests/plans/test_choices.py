"""Which batch to run, which levers help, what fits: on the small model by hand."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner import Scenario, plan
from planner.deployment import Deployment, deploy, deployment_of
from planner.plans.advice import advise
from planner.plans.batches import batch_to_run
from planner.plans.recommend import RecommendationRequest, recommend
from planner.plans.serving import clients_of
from planner.step.parallel import Sharding
from planner.step.timing import Efficiency
from tests.compare.test_figures import CONFIG, gpu
from tests.step.machine import DENSE, machine


def on_the_roof(**changes: Any) -> Deployment:
    deployment = deploy(DENSE, machine(**changes), Sharding())
    return replace(
        deployment, step=deployment.step.reaching(Efficiency.ideal(len(deployment.step.items)))
    )


@pytest.mark.parametrize(
    ("context", "limit_s", "batch", "binds"),
    [
        # 60.3 µs of weights, 2.61 µs a sequence of 100 tokens: 15 within 100 µs.
        (100, 100e-6, 15, "tpot"),
        # Nothing is within 50 µs.
        (100, 50e-6, 0, "tpot"),
        # Without a limit the knee, where a sequence adds half of the first one's rate.
        (100, None, 10, "knee"),
        # At 10 tokens arithmetic takes over at batch 169.
        (10, 1.0, 169, "crossover"),
    ],
)
def test_what_binds_the_batch(context: int, limit_s: float | None, batch: int, binds: str) -> None:
    found, by = batch_to_run(on_the_roof(), context, limit_s)
    assert by == binds
    assert found == pytest.approx(batch, abs=1)


def test_memory_binds_where_it_is_short() -> None:
    """Room for 50 sequences of 1000 tokens: 256,000 bytes each beside the weights."""
    small = on_the_roof(memory_bytes=1.5e7)
    most = small.memory.max_batch(1000)
    assert 0 < most < 60
    assert batch_to_run(small, 1000, 10.0) == (most, "memory")


@given(st.floats(61e-6, 1e-2), st.floats(1.0, 3.0), st.integers(10, 2000))
@settings(max_examples=25, deadline=None)
def test_a_looser_limit_never_shrinks_the_batch(limit: float, factor: float, context: int) -> None:
    deployment = on_the_roof()
    tight, loose = (batch_to_run(deployment, context, x)[0] for x in (limit, limit * factor))
    assert tight <= loose


def scenario(**fields: Any) -> Scenario:
    return Scenario(**{"model": CONFIG, "gpu": gpu(), "batch": [4], "context": [1000], **fields})


def request(**fields: Any) -> RecommendationRequest:
    return RecommendationRequest(**{"model": CONFIG, "context": 1000, **fields})


def test_the_faster_machine_is_recommended_first() -> None:
    result = recommend(request(gpu=[gpu(5e11, "slow"), gpu(2e12, "fast"), gpu(1e12, "middle")]))
    assert [choice.gpu for choice in result.choices] == ["fast", "middle", "slow"]
    rates = [choice.tokens_per_s_per_gpu for choice in result.choices]
    assert rates == sorted(rates, reverse=True)
    for choice in result.choices:
        assert choice.tokens_per_s == pytest.approx(choice.batch / choice.tpot_s.p50)
        assert choice.headroom == pytest.approx(1 - choice.batch / choice.max_batch)
        assert choice.batch <= choice.max_batch


def test_a_machine_too_small_is_refused_with_the_sizes() -> None:
    tiny = {**gpu(1e12, "tiny"), "memory_bytes": 1e7, "link": None}
    result = recommend(request(gpu=[gpu(), tiny]))
    (refusal,) = result.refused
    assert refusal.gpu == "tiny"
    assert refusal.reason.startswith("weights take 0.4 GB per GPU at tp=1")
    assert "memory is 0.0 GB" in refusal.reason


def test_a_limit_that_one_sequence_misses_is_said() -> None:
    result = recommend(request(gpu=[gpu(), gpu(2e12, "two")], tpot_ms=1e-3))
    assert result.choices == []
    assert all("one sequence takes" in refusal.reason for refusal in result.refused)
    assert all("the limit is 0.001 ms" in refusal.reason for refusal in result.refused)


@pytest.mark.parametrize("limit", [0.5, 1.0, 5.0])
def test_choices_meet_the_limit_at_the_percentile(limit: float) -> None:
    for percentile in (50, 90):
        result = recommend(request(gpu=[gpu()], tpot_ms=limit, percentile=percentile))
        for choice in result.choices:
            at = choice.tpot_s.p50 if percentile == 50 else choice.tpot_s.p90
            assert at * 1e3 <= limit * (1 + 1e-6)


def test_levers_are_worth_what_they_gain() -> None:
    """Each lever's gain is the ratio of two answers: the plan's, and that with the change.

    A larger batch stands first where it is the answer, though it costs each user time.
    """
    base = scenario(batch=[1], context=[100])
    before = float(deployment_of(base).time_s(1.0, 100.0))
    levers = {lever.code: lever.gain for lever in advise(base)}
    for code, change in (("weights_fp8", {"weights": "fp8"}), ("tp_double", {"tp": 2})):
        if code in levers:
            after = float(deployment_of(base.model_copy(update=change)).time_s(1.0, 100.0))
            assert levers[code] == pytest.approx(before / after)
    assert "weights_fp8" in levers
    gains = [gain for code, gain in levers.items() if code != "batch_more"]
    assert gains == sorted(gains, reverse=True)
    assert min(gains) > 1


def test_weights_in_eight_bits_help_less_the_longer_the_cache() -> None:
    short, long = (
        {x.code: x.gain for x in advise(scenario(batch=[64], context=[c]))} for c in (100, 8000)
    )
    assert short.get("weights_fp8", 1.0) > long.get("weights_fp8", 1.0)
    assert short.get("kv_fp8", 1.0) < long.get("kv_fp8", 1.0)


def test_one_client_where_none_is_said() -> None:
    base = scenario()
    assert clients_of(base, deployment_of(base)) == 1.0
    served = scenario(concurrency=7, isl=100, osl=10)
    assert clients_of(served, deployment_of(served)) == 7.0


def test_serving_adds_up() -> None:
    """Little (1961): clients = requests/s · (TTFT + (OSL − 1)·TPOT); tokens are OSL a request."""
    served = plan(scenario(concurrency=8, isl=200, osl=50)).serving
    assert served is not None
    cycle_s = served.ttft_s.p50 + 49 * served.tpot_s.p50
    assert served.requests_per_s * cycle_s == pytest.approx(8, rel=0.01)
    assert served.output_tokens_per_s == pytest.approx(50 * served.requests_per_s)
    three = plan(scenario(concurrency=8, isl=200, osl=50, replicas=3)).serving
    assert three is not None
    assert three.requests_per_s == pytest.approx(3 * served.requests_per_s)
    assert three.tpot_s == served.tpot_s
    ends = served.output_tokens_per_s_interval
    assert ends.p10 <= ends.p50 <= ends.p90


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"isl": 100}, "concurrency, osl: needed for the serving question"),
        ({"concurrency": 4}, "isl, osl: needed for the serving question"),
        ({"batch": list(range(1, 4001)), "context": list(range(1, 31))}, "batch: 120000 points"),
        ({"tp": 0}, "greater than or equal to 1"),
        ({"percentile": 100}, "less than or equal to 99"),
        ({"prefix_hit": 1.5}, "less than or equal to 1"),
        ({"speculation": {"drafts": 1, "accepted": 2.5}}, r"more is accepted than 1 \+ drafts"),
        ({"unknown": 1}, "Extra inputs are not permitted"),
    ],
)
def test_impossible_questions(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        scenario(**fields)
