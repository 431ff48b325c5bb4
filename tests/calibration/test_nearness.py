"""Intervals by how near a case is to what was measured, on a small made-up table."""

from __future__ import annotations

from dataclasses import replace

import pytest

from planner.calibration.intervals import NEARNESS, Coverage, Intervals
from planner.calibration.subject import Subject

PAIR, GPU, FAMILY, DATASHEET = NEARNESS

INTERVALS = Intervals.of(
    {
        "coverage": {
            "serving": {
                "pairs": ["h100|llama 70.6B"],
                "gpus": ["h100"],
                "families": ["hopper/hbm"],
                "vendors": ["nvidia"],
            },
            "bench": {"vendors": ["apple"], "families": ["m3/lpddr"]},
        },
        "factors": {
            "tpot": {
                "serving": {
                    PAIR: [0.9, 1.1],
                    GPU: [0.8, 1.25],
                    FAMILY: [0.64, 1.44],
                    DATASHEET: [0.25, 4.0],
                },
                "bench": {FAMILY: [0.81, 1.21]},
            },
            "ttft": {"serving": {GPU: [0.5, 2.0], FAMILY: [0.25, 4.0]}},
        },
        "engines": {"llama.cpp": "bench"},
        "unseen_vendor": 1.5,
    }
)


def subject(**tags: str) -> Subject:
    known = {
        "gpu": "h100",
        "family": "hopper/hbm",
        "vendor": "nvidia",
        "model": "llama 70.6B",
        "engine": "",
    }
    return Subject(known | tags)


@pytest.mark.parametrize(
    ("tags", "nearness"),
    [
        ({}, PAIR),
        ({"model": "llama 8.0B"}, GPU),
        ({"gpu": "h200"}, FAMILY),
        ({"gpu": "h200", "family": "blackwell/hbm"}, DATASHEET),
        # One's own has no name: near to nothing but its family.
        ({"gpu": ""}, FAMILY),
        ({"gpu": "", "family": "mine/ddr"}, DATASHEET),
        # In another mode nothing of the GPU was measured.
        ({"mode": "bench"}, DATASHEET),
        ({"mode": "bench", "family": "m3/lpddr"}, FAMILY),
        ({"mode": "nowhere"}, DATASHEET),
        ({"engine": "llama.cpp"}, DATASHEET),
    ],
)
def test_nearness(tags: dict[str, str], nearness: str) -> None:
    assert INTERVALS.nearness(subject(**tags)) == nearness


@pytest.mark.parametrize(
    ("tags", "factors"),
    [
        ({}, (0.9, 1.1)),
        ({"model": "llama 8.0B"}, (0.8, 1.25)),
        ({"gpu": "h200"}, (0.64, 1.44)),
        ({"gpu": "b200", "family": "blackwell/hbm"}, (0.25, 4.0)),
        # A vendor of whom nothing was measured: half as wide again, on the logarithm.
        ({"gpu": "x", "family": "x/hbm", "vendor": "other"}, (0.25**1.5, 4.0**1.5)),
        ({"gpu": "h200", "vendor": "other"}, (0.64**1.5, 1.44**1.5)),
        # Of its own mode.
        ({"mode": "bench", "family": "m3/lpddr", "vendor": "apple"}, (0.81, 1.21)),
        ({"engine": "llama.cpp", "family": "m3/lpddr", "vendor": "apple"}, (0.81, 1.21)),
        # Nothing on record of its class.
        ({"mode": "bench", "family": "m4/lpddr", "vendor": "apple"}, (1.0, 1.0)),
        # A mode without any coverage has no interval.
        ({"mode": "nowhere"}, (1.0, 1.0)),
    ],
)
def test_factors_of_tpot(tags: dict[str, str], factors: tuple[float, float]) -> None:
    assert INTERVALS.of_case("tpot", subject(**tags)) == pytest.approx(factors)


def test_a_time_that_a_mode_lacks_is_borrowed_from_serving_and_widened() -> None:
    mac = subject(mode="bench", family="m3/lpddr", vendor="apple")
    assert INTERVALS.borrowed("ttft", mac)
    assert not INTERVALS.borrowed("tpot", mac)
    assert not INTERVALS.borrowed("ttft", subject())
    assert not INTERVALS.borrowed("nothing", mac)
    assert INTERVALS.of_case("ttft", mac) == pytest.approx((0.25**1.5, 4.0**1.5))


def test_modes() -> None:
    assert INTERVALS.mode(subject()) == "serving"
    assert INTERVALS.mode(subject(engine="llama.cpp")) == "bench"
    assert INTERVALS.mode(subject(engine="llama.cpp", mode="static")) == "static"


@pytest.mark.parametrize("widening", [1.0, 1.5, 3.0])
def test_widening_is_on_the_logarithm(widening: float) -> None:
    wide = replace(INTERVALS, unseen_vendor=widening)
    low, high = wide.of_case("tpot", subject(vendor="other"))
    assert low == pytest.approx(0.9**widening)
    assert high == pytest.approx(1.1**widening)


def test_an_empty_table_knows_nothing() -> None:
    empty = Intervals.of({})
    assert empty.of_case("tpot", subject()) == (1.0, 1.0)
    assert empty.nearness(subject()) == DATASHEET
    assert empty.unseen_vendor == 1.0


def test_coverage_from_near_to_far() -> None:
    nothing: frozenset[str] = frozenset()
    only_family = Coverage(nothing, nothing, frozenset({"hopper/hbm"}), nothing)
    assert only_family.nearness(subject()) == FAMILY
    assert Coverage(nothing, frozenset({"h100"}), nothing, nothing).nearness(subject()) == GPU
    assert Coverage(nothing, nothing, nothing, nothing).nearness(subject()) == DATASHEET


@pytest.mark.parametrize(
    ("tags", "factors"),
    [
        # The wider end of either: nothing is on record of LMDeploy, on an H200 or elsewhere.
        ({"engine": "lmdeploy"}, (0.25, 5.0)),
        ({"engine": "lmdeploy", "gpu": "h200"}, (0.25, 5.0)),
        ({"engine": "vllm"}, (0.9, 1.1)),
    ],
)
def test_an_engine_never_measured_is_no_surer_than_one_left_out(
    tags: dict[str, str], factors: tuple[float, float]
) -> None:
    known = replace(INTERVALS, unseen_engines={"tpot": {"serving": (0.5, 5.0)}})
    assert known.of_case("tpot", subject(**tags)) == pytest.approx(factors)
    words = known.described(subject(**tags))
    assert ("an engine left out" in words) is (tags["engine"] == "lmdeploy")


@pytest.mark.parametrize(
    ("gpu", "vendor", "factors"),
    [
        # Of its class 0.25 to 4; of vendors left out 0.5 to 6: the wider end of either.
        ("x", "other", (0.25, 6.0)),
        ("x", "nvidia", (0.25, 4.0)),
    ],
)
def test_a_vendor_never_measured_is_no_surer_than_one_left_out(
    gpu: str, vendor: str, factors: tuple[float, float]
) -> None:
    known = replace(INTERVALS, vendors={"tpot": {"serving": (0.5, 6.0)}})
    case = subject(gpu=gpu, family="x/hbm", vendor=vendor)
    assert known.of_case("tpot", case) == pytest.approx(factors)


def test_which_times_were_measured_in_a_mode() -> None:
    assert INTERVALS.measures("ttft", subject())
    assert not INTERVALS.measures("ttft", subject(mode="bench"))
    assert not INTERVALS.measures("request", subject())


def test_floors_are_named_together() -> None:
    """A user's own set-up under an engine of which nothing is on record."""
    known = replace(
        INTERVALS, unseen_engines={"tpot": {}, "ttft": {}} | {"tpot": {"serving": (0.5, 5.0)}}
    )
    known = replace(known, sources={"tpot": (0.2, 6.0)})
    own = subject(engine="lmdeploy", source="")
    assert known.described(own).endswith("those of a source or an engine left out")
    assert known.of_case("tpot", own) == (0.2, 6.0)


def test_an_engine_without_any_run_is_near_to_nothing() -> None:
    """No run of LMDeploy is on record, on whatever device."""
    assert INTERVALS.nearness(subject(engine="lmdeploy")) == DATASHEET
    assert INTERVALS.nearness(subject(engine="vllm")) == PAIR
