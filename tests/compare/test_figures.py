"""Comparisons of small plans: tables, Pareto sets, attributions and texts, by hand.

Scenarios are of the small model on the machine of round numbers (`tests.step.machine`), so that
what changes is known: twice the bandwidth halves a memory-bound step.
"""

from __future__ import annotations

import csv
import io
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.plans.compare import ComparisonRequest, compare
from planner.plans.compare.answers import Comparison
from planner.plans.compare.attribution import APART, FIELDS
from planner.plans.compare.exact import Grid
from planner.plans.compare.figures import FIGURES
from planner.plans.compare.text import CSV_COLUMNS, to_csv, to_markdown
from planner.scenario import Scenario

CONFIG: dict[str, Any] = {
    "model_type": "llama",
    "hidden_size": 1024,
    "num_hidden_layers": 8,
    "num_attention_heads": 16,
    "num_key_value_heads": 4,
    "intermediate_size": 4096,
    "vocab_size": 32000,
    "max_position_embeddings": 8192,
    "torch_dtype": "bfloat16",
}


def gpu(bandwidth: float = 1e12, name: str = "one") -> dict[str, Any]:
    return {
        "id": name,
        "peaks_flops_per_s": {"bf16": 1e14, "fp8": 2e14},
        "bandwidth_bytes_per_s": bandwidth,
        "memory_bytes": 8e10,
        "link": {"name": "wire", "bytes_per_s": 1e11},
        "source": "round numbers",
    }


def scenario(**fields: Any) -> Scenario:
    return Scenario(**{"model": CONFIG, "gpu": gpu(), "batch": [4], "context": [1000], **fields})


def of(*scenarios: Scenario, **options: Any) -> Comparison:
    return compare(ComparisonRequest(scenarios=list(scenarios), **options))


def figure(result: Comparison, name: str) -> list[float | None]:
    return next(row.values for row in result.figures if row.figure == name)


def test_twice_the_bandwidth_halves_the_roofline() -> None:
    result = of(scenario(), scenario(gpu=gpu(2e12, "two")))
    before, after = figure(result, "roofline_tpot_s")
    assert before is not None
    assert after is not None
    assert before / after == pytest.approx(2.0, rel=1e-9)
    (row,) = (row for row in result.figures if row.figure == "roofline_tpot_s")
    assert row.ratios == [1.0, pytest.approx(0.5)]
    assert row.differences[0] == 0.0
    assert row.best == ["B"]


def test_figures_of_two_gpus_are_of_both() -> None:
    one, two = of(scenario(), scenario(tp=2)), of(scenario(), scenario(replicas=3))
    assert figure(one, "gpus") == [1, 2]
    assert figure(two, "gpus") == [1, 3]
    rates = figure(two, "tokens_per_s")
    assert rates[1] == pytest.approx(3 * (rates[0] or 0))
    per_gpu = figure(two, "tokens_per_s_per_gpu")
    assert per_gpu[1] == pytest.approx(per_gpu[0])
    assert figure(one, "flops")[0] == figure(one, "flops")[1]


@pytest.mark.parametrize("replicas", [1, 2, 5])
def test_cost_of_a_million_tokens(replicas: int) -> None:
    """Two dollars an hour and accelerator over 3600 s of output."""
    prices = {"one": 2.0}
    result = of(scenario(), scenario(replicas=replicas), usd_per_gpu_hour=prices)
    cost, rate = figure(result, "usd_per_million_tokens"), figure(result, "tokens_per_s")
    assert figure(result, "usd_per_hour") == [2.0, 2.0 * replicas]
    assert cost[1] == pytest.approx(2.0 * replicas / 3600 / (rate[1] or 0) * 1e6)
    assert "usd_per_million_tokens" in result.pareto.criteria
    assert "no_price" not in {note.code for note in result.notes}


def test_without_prices_cost_is_no_criterion() -> None:
    result = of(scenario(), scenario(tp=2))
    assert result.pareto.criteria == ["tpot_s", "tokens_per_s_per_gpu"]
    assert [note.code for note in result.notes] == ["no_price"]
    assert figure(result, "usd_per_hour") == [None, None]


def test_the_pareto_set() -> None:
    """Tensor parallelism shortens a token and costs rate a GPU; half the bandwidth loses both."""
    result = of(scenario(), scenario(tp=2), scenario(gpu=gpu(5e11, "slow")))
    assert set(result.pareto.members) == {"A", "B"}
    (beaten,) = result.pareto.dominated
    assert (beaten.label, beaten.by) == ("C", "A")


FIELDS_TO_CHANGE = st.fixed_dictionaries(
    {},
    optional={
        "tp": st.sampled_from([2, 4]),
        "batch": st.sampled_from([[1], [64]]),
        "context": st.sampled_from([[100], [4000]]),
        "replicas": st.just(2),
        "weights": st.just("fp8"),
        "kv": st.just("fp8"),
        "gpu": st.just(gpu(2e12, "two")),
    },
)


@given(FIELDS_TO_CHANGE)
@settings(max_examples=20, deadline=None)
def test_steps_of_any_change_add_up_exactly(changes: dict[str, Any]) -> None:
    result = of(scenario(), scenario(**changes))
    (way,) = result.attributions
    changed = [name for step in way.steps for name in step.fields]
    assert set(changed) == set(changes)
    assert changed == sorted(changed, key=FIELDS.index)
    for contribution in way.contributions:
        assert sum(contribution.steps) == contribution.difference
        assert contribution.baseline + contribution.difference == contribution.other
    before, after = figure(result, "tpot_s")
    assert sum(row.baseline_s for row in way.kernels) == pytest.approx(before, rel=1e-12)
    assert sum(row.other_s for row in way.kernels) == pytest.approx(after, rel=1e-12)
    sizes = [abs(row.difference_s) for row in way.kernels]
    assert sizes == sorted(sizes, reverse=True)


def test_fields_that_change_no_figure_take_no_step() -> None:
    other = scenario(name="other", tags=["x"], notes="y", tpot_ms=5.0, percentile=90)
    result = of(scenario(), other)
    (way,) = result.attributions
    assert way.steps == []
    assert way.contributions == []
    assert way.verdict == "other asks the same question as A"
    assert {"name", "tags", "notes", "tpot_ms", "percentile"} <= set(APART)
    assert set(FIELDS) | set(APART) == set(Scenario.model_fields)


def test_a_verdict_names_every_step_with_its_share() -> None:
    result = of(scenario(), scenario(tp=2, context=[4000]))
    (way,) = result.attributions
    assert [step.fields for step in way.steps] == [["tp"], ["context"]]
    assert way.verdict.startswith("B takes ")
    assert "tp −" in way.verdict
    assert "context +" in way.verdict
    assert way.steps[0].before == {"tp": 1}
    assert way.steps[1].after == {"context": [4000]}


def test_labels_and_baseline() -> None:
    result = of(scenario(name="x"), scenario(name="x", tp=2), scenario(tp=4), baseline=1)
    assert [column.label for column in result.columns] == ["x", "x (2)", "C"]
    assert result.baseline == "x (2)"
    assert {way.other for way in result.attributions} == {"x", "C"}
    assert {way.baseline for way in result.attributions} == {"x (2)"}
    given = of(scenario(), scenario(tp=2), labels=["now", "then"])
    assert [column.label for column in given.columns] == ["now", "then"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"baseline": 2}, "baseline: 2 is no index; accepted: 0 to 1"),
        ({"labels": ["a"]}, "labels: 1 given; accepted: 2, one each"),
        ({"baseline": -1}, "greater than or equal to 0"),
        ({"usd_per_gpu_hour": {"one": 0.0}}, "greater than or equal to 0.000000001"),
    ],
)
def test_impossible_requests(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ComparisonRequest(scenarios=[scenario(), scenario()], **options)


def test_what_does_not_fit_is_neither_best_nor_in_the_pareto_set() -> None:
    small = {**gpu(4e12, "small"), "memory_bytes": 1e8}
    result = of(scenario(), scenario(gpu=small))
    assert [column.fits for column in result.columns] == [True, False]
    assert result.pareto.members == ["A"]
    assert result.winners == {}


def test_tables_hold_every_figure() -> None:
    result = of(scenario(), scenario(tp=2))
    rows = list(csv.reader(io.StringIO(to_csv(result))))
    assert tuple(rows[0]) == CSV_COLUMNS
    figures = [row for row in rows if row[0] == "figure"]
    assert len(figures) == 2 * len(FIGURES)
    (tpot,) = (row for row in figures if row[1] == "tpot_s" and row[3] == "B")
    assert float(tpot[5]) == figure(result, "tpot_s")[1]
    assert float(tpot[6]) == pytest.approx(float(tpot[5]) - (figure(result, "tpot_s")[0] or 0))
    attributed = [row for row in rows if row[0] == "attribution" and row[1] == "tpot_s"]
    assert [row[4] for row in attributed] == ["tp"]
    kernels = [row for row in rows if row[0] == "kernel"]
    assert sum(float(row[5]) for row in kernels) == pytest.approx(float(tpot[5]))
    text = to_markdown(result)
    for name in ("tpot_s", "gpus", "roofline_tpot_s", "max_batch"):
        assert f"| {name} (" in text
    assert "usd_per_hour" not in text
    assert "## From A to B" in text
    assert "Changed in this order: tp: 1 → 2." in text


def test_cells_of_a_sheet_are_no_formulas() -> None:
    result = of(replace_name("=SUM(A1)"), replace_name("+1"))
    cells = {cell for row in csv.reader(io.StringIO(to_csv(result))) for cell in row}
    assert "'=SUM(A1)" in cells
    assert "'+1" in cells
    assert "=SUM(A1)" not in cells


def replace_name(name: str) -> Scenario:
    return scenario(name=name, tp=1 if name.startswith("=") else 2)


@pytest.mark.parametrize(
    ("values", "value", "point"),
    [
        # Multiples of 2^(1 − 46) under one: exact for halves, close for tenths.
        ([1.0, 0.5], 0.5, 0.5),
        ([0.0], 123.0, 123.0),
        ([8.0], 3.0, 3.0),
    ],
)
def test_points_of_a_grid(values: list[float], value: float, point: float) -> None:
    grid = Grid.over(values)
    assert grid.snap(value) == point
    assert grid.snap(grid.snap(value)) == grid.snap(value)
    assert replace(grid, quantum=0.25).snap(0.3) == 0.25


@pytest.mark.parametrize(
    ("largest", "quantum"),
    # frexp(1) = 0.5·2¹, frexp(0.75) = 0.75·2⁰, frexp(3) = 0.75·2².
    [(1.0, 2.0**-45), (0.75, 2.0**-46), (3.0, 2.0**-44), (0.0, 1.0)],
)
def test_the_quantum_of_a_grid(largest: float, quantum: float) -> None:
    assert Grid.over([largest, -largest / 2]).quantum == quantum
    assert Grid.over([]).quantum == 1.0
