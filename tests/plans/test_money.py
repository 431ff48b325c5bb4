"""Prices by kind and age, tokens priced by the time they take, break-even, energy."""

from __future__ import annotations

from datetime import date

import pytest

from planner.hw import get_accelerator, price_per_hour
from planner.plans.money import (
    IDLE_SHARE,
    PriceBook,
    break_even_output_tokens_per_s,
    power_w,
    token_prices,
)

H100 = get_accelerator("h100-sxm5")


def test_the_price_is_the_one_on_record_with_its_age() -> None:
    tariff = PriceBook(today=date(2026, 12, 1)).of(H100)
    price = price_per_hour("h100-sxm5")
    assert tariff is not None
    assert price is not None
    assert tariff.usd_per_gpu_hour == price.usd_per_gpu_hour
    assert tariff.date == price.date
    assert tariff.age_days is not None


def test_an_old_price_is_warned_of_and_then_not_used() -> None:
    fresh = PriceBook(today=date(2026, 12, 1)).of(H100)
    assert fresh is not None
    later = date(2027, 6, 1)
    warned = PriceBook(today=later).of(H100)
    assert warned is not None
    assert "days old" in (warned.warning or "")
    assert PriceBook(today=later, most_days=30).of(H100) is None
    assert PriceBook(today=later, most_days=30, own_usd_per_gpu_hour=2.0).of(H100) is not None


def test_a_kind_or_provider_that_is_not_on_record_has_no_price() -> None:
    assert PriceBook(provider="nobody").of(H100) is None
    assert PriceBook(kind="reserved").of(get_accelerator("t4")) is None


def test_tokens_pay_for_their_time() -> None:
    """$36 an hour is a cent a second; a quarter of it in prompts, 1000 in and 100 out a second:
    0.0025/1000 and 0.0075/100 a token."""
    prices = token_prices(36.0, 0.25, 1000.0, 100.0)
    assert prices.input == pytest.approx(2.5)
    assert prices.output == pytest.approx(75.0)
    assert prices.input * 1000 + prices.output * 100 == pytest.approx(0.01 * 1e6)


def test_break_even_is_where_both_cost_the_same() -> None:
    """$3.6 an hour against $1 a million out and $0.5 in, four in for each out: 3 $/M, so 333/s."""
    rate = break_even_output_tokens_per_s(3.6, 1.0, 0.5, 4.0)
    assert rate == pytest.approx(1e-3 / 3e-6)


def test_power_lies_between_idle_and_tdp() -> None:
    tdp = H100.tdp_w
    assert tdp is not None
    assert power_w(H100, 1.0, 0.0, 1.0) == pytest.approx(tdp)
    assert power_w(H100, 0.0, 0.0, 0.0) == pytest.approx(IDLE_SHARE * tdp)
    assert power_w(H100, 0.2, 0.1, 0.9) < tdp


def test_a_month_has_730_hours_at_the_duty_cycle() -> None:
    assert PriceBook(duty_cycle=0.5).usd_per_month(2.0) == pytest.approx(730.0)
