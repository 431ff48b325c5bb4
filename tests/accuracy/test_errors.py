"""Errors, coverage and choices on small made-up tables."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest

from planner.accuracy.choice import Choice, choices, rate_per_gpu
from planner.accuracy.coverage import covered, covered_rates, covered_sources
from planner.accuracy.holdout import Held
from planner.accuracy.report import as_json, errors, report
from planner.accuracy.scatter import MARGIN, WIDTH, scatter
from planner.accuracy.tables import (
    decodes,
    errors_of,
    flows,
    label,
    llama,
    serves,
    shares,
    sound,
    stats,
    table,
)
from planner.calibration.subject import Subject
from planner.runs.predict import Prediction
from planner.runs.rows import Row


@pytest.mark.parametrize(
    ("predicted", "measured", "median", "mean", "bias"),
    [
        # |1.1 − 1|, |0.8 − 1|, |1.0 − 1|; logs 0.0953, −0.2231, 0.
        ([110, 80, 100], [100, 100, 100], 0.1, 0.1, 0.0),
        ([200.0], [100.0], 1.0, 1.0, math.log(2)),
        ([50.0, 50.0], [100.0, 100.0], 0.5, 0.5, math.log(0.5)),
        ([100.0, 150.0], [100.0, 100.0], 0.25, 0.25, math.log(1.5) / 2),
    ],
)
def test_errors_by_hand(
    predicted: list[float], measured: list[float], median: float, mean: float, bias: float
) -> None:
    result = errors(predicted, measured)
    assert result.rows == len(predicted)
    assert result.median == pytest.approx(median)
    assert result.mean == pytest.approx(mean)
    assert result.bias == pytest.approx(bias)
    assert result.covered is None


def test_the_ninetieth_percentile_is_interpolated() -> None:
    """Eleven errors of 0 to 100%: the tenth of them is 90%."""
    result = errors([100 + 10 * i for i in range(11)], [100] * 11)
    assert result.p90 == pytest.approx(0.9)
    assert errors([1.0] * 4, [1.0] * 4, [True, True, False, True]).covered == 0.75


@pytest.mark.parametrize(
    ("logs", "expected"),
    # A log error of measured over predicted: −log(1.1) is a prediction 10% too long.
    [([-math.log(1.1)], [0.1]), ([math.log(2)], [0.5]), ([0.0], [0.0])],
)
def test_shares_of_log_errors(logs: list[float], expected: list[float]) -> None:
    assert shares(logs).tolist() == pytest.approx(expected)


def test_cells_of_a_table() -> None:
    """Predictions 10% too long, 20% too long and right: median 10, mean 10, bias +9.5% (log)."""
    cells = stats([-math.log(1.1), -math.log(1.2), 0.0])
    assert cells == "3 | 10.0% | 10.0% | 18.0% | +9.5%"
    assert stats([]) == "0 | – | – | – | –"
    text = table("slice", [("a", cells)])
    assert text.splitlines() == [
        "| slice | n | median | mean | P90 | bias |",
        "|---|---|---|---|---|---|",
        "| a | 3 | 10.0% | 10.0% | 18.0% | +9.5% |",
    ]
    assert (label("nothing"), label("gpu")) == ("within the fit", "one gpu left out")


def held(
    measured: tuple[float, float] = (100.0, 10.0),
    predicted: tuple[float, float] | None = None,
    fold: str = "a",
    doubt: str = "",
    mode: str = "",
    kind: str = "serving",
    queued: str = "",
    **inputs: str,
) -> Held:
    known = {
        "row": "1",
        "model": "m",
        "engine": "vllm",
        "isl": "1000",
        "osl": "101",
        "concurrency": "10",
        "gpus": "2",
    }
    names = ("ttft_ms", "tpot_ms")
    times = dict(zip(names, predicted or measured, strict=True))
    row = Row(kind, known | inputs, dict(zip(names, measured, strict=True)), {"queued": queued})
    prediction = Prediction(row="1", values=times, notes=())
    return Held(row, Subject({"mode": mode}), "gpu", fold, prediction, doubt)


def test_output_of_a_closed_loop() -> None:
    """10 clients, 101 tokens in 100 + 100·10 ms, on 2 GPUs: 10·101/1.1/2 tokens/s."""
    inputs = held().row.inputs
    assert rate_per_gpu(inputs, 100.0, 10.0) == pytest.approx(10 * 101 / 1.1 / 2)
    assert rate_per_gpu({**inputs, "gpus": "4"}, 100.0, 10.0) == pytest.approx(10 * 101 / 1.1 / 4)


def test_which_rows_are_in_which_table() -> None:
    assert serves(held())
    assert not serves(held(mode="bench"))
    assert flows(held())
    assert not flows(held(queued="1"))
    assert sound(held(kind="decode"))
    assert not sound(held(kind="decode", doubt="too fast"))
    assert decodes(held(kind="decode", doubt="too fast"))
    single = {"kind": "decode", "engine": "llama.cpp"}
    assert llama(held(**single, batch="1"))
    assert not llama(held(**single, batch="2"))
    assert not llama(held(kind="decode", engine="vllm", batch="1"))


def test_errors_of_a_quantity() -> None:
    rows = [held(predicted=(110.0, 10.0)), held(predicted=(100.0, 12.0), queued="1")]
    assert errors_of(rows, "tpot_ms", serves) == pytest.approx([0.0, math.log(10 / 12)])
    assert errors_of(rows, "tpot_ms", flows) == pytest.approx([0.0])
    assert errors_of(rows, "value", serves) == []


def test_coverage_is_of_the_other_folds() -> None:
    """Errors of one fold spread evenly over ±10%, those of the other lie at 0 or at 50%."""
    wide = [held(predicted=(100.0, 10.0 * math.exp(x))) for x in np.linspace(-0.1, 0.1, 21)]
    inside = [held(fold="b") for _ in range(10)]
    outside = [held(fold="b", predicted=(100.0, 15.0)) for _ in range(10)]
    assert covered(wide, "tpot_ms") is None
    both = covered([*wide, *inside, *outside], "tpot_ms")
    assert both is not None
    of_wide = covered([*wide, *outside], "tpot_ms")
    assert of_wide == 0.0
    of_inside = covered([*wide, *inside], "tpot_ms")
    # All ten at zero, and the one of the wide ones at zero.
    assert of_inside == pytest.approx(11 / 31)


def test_coverage_of_rates_follows_from_both_times() -> None:
    near = [held(predicted=(100.0 * f, 10.0 * f)) for f in (0.9, 0.95, 1.0, 1.05, 1.1)]
    exact = [held(fold="b") for _ in range(5)]
    far = [held(fold="b", predicted=(200.0, 20.0)) for _ in range(5)]
    assert covered_rates(near) is None
    some, none = covered_rates([*near, *exact]), covered_rates([*near, *far])
    assert some is not None
    assert none == 0.0
    # All five exact ones, and of the near ones that whose error is the exact ones' own.
    assert some == pytest.approx(6 / 10)


def test_a_choice_is_judged_by_what_was_measured() -> None:
    """Three runs at 100 + 100·x ms: the one predicted fastest is the second best measured."""
    rows = [
        held((100.0, 9.0), (100.0, 9.0)),
        held((100.0, 8.0), (100.0, 9.5)),
        held((100.0, 9.9), (100.0, 9.9)),
    ]
    result = choices(rows)
    assert {choice.limit_ms for choice in result} == {10.0, 15.0, 20.0, 30.0, 50.0, 100.0}
    reached = (100 + 100 * 8.0) / (100 + 100 * 9.0)
    assert result[0] == Choice("m", "1000", "101", 10.0, 3, pytest.approx(reached))


def test_fewer_than_three_runs_are_no_choice() -> None:
    rows = [held((100.0, x)) for x in (9.0, 9.5, 14.0)]
    limits = [choice.limit_ms for choice in choices(rows)]
    assert limits[0] == 15.0
    assert choices(rows[:2]) == []
    apart = [*rows[:2], held((100.0, 9.0), model="other")]
    assert choices(apart) == []
    assert choices([held(kind="decode") for _ in range(5)]) == []


def test_a_right_prediction_reaches_the_best() -> None:
    rows = [held((100.0, x)) for x in (5.0, 6.0, 7.0, 8.0)]
    assert {choice.reached for choice in choices(rows)} == {1.0}


def test_a_report_of_two_engines() -> None:
    rows = [held().row, held(engine="sglang").row]
    predictions = [
        Prediction("1", {"ttft_ms": 110.0, "tpot_ms": 10.0}, ()),
        Prediction("2", {"ttft_ms": 100.0, "tpot_ms": 20.0}, ()),
    ]
    lines = {(x.quantity, x.by, x.group): x.errors for x in report(rows, predictions)}
    assert lines["ttft_ms", "", "all"].median == pytest.approx(0.05)
    assert lines["tpot_ms", "engine", "sglang"].median == pytest.approx(1.0)
    assert lines["tpot_ms", "engine", "vllm"].median == 0.0
    assert lines["tpot_ms", "model", "m"].rows == 2


def test_intervals_of_a_report() -> None:
    inside = {"tpot_ms": 11.0, "tpot_p10_ms": 9.0, "tpot_p90_ms": 12.0}
    outside = {"tpot_ms": 11.0, "tpot_p10_ms": 10.5, "tpot_p90_ms": 12.0}
    rows = [held().row, held().row]
    lines = report(rows, [Prediction("1", inside, ()), Prediction("2", outside, ())])
    whole = next(x for x in lines if (x.quantity, x.by) == ("tpot_ms", ""))
    assert whole.errors.covered == 0.5


def test_refused_rows_are_listed_with_the_reason() -> None:
    rows = [held().row, held().row]
    predictions = [Prediction("1", {"tpot_ms": 10.0}, ()), Prediction("2", {}, ("gpu: unknown",))]
    result = as_json(rows, predictions, report(rows, predictions))
    assert (result["rows"], result["answered"]) == (2, 1)
    assert result["refused"] == [{"row": "2", "note": "gpu: unknown"}]


def test_a_scatter_places_points_on_logarithmic_axes() -> None:
    """From 1 to 100: 10 lies in the middle of either axis, 1 at the lower left corner."""
    text = scatter({"a": [(1.0, 1.0), (10.0, 10.0), (100.0, 100.0)]}, "Title", "ms")
    circles = re.findall(r'cx="([\d.]+)" cy="([\d.]+)" r="1.6"', text)
    span = WIDTH - 2 * MARGIN
    expected = [(MARGIN + span * f, WIDTH - MARGIN - span * f) for f in (0, 0.5, 1)]
    assert [(float(x), float(y)) for x, y in circles] == expected
    assert ">Title<" in text
    assert "measured [ms]" in text
    assert text.startswith("<svg ")
    assert text.endswith("</svg>\n")


def test_a_scatter_has_a_colour_and_a_name_for_every_group() -> None:
    text = scatter({"vllm": [(1.0, 2.0)], "sglang": [(3.0, 4.0)]}, "t", "ms")
    legend = re.findall(r'r="3.5" fill="(#\w+)"', text)
    assert len(set(legend)) == 2
    assert text.index(">sglang<") < text.index(">vllm<")


def test_coverage_of_sources_is_of_the_other_sources() -> None:
    """Two sources at 0, one at 50%: the pair makes an interval at 0, the others a wide one."""
    near = [held(fold=name) for name in ("a", "b") for _ in range(4)]
    far = [held(fold="c", predicted=(100.0, 15.0)) for _ in range(2)]
    # Of the near ones each lies inside what 0 and log(1/1.5) make; the far ones outside a point:
    # eight of ten runs, and two of three sources.
    assert covered_sources([*near, *far], "tpot_ms") == pytest.approx((8 / 10, 2 / 3))
    assert covered_sources(near, "tpot_ms") is None
    assert covered_sources([], "tpot_ms") is None
