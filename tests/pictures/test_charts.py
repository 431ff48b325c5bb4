"""What pictures show is what plans say, and Vega-Lite takes it."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest

from planner.pictures import CHARTS, View, chart, look
from planner.pictures.charts import UnknownChart
from planner.pictures.shares import memory_rows
from planner.pictures.style import THEMES
from planner.plans.planning import plan
from planner.scenario import Scenario

LLAMA = "meta-llama/Llama-3.1-70B-Instruct"
CASES: dict[str, dict[str, Any]] = {
    "dense": {"model": LLAMA, "gpu": "h100-sxm5", "tp": 4, "context": 8192},
    "limited": {"model": LLAMA, "gpu": "b200-sxm", "tp": 2, "engine": "vllm", "tpot_ms": 30},
    "experts": {"model": "deepseek-ai/DeepSeek-V3", "gpu": "h200-sxm", "tp": 8, "batch": [1, 64]},
    "drafts": {"model": LLAMA, "gpu": "h100-sxm5", "tp": 4, "speculation": {"drafts": 1}},
    "too large": {"model": LLAMA, "gpu": "l4", "batch": 4},
    "recurrent": {"model": "state-spaces/mamba-2.8b-hf", "gpu": "h100-sxm5"},
}


@cache
def view(case: str) -> View:
    return look(Scenario(**CASES[case]))


@pytest.mark.parametrize("case", [case for case in CASES if case != "recurrent"])
@pytest.mark.parametrize("name", CHARTS)
def test_vega_lite_takes_it(name: str, case: str) -> None:
    altair = pytest.importorskip("altair")
    spec = chart(name, view(case))
    for theme in THEMES.values():
        altair.Chart.from_dict({**spec, "config": theme})  # validates


def test_decode_of_llama_saturates_left_of_the_ridge() -> None:
    """About 60 FLOP/byte at 8k, 11 at 128k; the ridge of H100 is 295 (fact 17).

    (2·(70.55e9 − 1.05e9) + 4·131072·8192·80)/(131072·327680) = 11.24.
    """
    spec = chart("intensity", view("dense"))
    limits = {row["context"]: row["intensity"] for row in spec["datasets"]["marks"]}
    assert limits[8192] == pytest.approx(59.8, abs=0.1)
    assert limits[131_072] == pytest.approx(11.24, abs=0.01)
    (ridge,) = spec["datasets"]["ridge"]
    assert ridge["intensity"] == pytest.approx(295, abs=0.5)
    curve = [row for row in spec["datasets"]["curves"] if row["context"] == 8192]
    assert all(row["intensity"] < limits[8192] for row in curve)
    assert curve == sorted(curve, key=lambda row: row["intensity"])


@pytest.mark.parametrize("case", ["dense", "limited", "experts", "drafts"])
def test_points_of_the_plan_are_on_the_curves(case: str) -> None:
    answer = plan(Scenario(**CASES[case]))
    rows = {row["batch"]: row for row in chart("throughput", view(case))["datasets"]["curve"]}
    context = max(answer.scenario.context or [0])
    for point in answer.points:
        if point.context != context:
            continue
        row = rows[point.batch]
        assert row["tpot_ms"] == point.tpot_s.p50 * 1e3
        assert row["tpot_p10_ms"] == point.tpot_s.p10 * 1e3
        assert row["tpot_p90_ms"] == point.tpot_s.p90 * 1e3
        assert row["tokens_per_s_per_gpu"] == point.tokens_per_s_per_gpu


def test_kernels_on_the_roofline_are_those_of_the_plan() -> None:
    answer = plan(Scenario(**CASES["dense"]))
    rows = {row["name"]: row for row in chart("roofline", view("dense"))["datasets"]["kernels"]}
    for kernel in answer.kernels:
        if kernel.arithmetic_intensity is None:
            assert kernel.name not in rows
        else:
            assert rows[kernel.name]["intensity"] == kernel.arithmetic_intensity
            assert rows[kernel.name]["rate"] == kernel.flops / kernel.time_s


@pytest.mark.parametrize("case", CASES)
def test_nothing_is_above_its_roof(case: str) -> None:
    seen = view(case)
    machine = seen.deployment.accelerator
    peak = max(machine.peak(name) for name in seen.deployment.step.formats)
    for row in chart("roofline", seen)["datasets"]["path"]:
        roof = min(peak, machine.bandwidth_bytes_per_s * row["intensity"])
        assert row["rate"] <= roof * (1 + 1e-9)


@pytest.mark.parametrize("case", [case for case in CASES if case != "too large"])
def test_the_parts_of_memory_add_up_to_the_gpu(case: str) -> None:
    seen = view(case)
    total = sum(row["gigabytes"] for row in memory_rows(seen))
    assert total == pytest.approx(seen.deployment.accelerator.memory() / 1e9, rel=1e-6)


def test_the_limit_is_drawn_where_there_is_one() -> None:
    (limit,) = chart("throughput", view("limited"))["datasets"]["limit"]
    assert limit == {"tpot_ms": 30, "set": True}
    (unseen,) = chart("throughput", view("dense"))["datasets"]["limit"]
    curve = chart("throughput", view("dense"))["datasets"]["curve"]
    assert unseen == {"tpot_ms": curve[0]["tpot_ms"], "set": False}  # no further than the curve


def test_crossovers_are_marked_where_there_are_some() -> None:
    """Llama-3.1-70B at 1k: B·(141.7e9/295.34 − 335.5e6) = 139e9 bytes of weights, B = 964."""
    seen = look(Scenario(**{**CASES["dense"], "context": 1024}))
    rows = chart("intensity", seen)["datasets"]["marks"]
    (crossover,) = (row for row in rows if row["kind"] == "crossover")
    assert (crossover["context"], crossover["batch"]) == (1024, 964)
    assert crossover["intensity"] == pytest.approx(295.3, abs=0.1)
    assert {row["context"] for row in rows if row["kind"] != "crossover"} == {
        limit["context"] for limit in seen.limits
    }


@pytest.mark.parametrize("name", CHARTS)
def test_a_picture_of_another_question_differs_in_rows_alone(name: str) -> None:
    """A page then replaces rows and draws nothing anew."""
    shapes = []
    for case in ("dense", "limited", "experts"):
        spec = chart(name, view(case))
        shapes.append({**spec, "datasets": sorted(spec["datasets"]), "description": ""})
    assert shapes[0] == shapes[1] == shapes[2]


def test_an_unknown_picture_is_refused_in_one_line() -> None:
    with pytest.raises(UnknownChart, match="chart: 'pie' is not a picture; accepted: roofline"):
        chart("pie", view("dense"))


def contrast(one: str, other: str) -> float:
    """Contrast ratio of two colours (WCAG 2.2, relative luminance)."""

    def luminance(colour: str) -> float:
        parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
        return sum(w * c for w, c in zip((0.2126, 0.7152, 0.0722), linear, strict=True))

    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def test_contrast_is_computed_as_wcag_says() -> None:
    assert contrast("#ffffff", "#000000") == pytest.approx(21)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.01)


@pytest.mark.parametrize("theme", THEMES)
def test_colours_are_seen_on_both_backgrounds(theme: str) -> None:
    """Marks 3:1 (1.4.11), text 4.5:1 (1.4.3)."""
    config = THEMES[theme]
    ground = config["background"]
    assert all(contrast(colour, ground) >= 3 for colour in config["range"]["category"])
    assert contrast(config["axis"]["labelColor"], ground) >= 4.5
