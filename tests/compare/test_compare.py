"""Comparisons: figures, winners, the Pareto set, and attributions that add up exactly."""

from __future__ import annotations

import csv
import io
import itertools
import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from planner import plan
from planner.plans.compare import Comparison, ComparisonRequest, compare, to_csv, to_markdown
from planner.plans.compare.answers import Attribution, Contribution
from planner.plans.compare.attribution import PROMPTS
from planner.plans.compare.exact import BITS, Grid
from planner.scenario import Scenario

LLAMA = "meta-llama/Llama-3.1-70B-Instruct"


def scenario(**changes: Any) -> Scenario:
    base: dict[str, Any] = {
        "model": LLAMA,
        "gpu": "h100-sxm5",
        "tp": 4,
        "batch": 32,
        "context": 8192,
        "weights": "bf16",
    }
    return Scenario.model_validate({**base, **changes})


def of(*scenarios: Scenario, **options: Any) -> Comparison:
    return compare(ComparisonRequest(scenarios=list(scenarios), **options))


def part(attribution: Attribution, figure: str) -> Contribution:
    return next(c for c in attribution.contributions if c.figure == figure)


FP8 = (scenario(name="BF16"), scenario(name="FP8", weights="fp8"))
THREE = (
    scenario(name="4×H100"),
    scenario(name="2×H200", gpu="h200-sxm", tp=2),
    scenario(name="1×B200", gpu="b200-sxm", tp=1, weights="fp8", batch=16),
)
FAR = (
    scenario(name="A", engine="vllm"),
    scenario(
        name="B",
        model="meta-llama/Llama-3.1-8B-Instruct",
        gpu="l40s",
        tp=1,
        replicas=3,
        weights="fp8",
        kv="fp8",
        batch=8,
        context=2048,
        engine="sglang",
    ),
)


def test_every_millisecond_between_fp8_and_bf16_is_explained() -> None:
    found = of(*FP8)
    (attribution,) = found.attributions
    assert [step.fields for step in attribution.steps] == [["weights"]]
    tpot = part(attribution, "tpot_s")
    assert tpot.difference < 0
    rows = {row.kernel: row for row in attribution.kernels}
    assert sum(row.difference_s for row in attribution.kernels) == tpot.difference
    assert sum(row.baseline_s for row in attribution.kernels) == tpot.baseline
    assert sum(row.other_s for row in attribution.kernels) == tpot.other
    # Halving the bytes of the weights halves what their products read; attention is as it was.
    saved = sum(row.difference_s for name, row in rows.items() if "proj" in name or "mlp" in name)
    assert saved == pytest.approx(tpot.difference, rel=0.1)
    assert rows["attention"].difference_s == pytest.approx(0, abs=1e-12)
    assert "FP8 takes" in attribution.verdict
    assert "less per token than BF16" in attribution.verdict


@pytest.mark.parametrize("scenarios", [FP8, THREE, FAR, FAR[::-1]])
def test_steps_and_kernels_add_up_exactly(scenarios: tuple[Scenario, ...]) -> None:
    for baseline in range(len(scenarios)):
        found = of(*scenarios, baseline=baseline)
        rows = {row.figure: row for row in found.figures}
        labels = [column.label for column in found.columns]
        assert len(found.attributions) == len(scenarios) - 1
        for attribution in found.attributions:
            index = labels.index(attribution.other)
            for c in attribution.contributions:
                for steps in (c.steps, c.steps[::-1], sorted(c.steps)):
                    assert sum(steps) == c.difference == c.other - c.baseline
                assert c.difference == rows[c.figure].differences[index]
                assert c.other == rows[c.figure].values[index]
            tpot = part(attribution, "tpot_s")
            assert sum(row.difference_s for row in attribution.kernels) == tpot.difference
            for row in attribution.kernels:
                assert row.other_s - row.baseline_s == row.difference_s


@pytest.mark.parametrize(
    "figure",
    ["tpot_s", "tokens_per_s", "tokens_per_s_per_gpu", "usd_per_million_tokens", "bytes", "flops"],
)
def test_steps_are_in_the_order_of_the_fields_and_say_what_changed(figure: str) -> None:
    (attribution,) = of(THREE[0], THREE[2]).attributions
    changed = list(itertools.chain.from_iterable(step.fields for step in attribution.steps))
    assert changed == ["gpu", "tp", "weights", "batch"]
    assert attribution.steps[0].before == {"gpu": "h100-sxm5"}
    assert attribution.steps[-1].after == {"batch": [16]}
    assert len(part(attribution, figure).steps) == len(attribution.steps)


def test_a_step_is_what_the_plans_on_both_sides_say() -> None:
    (attribution,) = of(THREE[0], THREE[2]).attributions
    on_b200 = scenario(gpu="b200-sxm")
    before, after = (plan(one).points[-1].tpot_s.p50 for one in (THREE[0], on_b200))
    assert part(attribution, "tpot_s").steps[0] == pytest.approx(after - before, rel=1e-9)


def test_changes_that_cannot_stand_alone_are_made_together() -> None:
    # FP4 weights on H100 are possible, tp=4 on a card without link is not.
    alone = {
        "peaks_flops_per_s": {"bf16": 1e15},
        "bandwidth_bytes_per_s": 2e12,
        "memory_bytes": 2e11,
        "source": "made up",
    }
    (attribution,) = of(scenario(), scenario(gpu=alone, tp=1)).attributions
    assert [step.fields for step in attribution.steps] == [["gpu", "tp"]]
    serving = {"concurrency": 8, "isl": 512, "osl": 128}
    (attribution,) = of(scenario(), scenario(**serving)).attributions
    assert [sorted(step.fields) for step in attribution.steps] == [["concurrency", "isl", "osl"]]


def test_figures_are_those_of_the_plans() -> None:
    found = of(*THREE)
    values = {row.figure: row.values for row in found.figures}
    for index, one in enumerate(THREE):
        answer = plan(one)
        point = answer.points[-1]
        assert values["tpot_s"][index] == pytest.approx(point.tpot_s.p50, rel=1e-13)
        assert values["tokens_per_s"][index] == pytest.approx(point.tokens_per_s, rel=1e-13)
        assert values["tokens_per_s_per_gpu"][index] == pytest.approx(
            point.tokens_per_s_per_gpu, rel=1e-13
        )
        assert values["max_batch"][index] == answer.memory.max_batch
        assert values["gpus"][index] == one.tp
    for row in found.figures:
        for value, difference, ratio in zip(row.values, row.differences, row.ratios, strict=True):
            base = row.values[0]
            if value is not None and base:
                assert difference == value - base
                assert ratio == value / base


def test_cost_is_price_times_gpus_over_tokens() -> None:
    found = of(*THREE, usd_per_gpu_hour={"h200-sxm": 3.0})
    values = {row.figure: row.values for row in found.figures}
    assert values["usd_per_hour"][1] == 6.0
    rate = values["tokens_per_s"][1]
    assert rate is not None
    assert values["usd_per_million_tokens"][1] == pytest.approx(6.0 / 3600 / rate * 1e6)
    assert found.columns[1].price_source == "given with the request"
    assert "median of" in found.columns[0].price_source


def test_without_a_price_cost_is_left_out() -> None:
    card = {"base": "h100-sxm5", "id": "mine", "source": "me"}
    found = of(scenario(), scenario(gpu=card))
    values = {row.figure: row.values for row in found.figures}
    assert values["usd_per_hour"][1] is None
    assert found.pareto.criteria == ["tpot_s", "tokens_per_s_per_gpu"]
    assert "no_price" in {note.code for note in found.notes}
    figures = {c.figure for c in found.attributions[0].contributions}
    assert "usd_per_hour" not in figures
    assert "tpot_s" in figures


def test_winners_and_pareto_members_fit() -> None:
    found = of(
        scenario(name="fits"),
        scenario(name="too many", batch=4096),
        scenario(name="slower", batch=31),
    )
    fits = {column.label: column.fits for column in found.columns}
    assert fits == {"fits": True, "too many": False, "slower": True}
    won = set(itertools.chain.from_iterable(found.winners.values()))
    assert "too many" not in won
    assert "too many" not in found.pareto.members


def test_the_pareto_set_is_what_nothing_beats() -> None:
    found = of(*FP8, *THREE[1:])
    rows = {row.figure: row for row in found.figures}
    assert found.pareto.criteria == ["tpot_s", "tokens_per_s_per_gpu", "usd_per_million_tokens"]
    labels = [column.label for column in found.columns]

    def beats(a: int, b: int) -> bool:
        pairs = [
            (rows[name].values[a], rows[name].values[b], rows[name].better)
            for name in found.pareto.criteria
        ]
        signed = [
            (x, y) if better == "lower" else (-x, -y)
            for x, y, better in pairs
            if x is not None and y is not None
        ]
        return all(x <= y for x, y in signed) and any(x < y for x, y in signed)

    for index, label in enumerate(labels):
        if found.columns[index].fits:
            beaten = any(
                beats(other, index)
                for other in range(len(labels))
                if found.columns[other].fits and other != index
            )
            assert (label in found.pareto.members) is not beaten


def test_equal_scenarios_differ_in_nothing() -> None:
    found = of(scenario(), scenario())
    assert [column.label for column in found.columns] == ["A", "B"]
    (attribution,) = found.attributions
    assert attribution.steps == []
    assert attribution.verdict == "B asks the same question as A"
    assert found.winners == {}
    assert found.pareto.members == ["A", "B"]
    assert {d for row in found.figures for d in row.differences} <= {0.0, None}


def test_labels_are_names_and_no_two_the_same() -> None:
    found = of(scenario(name="x"), scenario(name="x", tp=8), scenario(tp=2), baseline=1)
    assert [column.label for column in found.columns] == ["x", "x (2)", "C"]
    assert found.baseline == "x (2)"
    assert [a.other for a in found.attributions] == ["x", "C"]


SERVING = {"concurrency": 16, "isl": 1024, "osl": 256, "batch": None, "context": None}


def test_serving_figures_where_all_ask_for_them() -> None:
    one = scenario(**SERVING, replicas=3)
    served = plan(one).serving
    assert served is not None
    found = of(one, scenario(**SERVING, weights="fp8"))
    values = {row.figure: row.values for row in found.figures}
    assert values["ttft_s"][0] == pytest.approx(served.ttft_s.p50, rel=1e-13)
    assert values["tpot_s"][0] == pytest.approx(served.tpot_s.p50, rel=1e-13)
    assert values["tokens_per_s"][0] == pytest.approx(served.output_tokens_per_s, rel=1e-13)
    assert values["gpus"] == [12, 4]
    assert found.columns[0].batch == round(served.running_batch)
    assert found.columns[0].context == 1024 + 128
    (attribution,) = found.attributions
    tpot, ttft = part(attribution, "tpot_s"), part(attribution, "ttft_s")
    assert sum(row.difference_s for row in attribution.kernels) == tpot.difference
    assert sum(ttft.steps) == ttft.difference
    # What no kernel accounts for is the prompts of other requests: time, never less than none.
    rest = next(row for row in attribution.kernels if row.kernel == PROMPTS)
    assert 0 < rest.baseline_s < tpot.baseline
    assert 0 < rest.other_s < tpot.other


def test_decode_points_where_not_all_ask_about_serving() -> None:
    found = of(scenario(**SERVING), scenario())
    assert "decode_only" in {note.code for note in found.notes}
    assert {row.figure: row.values for row in found.figures}["ttft_s"] == [None, None]


@pytest.mark.parametrize(
    "options",
    [
        {"baseline": 2},
        {"labels": ["only one"]},
        {"usd_per_gpu_hour": {"h100-sxm5": -1}},
        {"nope": 1},
    ],
)
def test_impossible_requests_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        of(*FP8, **options)
    with pytest.raises(ValidationError):
        of(FP8[0])


def test_an_unknown_accelerator_is_named() -> None:
    with pytest.raises(ValueError, match="gpu: unknown accelerator 'nope'"):
        of(scenario(), scenario(gpu="nope"))


def test_csv_has_a_row_for_everything() -> None:
    found = of(*THREE)
    rows = list(csv.DictReader(io.StringIO(to_csv(found))))
    figures = [row for row in rows if row["section"] == "figure"]
    assert len(figures) == 3 * len(found.figures)
    for attribution in found.attributions:
        for c in attribution.contributions:
            steps = [
                float(row["difference"])
                for row in rows
                if (row["section"], row["figure"], row["scenario"])
                == ("attribution", c.figure, attribution.other)
            ]
            assert sum(steps) == c.difference
        kernels = [
            float(row["difference"])
            for row in rows
            if (row["section"], row["scenario"]) == ("kernel", attribution.other)
        ]
        assert sum(kernels) == part(attribution, "tpot_s").difference


def test_texts_do_no_harm_in_tables() -> None:
    found = of(scenario(name="=1+1|<b>\nx"), scenario(name="@x", tp=8))
    text = to_markdown(found)
    assert "=1+1\\|&lt;b> x" in text
    widths = {line.replace("\\|", "").count("|") for line in text.split("\n\n")[1].splitlines()}
    assert widths == {4}
    cells = [row[3] for row in csv.reader(io.StringIO(to_csv(found)))]
    assert "'=1+1|<b>\nx" in cells
    assert "'@x" in cells


def test_markdown_says_everything() -> None:
    text = to_markdown(of(*THREE))
    changed = "Changed in this order: gpu: h100-sxm5 → h200-sxm; tp: 4 → 2"
    words = ("tpot_s", "Pareto set", "From 4×H100 to 2×H200", "attention", "**sum**", "Editions")
    for word in (changed, *words):
        assert word in text


@given(st.lists(st.floats(0, 1e300, allow_subnormal=False), min_size=2, max_size=100))
@settings(deadline=None)
def test_sums_on_a_grid_are_exact(values: list[float]) -> None:
    grid = Grid.over(values)
    snapped = [grid.snap(value) for value in values]
    steps = [after - before for before, after in itertools.pairwise(snapped)]
    assert sum(steps) == sum(reversed(steps)) == math.fsum(steps) == snapped[-1] - snapped[0]
    for value, point in zip(values, snapped, strict=True):
        assert abs(value - point) <= max(values) * 2.0 ** (1 - BITS)
