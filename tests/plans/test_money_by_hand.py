"""Prices, power and break-even by hand; the space of a search; curves of loads."""

from __future__ import annotations

from dataclasses import replace
from datetime import date

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.deployment import deploy
from planner.engines.settings import MemorySettings
from planner.hw import get_accelerator
from planner.models import get_model
from planner.plans.curves import (
    MOST_IN_FLIGHT,
    Between,
    DecodeAlone,
    Requests,
    shared_curve,
    whole_loads,
)
from planner.plans.money import (
    HOURS_PER_MONTH,
    PriceBook,
    Tariff,
    break_even_output_tokens_per_s,
    power_w,
    token_prices,
)
from planner.plans.space import Axes, count_options, most_gpus, splits
from planner.step.parallel import Sharding
from planner.workload.lengths import Lengths
from tests.step.machine import DENSE, MIXTURE, machine

H100 = get_accelerator("h100-sxm5")


def test_tokens_pay_for_the_time_they_take() -> None:
    """3.6 USD/h are 0.001 USD/s; a quarter for 1,000 input tokens/s, the rest for 100 output."""
    result = token_prices(3.6, 0.25, 1_000.0, 100.0)
    assert result.output == pytest.approx(0.001 * 0.75 / 100 * 1e6)
    assert result.input == pytest.approx(0.001 * 0.25 / 1_000 * 1e6)


@given(st.floats(0.1, 1e3), st.floats(0, 1), st.floats(1, 1e6), st.floats(1, 1e6))
def test_both_kinds_of_tokens_pay_for_all(
    usd: float, share: float, inputs: float, outputs: float
) -> None:
    result = token_prices(usd, share, inputs, outputs)
    hourly = (result.output * outputs + result.input * inputs) / 1e6 * 3600
    assert hourly == pytest.approx(usd)


@pytest.mark.parametrize(
    ("prompts", "mfu", "busy", "watts"),
    [
        # A fifth of 1000 W idle; 60% decoding, all of it in prompts.
        (0.0, 0.0, 0.0, 200),
        (0.0, 0.0, 1.0, 600),
        (1.0, 0.0, 1.0, 1000),
        (0.0, 1.0, 1.0, 1000),
        (0.0, 0.5, 1.0, 800),
        (0.5, 0.0, 1.0, 800),
        (0.0, 0.0, 0.5, 400),
        (0.0, 7.0, 1.0, 1000),
    ],
)
def test_power(prompts: float, mfu: float, busy: float, watts: float) -> None:
    assert power_w(machine(tdp_w=1000.0), prompts, mfu, busy) == pytest.approx(watts)
    assert power_w(machine(), prompts, mfu, busy) is None


@pytest.mark.parametrize(
    ("output", "inputs", "each", "tokens_per_s"),
    [
        # 36 USD/h are 0.01 USD/s: 1,000 tokens a second at 10 USD a million.
        (10.0, 0.0, 0.0, 1_000),
        # With four input tokens at 2.5 each output token is worth twice as much.
        (10.0, 2.5, 4.0, 500),
    ],
)
def test_break_even(output: float, inputs: float, each: float, tokens_per_s: float) -> None:
    assert break_even_output_tokens_per_s(36.0, output, inputs, each) == pytest.approx(tokens_per_s)


def test_a_price_of_ones_own_is_taken() -> None:
    book = PriceBook(own_usd_per_gpu_hour=1.5, duty_cycle=0.5)
    assert book.of(H100) == Tariff(1.5, "own", None, None, 1)
    assert book.of(machine()) == Tariff(1.5, "own", None, None, 1)
    assert book.usd_per_month(2.0) == 2.0 * 730 * 0.5
    assert HOURS_PER_MONTH == 365 * 24 / 12
    assert PriceBook().of(machine()) is None


def test_a_price_ages() -> None:
    result = PriceBook(today=date(2026, 12, 1)).of(H100)
    assert result is not None
    assert result.date is not None
    printed = date.fromisoformat(result.date)
    assert result.age_days == (date(2026, 12, 1) - printed).days
    later = PriceBook(today=date(2030, 1, 1))
    assert later.of(H100) is None
    used = replace(later, most_days=10_000).of(H100)
    assert used is not None
    assert used.warning is not None
    assert "days old" in used.warning


@pytest.mark.parametrize(
    ("tariff", "warning"),
    [
        (Tariff(1.0, "own", None, None, 1), None),
        (Tariff(1.0, "on_demand", None, None, 3), "the price on record has no date"),
        (Tariff(1.0, "on_demand", "2026-01-01", 90, 3), None),
        (
            Tariff(1.0, "spot", "2026-01-01", 91, 3),
            "the price on record is 91 days old (2026-01-01)",
        ),
    ],
)
def test_what_is_said_of_an_age(tariff: Tariff, warning: str | None) -> None:
    assert tariff.warning == warning


OPEN = Axes(MemorySettings())


def splits_of(axes: Axes, spec: object = DENSE, **changes: object) -> list[tuple[int, ...]]:
    gpu = machine(domain_size=8, **changes)
    return [(s.tp, s.pp, s.ep, s.attention_dp) for s in splits(spec, gpu, axes)]


def test_splits_are_powers_of_two_with_fewest_gpus_first() -> None:
    """8 GPUs and 4 layers: tp up to 8, pp up to 4, of at most 8 GPUs; dense models no more."""
    result = splits_of(OPEN)
    assert result == [
        (1, 1, 1, 1),
        (1, 2, 1, 1),
        (2, 1, 1, 1),
        (1, 4, 1, 1),
        (2, 2, 1, 1),
        (4, 1, 1, 1),
        (2, 4, 1, 1),
        (4, 2, 1, 1),
        (8, 1, 1, 1),
    ]


def test_mixtures_spread_experts_and_sequences() -> None:
    result = splits_of(OPEN, MIXTURE)
    assert (1, 1, 1, 4) in result
    assert (1, 1, 4, 4) in result
    assert (2, 1, 8, 4) in result
    # Experts are spread over all ranks or none.
    assert {(ep in (1, tp * dp)) for tp, _, ep, dp in result} == {True}
    assert max(tp * pp * dp for tp, pp, _, dp in result) == 8


@pytest.mark.parametrize(
    ("axes", "count"),
    [
        (replace(OPEN, tp=2), 3),
        (replace(OPEN, tp=2, pp=1), 1),
        (replace(OPEN, most_gpus=2), 3),
        (replace(OPEN, pp=1), 4),
        (replace(OPEN, tp=16, pp=1), 1),
    ],
)
def test_what_is_fixed_is_kept(axes: Axes, count: int) -> None:
    assert len(splits_of(axes)) == count


@pytest.mark.parametrize(
    ("changes", "most"),
    [
        ({"domain_size": 8}, 8),
        ({"domain_size": 72}, 64),
        # Cards of a host without a domain; one without a link.
        ({"domain_size": 1}, 8),
        ({"link": None}, 1),
    ],
)
def test_gpus_of_a_replica_at_most(changes: dict[str, object], most: int) -> None:
    assert most_gpus(machine(**changes)) == most


def test_options_are_counted() -> None:
    """4 splits, with the engine's cache and an 8-bit one, of two weight formats and one engine."""
    axes = replace(OPEN, pp=1, weights=(None, "fp8"), engines=("vllm",))
    assert count_options(DENSE, machine(domain_size=8), axes) == 4 * 2 * 2
    fixed = replace(axes, kv=("bf16",), engines=("vllm", "sglang"))
    assert count_options(DENSE, machine(domain_size=8), fixed) == 4 * 2 * 2


@given(st.integers(1, 10**6), st.integers(2, 60))
def test_loads_are_whole_and_rise(most: int, count: int) -> None:
    loads = whole_loads(most, count)
    assert loads[0] == 1
    assert loads[-1] == min(most, MOST_IN_FLIGHT)
    assert len(loads) <= count
    assert (np.diff(loads) > 0).all()
    assert (loads == np.round(loads)).all()


@pytest.mark.parametrize(
    ("batch", "value"),
    # Straight in the logarithm: half way between 1 and 16 is 4.
    [(1.0, 10.0), (16.0, 50.0), (4.0, 30.0), (2.0, 20.0), (100.0, 50.0)],
)
def test_between_batches(batch: float, value: float) -> None:
    inside = Between(np.log([[16.0]]), np.array([[10.0, 50.0]]))
    assert float(inside.at(np.array([[batch]]))[0, 0]) == pytest.approx(value)


def test_between_batches_of_several_replicas_at_once() -> None:
    """Two fields of replicas of up to 16 sequences, of 4, and of 1, which has one batch alone."""
    values = np.array([[[10.0, 50.0], [1.0, 3.0], [7.0, 7.0]]])
    values = np.concatenate([values, values + 100.0])
    inside = Between(np.log([[16.0], [4.0], [1.0]]), values)
    batches = np.array([[1.0, 4.0], [2.0, 8.0], [1.0, 1.0]])
    expected = np.array([[10.0, 30.0], [2.0, 3.0], [7.0, 7.0]])
    assert inside.at(batches) == pytest.approx(np.stack([expected, expected + 100.0]))


LLAMA = get_model("meta-llama/Llama-3.1-8B-Instruct")
REQUESTS = Requests(Lengths.fixed(1000), Lengths.fixed(200))


def test_a_curve_of_loads() -> None:
    curve = shared_curve(deploy(LLAMA, H100, Sharding()), REQUESTS)
    assert curve is not None
    assert curve.room == curve.clients[-1]
    assert (np.diff(curve.requests_per_s) > -1e-3 * curve.requests_per_s[:-1]).all()
    assert (np.diff(curve.tpot_s) > -1e-3 * curve.tpot_s[:-1]).all()
    # Little (1961): requests in flight are their rate times their time.
    in_flight = curve.requests_per_s * curve.e2e_s()
    assert in_flight == pytest.approx(curve.clients, rel=0.02)
    assert curve.output_steps == 199


def test_a_decode_worker_waits_for_its_caches() -> None:
    alone = DecodeAlone.of(deploy(LLAMA, H100, Sharding()), REQUESTS)
    assert alone is not None
    late = alone.fed_by(0.5)
    assert late.ttft_s == pytest.approx(0.5 + alone.curve.tpot_s)
    assert late.clients == pytest.approx(alone.curve.running + 0.5 * late.requests_per_s)
    assert late.requests_per_s == pytest.approx(alone.curve.running / (200 * late.tpot_s))


@settings(max_examples=20, deadline=None)
@given(st.floats(1.0, 3.0), st.floats(1.0, 3.0))
def test_a_whole_request_is_a_start_and_its_steps(start: float, step: float) -> None:
    curve = shared_curve(deploy(LLAMA, H100, Sharding()), REQUESTS)
    assert curve is not None
    expected = start * curve.ttft_s + step * 199 * curve.tpot_s
    assert curve.e2e_s(start, step) == pytest.approx(expected)


def test_nothing_fits_no_curve() -> None:
    small = machine(memory_bytes=1e6)
    assert shared_curve(deploy(DENSE, small, Sharding()), REQUESTS) is None
    assert DecodeAlone.of(deploy(DENSE, small, Sharding()), REQUESTS) is None
