"""What an engine's metrics say, worked by hand: lengths, hits, rates, Little's law, drift."""

from __future__ import annotations

import json
from typing import Any

import pytest

from planner.handover.accesslog import access_log
from planner.handover.observed import Observed, ObservedTime, engine_of, observed
from planner.handover.observing import as_results, observation, under_observed
from planner.handover.prometheus import metrics_of
from planner.handover.refusal import Unreadable
from planner.handover.verdicts import checked_limits
from planner.plans.planning import plan
from planner.scenario import Scenario

SCENARIO = Scenario(
    model="Qwen/Qwen2.5-7B-Instruct",
    gpu="h100-sxm5",
    engine="vllm",
    concurrency=16,
    isl=1000,
    osl=200,
)


def seen(text: str, seconds: float | None = None, log: list[str] | None = None) -> Observed:
    return observed(
        metrics_of(text, "metrics"), seconds, access_log(log, "log") if log is not None else None
    )


def histogram(name: str, total: float, count: float) -> str:
    return f'{name}_bucket{{le="+Inf"}} {count}\n{name}_sum {total}\n{name}_count {count}\n'


def test_lengths_are_means_of_requests() -> None:
    """40,000 tokens of 100 prompts, and 500 tokens of the 100 requests that ended."""
    result = seen(
        histogram("vllm:request_prompt_tokens", 40_000, 100)
        + 'vllm:request_success_total{finished_reason="stop"} 60\n'
        + 'vllm:request_success_total{finished_reason="length"} 40\n'
        + "vllm:generation_tokens_total 500\n"
    )
    assert (result.requests, result.isl, result.osl) == (100, 400, 5)
    assert (result.requests_per_s, result.seconds, result.concurrency) == (None, None, None)


def test_hits_of_the_prefix_cache() -> None:
    """300 of 1,200 blocks; never more than all."""
    text = "vllm:prefix_cache_hits_total {hits}\nvllm:prefix_cache_queries_total {queries}\n"
    assert seen(text.format(hits=300, queries=1200)).prefix_hit == 0.25
    assert seen(text.format(hits=0, queries=1200)).prefix_hit == 0.0
    assert seen(text.format(hits=1300, queries=1200)).prefix_hit == 1.0
    assert seen(text.format(hits=0, queries=0)).prefix_hit is None


def test_the_cache_is_blocks_times_their_size() -> None:
    config = (
        'vllm:cache_config_info{block_size="16",num_gpu_blocks="2500",'
        'gpu_memory_utilization="0.9"} 1\n'
    )
    result = seen(config)
    assert (result.kv_pool_tokens, result.memory_fraction) == (40_000, 0.9)
    assert seen(config.replace('"2500"', '"None"')).kv_pool_tokens is None


def test_requests_in_the_engine_by_littles_law() -> None:
    """1,000 requests in 100 s, each 0.5 s and 99 tokens of 20 ms: 10 · (0.5 + 1.98) = 24.8."""
    text = (
        histogram("vllm:request_prompt_tokens", 1e6, 1000)
        + histogram("vllm:request_generation_tokens", 1e5, 1000)
        + histogram("vllm:time_to_first_token_seconds", 500, 1000)
        + histogram("vllm:request_time_per_output_token_seconds", 20, 1000)
        + "vllm:request_success_total 1000\n"
        + "vllm:num_requests_running 3\nvllm:num_requests_waiting 4\n"
    )
    result = seen(text, 100.0)
    assert result.requests_per_s == 10
    assert result.concurrency == pytest.approx(24.8, rel=1e-12)
    # Without a time it is those in the engine now, waiting ones among them.
    assert seen(text).concurrency == 7


def test_llama_cpp_counts_seconds_and_tokens() -> None:
    """2,000 tokens in 30 s are 15 ms each."""
    result = seen(
        "llamacpp:tokens_predicted_seconds_total 30\nllamacpp:tokens_predicted_total 2000\n"
        "llamacpp:requests_processing 2\n"
    )
    assert result.tpot_s == ObservedTime(mean=0.015)
    assert (result.engine, result.concurrency, result.requests) == ("llama.cpp", 2, None)


def test_a_log_completes_the_metrics() -> None:
    """Only where they are silent; its times give the seconds and the spread of lengths."""
    log = [
        json.dumps(
            {
                "path": "/v1/completions",
                "status": 200,
                "ts": at,
                "prompt_tokens": tokens,
                "completion_tokens": 50,
                "ttft_ms": 80,
            }
        )
        for at, tokens in ((0.0, 100), (10.0, 300), (20.0, 200))
    ]
    result = seen("vllm:num_requests_running 1\n", log=log)
    assert (result.isl, result.osl, result.requests, result.seconds) == (200, 50, 3, 20)
    assert result.isl_cv == pytest.approx((20_000 / 3) ** 0.5 / 200)  # deviations 100, 100, 0
    assert result.requests_per_s == 0.15
    assert result.ttft_s == ObservedTime(mean=0.08)
    assert len(result.notes) == 4
    metered = seen(histogram("vllm:request_prompt_tokens", 7000, 10), 5.0, log)
    assert (metered.isl, metered.seconds) == (700, 5.0)


@pytest.mark.parametrize("odd", ["Infinity", "NaN", "1" + "0" * 400, "true", "[1]", "-5", '"x"'])
def test_figures_of_a_log_that_are_none_do_not_count(odd: str) -> None:
    """Whatever an access log holds: a line is a request, and its odd figures are left out."""
    good = '{"status": 200, "ts": 5.0, "prompt_tokens": 70}'
    log = access_log([good, f'{{"status": 200, "ts": {odd}, "prompt_tokens": {odd}}}'], "log")
    assert (log.requests, log.mean("isl"), log.spread("isl")) == (2, 70, None)
    assert len(log.times_s) == (2 if odd == "-5" else 1)


@pytest.mark.parametrize("text", ["process_cpu_seconds_total 3\n", "up 1\n"])
def test_metrics_of_no_engine(text: str) -> None:
    with pytest.raises(Unreadable, match=r"^metrics: of no engine known here; accepted: vllm"):
        engine_of(metrics_of(text, "x"))


def look(**fields: Any) -> Observed:
    return Observed(engine="vllm", **fields)


@pytest.mark.parametrize(
    ("fields", "changes"),
    [
        ({}, {}),
        ({"isl": 1234.4}, {"isl": 1234}),
        ({"osl": 0.2}, {"osl": 1}),
        ({"isl": 900.0, "isl_cv": 0.5}, {"isl": {"lognormal": {"mean": 900.0, "cv": 0.5}}}),
        ({"isl": 900.0, "isl_cv": 0.0}, {"isl": 900}),
        ({"isl": 0.5, "isl_cv": 40.0}, {"isl": {"lognormal": {"mean": 1.0, "cv": 10.0}}}),
        ({"concurrency": 24.6}, {"concurrency": 25}),
        ({"concurrency": 0.1}, {"concurrency": 1}),
        ({"prefix_hit": 0.25}, {"prefix_hit": 0.25}),
    ],
)
def test_the_load_that_was_seen_takes_the_place_of_the_plan_s(
    fields: dict[str, Any], changes: dict[str, Any]
) -> None:
    before = SCENARIO.model_dump(mode="json")
    now = under_observed(SCENARIO, look(**fields)).model_dump(mode="json")
    differing = {name: value for name, value in now.items() if value != before[name]}
    assert differing == changes


def test_clients_that_were_seen_are_those_of_all_replicas() -> None:
    several = SCENARIO.model_copy(update={"replicas": 4})
    assert under_observed(several, look(concurrency=100.0)).concurrency == 25


def test_half_a_load_is_none() -> None:
    """Lengths without clients ask no serving question."""
    decode = Scenario(model=SCENARIO.model, gpu="h100-sxm5", batch=4, context=1000)
    now = under_observed(decode, look(isl=500.0, osl=100.0))
    assert (now.isl, now.osl, now.concurrency) == (None, None, None)
    whole = under_observed(decode, look(isl=500.0, osl=100.0, concurrency=8.0))
    assert (whole.isl, whole.osl, whole.concurrency) == (500, 100, 8)


def drifts(seen_: Observed) -> dict[str, str]:
    return {row.quantity: row.drift for row in observation(SCENARIO, seen_).rows}


@pytest.mark.parametrize(
    ("fields", "quantity", "drift"),
    [
        ({"isl": 1099.0}, "isl", "none"),
        ({"isl": 1101.0}, "isl", "workload"),
        ({"osl": 179.0}, "osl", "workload"),
        ({"osl": 181.0}, "osl", "none"),
        ({"concurrency": 17.5}, "concurrency", "none"),
        ({"concurrency": 17.7}, "concurrency", "workload"),
        ({"prefix_hit": 0.09}, "prefix_hit", "none"),
        ({"prefix_hit": 0.11}, "prefix_hit", "workload"),
        ({"memory_fraction": 0.5}, "memory_fraction", "engine"),
    ],
)
def test_a_load_drifts_by_more_than_a_tenth(
    fields: dict[str, float], quantity: str, drift: str
) -> None:
    assert drifts(look(**fields))[quantity] == drift


def test_the_cache_of_an_engine_drifts_by_more_than_a_twentieth() -> None:
    tokens = plan(SCENARIO).memory.kv_pool_tokens
    assert tokens is not None
    for share, drift in ((0.94, "engine"), (0.96, "none"), (1.04, "none"), (1.06, "engine")):
        assert drifts(look(kv_pool_tokens=share * tokens))["kv_pool_tokens"] == drift


def test_a_prediction_drifts_outside_its_interval() -> None:
    state = plan(SCENARIO).serving
    assert state is not None
    low, high = state.tpot_s.p10, state.tpot_s.p90
    for value, drift in (
        (0.99 * low, "prediction"),
        (1.01 * low, "none"),
        (0.99 * high, "none"),
        (1.01 * high, "prediction"),
    ):
        assert drifts(look(tpot_s=ObservedTime(mean=value)))["tpot_s"] == drift


def test_results_of_what_was_seen() -> None:
    """Of a replica: 64 clients of 4; 100 requests of 400 and 50 tokens."""
    whole: dict[str, Any] = {
        "isl": 400.0,
        "osl": 50.0,
        "concurrency": 64.0,
        "requests": 100.0,
        "ttft_s": ObservedTime(mean=0.2),
        "tpot_s": ObservedTime(mean=0.01),
    }
    several = SCENARIO.model_copy(update={"replicas": 4, "tp": 2})
    text = as_results(look(**whole), several)
    assert text is not None
    result = json.loads(text)
    assert result["max_concurrency"] == 16
    assert (result["total_input_tokens"], result["total_output_tokens"]) == (40_000, 5_000)
    assert (result["mean_ttft_ms"], result["mean_tpot_ms"]) == (200.0, 10.0)
    assert result["tensor_parallel_size"] == 2
    for name in whole:
        assert as_results(look(**{**whole, name: None}), several) is None


def test_limits_of_a_decode_question_are_of_its_last_point() -> None:
    decode = Scenario(
        model=SCENARIO.model, gpu="h100-sxm5", batch=[1, 64], context=2000, tpot_ms=8, ttft_ms=1
    )
    answer = plan(decode)
    (limit,) = checked_limits(decode, answer)  # no first token without a prompt
    assert (limit.quantity, limit.limit) == ("tpot_s", 0.008)
    assert limit.predicted == answer.points[-1].tpot_s
    unlimited = decode.model_copy(update={"tpot_ms": None})
    assert checked_limits(unlimited, answer) == []
