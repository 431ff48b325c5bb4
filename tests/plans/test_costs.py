"""Money and energy of an option, recomputed from its own figures; prices that are not used."""

from __future__ import annotations

from datetime import date
from typing import Any

import pytest
from click.testing import CliRunner

from planner.commands.recommend import command
from planner.hw import get_accelerator
from planner.plans.money import HOURS_PER_MONTH, MEMORY_BOUND_SHARE, PriceBook
from planner.plans.recommend import recommend
from planner.plans.request import RecommendationRequest
from planner.plans.sized import SizedOption

MODEL = "meta-llama/Llama-3.1-8B-Instruct"
LOAD = {
    "model": MODEL,
    "gpu": ["h100-sxm5"],
    "engine": "vllm",
    "kv": "bf16",
    "tp": 1,
    "pp": 1,
    "isl": 2000,
    "osl": 400,
    "requests_per_s": 12.0,
    "tpot_ms": 25,
    "disaggregated": False,
    "confirm": False,
}


def options(**fields: Any) -> list[SizedOption]:
    sized = recommend(RecommendationRequest(**{**LOAD, **fields})).sized
    assert sized is not None
    assert sized.options
    return sized.options


def test_money_of_an_option() -> None:
    """At $2.5 an hour and half of the month: hours are 365·24/12."""
    (one, *_) = options(usd_per_gpu_hour=2.5, duty_cycle=0.5)
    money = one.money
    assert money is not None
    assert money.price_kind == "own"
    assert money.usd_per_month == pytest.approx(2.5 * one.gpus * HOURS_PER_MONTH * 0.5)
    # Output and input together pay for the hour, whatever the share of each.
    inputs, outputs = one.requests_per_s * 2000, one.output_tokens_per_s
    assert outputs == pytest.approx(one.requests_per_s * 400)
    each = money.usd_per_million_output_tokens * outputs
    each += money.usd_per_million_input_tokens * inputs
    assert each / 1e6 * 3600 == pytest.approx(2.5 * one.gpus)
    assert money.usd_per_million_tokens == pytest.approx(2.5 * one.gpus / 3600 / outputs * 1e6)
    assert money.break_even_output_tokens_per_s is None


def test_break_even_against_an_api() -> None:
    """Five input tokens come with each of output: $1 + 5·$0.2 a million."""
    (one, *_) = options(
        usd_per_gpu_hour=3.6, api_usd_per_million_output=1.0, api_usd_per_million_input=0.2
    )
    assert one.money is not None
    even = one.money.break_even_output_tokens_per_s
    assert even == pytest.approx(one.gpus * 1e-3 / 2e-6)


def test_a_duty_cycle_lowers_what_breaks_even() -> None:
    api = {"usd_per_gpu_hour": 3.6, "api_usd_per_million_output": 1.0}
    (whole, *_), (half, *_) = options(**api), options(**api, duty_cycle=0.5)
    assert whole.money is not None
    assert half.money is not None
    rates = [m.break_even_output_tokens_per_s for m in (half.money, whole.money)]
    assert rates[0] == pytest.approx((rates[1] or 0) / 2)


def test_energy_of_an_option() -> None:
    """Between the memory-bound share and all of TDP, over the hours that are paid for."""
    (one, *_) = options(grid_kg_co2_per_kwh=0.4, duty_cycle=0.25)
    energy = one.energy
    assert energy is not None
    tdp_w = get_accelerator("h100-sxm5").tdp_w
    assert tdp_w is not None
    assert MEMORY_BOUND_SHARE * tdp_w < energy.watts_per_gpu <= tdp_w
    draw_w = energy.watts_per_gpu * one.gpus
    assert energy.joules_per_output_token == pytest.approx(draw_w / one.output_tokens_per_s)
    assert energy.kwh_per_month == pytest.approx(draw_w / 1e3 * HOURS_PER_MONTH * 0.25)
    assert energy.kg_co2_per_month == pytest.approx(0.4 * energy.kwh_per_month)
    assert "power_estimated" in {note.code for note in one.notes}


def test_without_a_grid_factor_there_is_no_co2() -> None:
    (one, *_) = options()
    assert one.energy is not None
    assert one.energy.kg_co2_per_month is None


def test_an_old_price_is_refused_by_a_setting_and_says_so() -> None:
    """The age past which a price is not used is a field; the note names it and what to do."""
    (one, *_) = options(price_days=1)
    assert one.money is None
    (note,) = [note for note in one.notes if note.code == "no_price"]
    assert "price_days" in note.text
    assert "usd_per_gpu_hour" in note.text


@pytest.mark.parametrize(
    ("book", "words"),
    [
        (PriceBook(provider="nobody"), "no on_demand price of nobody"),
        (PriceBook(today=date(2028, 1, 1)), "days old"),
        (PriceBook(own_usd_per_gpu_hour=2.0), ""),
        (PriceBook(today=date(2026, 12, 1)), ""),
    ],
)
def test_why_there_is_no_price(book: PriceBook, words: str) -> None:
    gpu = get_accelerator("h100-sxm5")
    text = book.missing(gpu)
    assert words in text
    assert bool(text) == (book.of(gpu) is None)


def test_kinds_of_prices_differ() -> None:
    """Reserved is not dearer than on demand where both are on record."""
    today = date(2026, 12, 1)
    prices = {
        kind: PriceBook(kind=kind, today=today, most_days=10_000).of(get_accelerator("h100-sxm5"))
        for kind in ("on_demand", "reserved", "spot")
    }
    known = {kind: one.usd_per_gpu_hour for kind, one in prices.items() if one is not None}
    assert "on_demand" in known
    assert all(usd <= known["on_demand"] * 1.5 for usd in known.values())


def test_the_command_prints_costs_where_they_are_asked_for() -> None:
    arguments = [
        *(MODEL, "--gpu", "h100-sxm5", "--engine", "vllm", "--tp", "1", "--pp", "1"),
        *("--isl", "2000", "--osl", "400", "--requests-per-s", "12", "--tpot-ms", "25"),
        *("--disaggregated", "off", "--no-confirm", "--kv", "bf16"),
    ]
    plain = CliRunner().invoke(command, arguments)
    assert plain.exit_code == 0, plain.output
    assert "estimates of cost" not in plain.output
    more = ["--grid-kg-co2-per-kwh", "0.4", "--api-usd-per-million-output", "1"]
    result = CliRunner().invoke(command, [*arguments, *more])
    assert result.exit_code == 0, result.output
    assert "kg CO₂/month" in result.output
    assert "breaks even at" in result.output


@pytest.mark.parametrize(
    ("limits", "field"),
    [
        ({"ttft_ms": 5}, "ttft_ms"),
        ({"tpot_ms": 2}, "tpot_ms"),
        ({"e2e_ms": 300, "tpot_ms": None}, "e2e_ms"),
        ({"usd_per_month": 100, "requests_per_s": 12.0, "usd_per_gpu_hour": 2.0}, "usd_per_month"),
        ({"gpus": 1, "requests_per_s": 200.0}, "gpus"),
    ],
)
def test_an_impossible_target_names_the_nearest_and_what_to_relax(
    limits: dict[str, Any], field: str
) -> None:
    """With the limit that is said to be needed there is an option; with a hair less there is none.

    A budget or a number of GPUs is met by the same number of GPUs, so that a hair is one of them.
    """

    def answered(**fields: Any) -> Any:
        return recommend(RecommendationRequest(**{**LOAD, **limits, **fields})).sized

    refused = answered()
    assert not refused.options
    assert refused.nearest is not None
    (relax,) = refused.nearest.relax
    assert relax.field == field
    assert relax.given == pytest.approx(limits[field])
    assert relax.needed > relax.given
    assert f"{relax.needed:,.0f}" in refused.nearest.text or field in refused.nearest.text
    assert answered(**{field: relax.needed}).options
    less = relax.needed - 1 if field == "gpus" else relax.needed * 0.97
    assert not answered(**{field: less}).options


def test_two_limits_that_are_missed_are_both_named() -> None:
    request = RecommendationRequest(**{**LOAD, "ttft_ms": 5, "tpot_ms": 2})
    sized = recommend(request).sized
    assert sized is not None
    assert sized.nearest is not None
    assert {one.field for one in sized.nearest.relax} == {"ttft_ms", "tpot_ms"}
    both = {one.field: one.needed for one in sized.nearest.relax}
    again = recommend(RecommendationRequest(**{**LOAD, **both})).sized
    assert again is not None
    assert again.options or again.nearest is not None
