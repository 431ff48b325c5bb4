"""Choices of splits, ratios between options, and the peer's table, on small made-up runs."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from planner.accuracy.choice import ratios
from planner.accuracy.choosing import choosing
from planner.accuracy.holdout import Held
from planner.accuracy.peers import peers
from planner.accuracy.tables import spread, whole
from planner.calibration.subject import Subject
from tests.accuracy.test_errors import held

PLAIN = {
    "tp": "1",
    "pp": "1",
    "attention_dp": "1",
    "moe_ep": "1",
    "gpus": "1",
    "engine_version": "1",
    "weight_format": "fp8",
    "gpu": "h100-sxm5",
    "source": "vendor run",
}


def run(tpot_ms: float, off: float = 1.0, **inputs: str) -> Held:
    """A run of 101 tokens whose times are all predicted `off` times as long as measured."""
    measured = (tpot_ms, tpot_ms)
    return held(measured, (tpot_ms * off, tpot_ms * off), **(PLAIN | inputs))


def test_what_is_off_for_both_is_no_error_of_a_ratio() -> None:
    rows = [run(10, 1.3), run(6, 1.3, tp="2", gpus="2")]
    assert ratios(rows, "split") == pytest.approx([0.0])
    assert ratios(rows, "engine") == []


def test_a_ratio_by_hand() -> None:
    """One option predicted 10% too long, the other 20%: their rates' ratio is off by 1.2/1.1."""
    rows = [run(10, 1.1), run(8, 1.2, weight_format="nvfp4"), run(9, 1.0, concurrency="64")]
    assert ratios(rows, "weight format") == pytest.approx([math.log(1.2 / 1.1)])
    assert ratios(rows, "split") == []


def test_repeats_of_one_option_are_no_ratio() -> None:
    assert ratios([run(10, 1.1), run(10, 1.2)], "split") == []


def test_which_mixtures_spread_their_experts() -> None:
    def of(network: str, ep: str) -> Held:
        return replace(run(10, moe_ep=ep), subject=Subject({"mode": "", "network": network}))

    assert [spread(of("moe", ep)) for ep in ("8", "1", "")] == [True, False, False]
    assert [whole(of("moe", ep)) for ep in ("8", "1", "")] == [False, True, True]
    assert not whole(of("dense", "1"))
    assert whole(of("latent+moe", ""))


def test_the_section_on_choices() -> None:
    rows = [run(10), run(6, 1.1, tp="2", gpus="2"), run(7, 1.0, tp="4", gpus="4")]
    text = choosing({"model": rows, "gpu": rows})
    assert "| one model | the split | 1 | 100% | 100.0% | 100.0% |" in text
    # Pairs: 1.1 against 1, twice (9.1% or 10%), and 1 against 1.
    assert "| one gpu | split | 3 | 9.1% |" in text
    assert "| one gpu | engine | 0 | – | – | – |" in text


def test_the_peer_beside_us() -> None:
    rows = [run(10, 1.1), run(10, 1.3, gpu="b200-sxm"), run(10, 9.0, source="another")]
    text = peers({"model": rows, "gpu": rows[:1]})
    assert "| TPOT, H100 | 1 | 10.0% | 10.0% | 9.6% |" in text
    assert "| TPOT, B200 | 1 | 30.0% | – | 16.8% |" in text
    assert "| TPOT | 2 | 20.0%, 20.0%, 28.0% |" in text
    assert "14.3%, 21.4%, 43.7%" in text
