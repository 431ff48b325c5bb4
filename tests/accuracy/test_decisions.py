"""Choices and numbers of GPUs on made-up groups of runs, and runs under their schedule."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from planner.accuracy.choice import KINDS, chosen, groups
from planner.accuracy.decisions import (
    REPLICAS,
    Decision,
    decisions,
    every_run_held,
    gpus_implied,
    gpus_needed,
    holds,
    spreads_of,
    summary,
)
from planner.accuracy.holdout import Held
from planner.accuracy.intervals import deciding
from planner.accuracy.schedules import (
    FEWEST,
    ROUNDS,
    Scheduled,
    compared,
    requests_of,
    schedules,
    whole,
)
from planner.calibration import current
from planner.calibration.subject import Subject
from planner.commands import held as printing
from planner.commands.validate import command
from planner.fitting.committed import committed_rows
from planner.plans.uncertainty import Spread
from planner.runs.predict import Prediction
from planner.runs.rows import Row

INPUTS = {
    "row": "1",
    "model": "m",
    "gpu": "g",
    "engine": "vllm",
    "engine_version": "1",
    "weight_format": "fp8",
    "isl": "1000",
    "osl": "101",
    "concurrency": "10",
    "gpus": "2",
    "tp": "2",
    "pp": "1",
    "attention_dp": "1",
    "moe_ep": "",
    "speculative": "",
    "source": "s",
}


def held(
    measured_ms: float, predicted_ms: float, fold: str = "a", queued: str = "", **inputs: str
) -> Held:
    """A run of 100 ms to the first token and so many between tokens."""
    row = Row(
        "serving",
        {**INPUTS, **inputs},
        {"ttft_ms": 100.0, "tpot_ms": measured_ms},
        {"queued": queued},
    )
    values = {"ttft_ms": 100.0, "tpot_ms": predicted_ms}
    return Held(row, Subject({"mode": ""}), "model", fold, Prediction("1", values))


def test_runs_that_differ_in_one_thing_form_a_group() -> None:
    """TP 2 and 4 of vLLM, TP 2 of SGLang, and vLLM at another load, which is alone."""
    rows = [
        held(10, 10),
        held(10, 10, tp="4", gpus="4"),
        held(10, 10, engine="sglang"),
        held(10, 10, concurrency="20"),
        held(10, 10, tp="8", source="other"),
    ]
    sizes = {kind: sorted(map(len, groups(rows, kind).values())) for kind in KINDS}
    assert sizes == {
        "split, engine or format": [3],
        "split alone": [2],
        "engine alone": [2],
        "format alone": [],
    }


def test_the_choice_is_that_of_the_predictions() -> None:
    """Predicted 9 ms on two GPUs is chosen over 10 ms, and was 12 ms: 1.1/1.3 of the best rate,
    request times being 100 + 100·10 and 100 + 100·12 ms."""
    rows = [held(10, 10), held(12, 9, engine="sglang")]
    (made,) = decisions(rows, "engine alone")
    assert made == Decision(options=2, reached=made.reached, held=None)
    assert made.reached == pytest.approx(1.1 / 1.3)


def test_per_gpu_counts_the_gpus() -> None:
    """Twice the GPUs for 9 instead of 10 ms a token is not better."""
    rows = [held(10, 10), held(9, 9, tp="4", gpus="4")]
    (made,) = decisions(rows, "split alone")
    assert made.reached == 1.0


def test_runs_that_queue_or_are_not_answered_are_left_out() -> None:
    unanswered = replace(held(9, 9, engine="trtllm"), prediction=Prediction("1", {}))
    rows = [held(10, 10), held(9, 9, engine="sglang", queued="1"), unanswered]
    assert decisions(rows, "engine alone") == []
    assert summary(rows, "engine alone") is None


def test_intervals_come_from_the_other_folds() -> None:
    """Fold b is 10% too fast everywhere, which is all that fold a knows, and the other way."""
    rows = [held(11, 10, "b") for _ in range(5)] + [held(10, 10, "a") for _ in range(5)]
    spreads = spreads_of(rows, rows)
    assert spreads["a"].tpot == pytest.approx((1.1, 1.1))
    assert spreads["a"].ttft == pytest.approx((1.0, 1.0))
    assert spreads["b"].tpot == pytest.approx((1.0, 1.0))
    # 100 + 100·11 ms instead of 100 + 100·10.
    assert spreads["a"].request == pytest.approx((12 / 11, 12 / 11))
    assert spreads_of(rows[:5], rows[:5]) == {}


def test_a_fold_without_errors_of_its_own_takes_those_of_all_others() -> None:
    """Fold c chose nothing: both others make its interval, each twice as many as it needs."""
    makers = [held(11, 10, "b"), held(10, 10, "a")]
    spreads = spreads_of(makers, [*makers, held(10, 10, "c")])
    assert sorted(spreads) == ["a", "b", "c"]
    low, high = spreads["c"].tpot
    assert low < 1.0 < 1.1 < high


def test_a_request_is_made_of_what_is_chosen() -> None:
    """Of each of three folds one of two is chosen; of two folds all four runs count."""
    rows = [
        held(ms, ms, fold, isl=fold, tp=tp)
        for fold in "abc"
        for ms, tp in ((10.0, "2"), (12.0, "4"))
    ]
    assert [one.row.inputs["tp"] for one in chosen(rows)] == ["2", "2", "2"]
    assert deciding(rows) == chosen(rows)
    assert deciding(rows[:4]) == rows[:4]


EVEN = Spread(ttft=(0.8, 1.25), tpot=(0.8, 1.25))


def test_gpus_of_a_demand() -> None:
    """A hundred replicas of two GPUs as predicted; times 0.8 and 1.25 as long take 80 and 125."""
    low, middle, high = gpus_needed(held(10, 10), EVEN)
    assert (low, middle, high) == (80 * 2, REPLICAS * 2, 125 * 2)


def test_gpus_follow_from_the_time_of_a_request_where_it_is_known() -> None:
    """The two times are off by 20% and 25% alone, their sum by 10%: 90 and 110 of a hundred."""
    whole = Spread(ttft=(0.8, 1.25), tpot=(0.8, 1.25), request=(0.9, 1.1))
    assert gpus_needed(held(10, 10), whole) == (90 * 2, REPLICAS * 2, 110 * 2)


@pytest.mark.parametrize(
    ("measured_ms", "gpus", "inside"),
    [
        # Request times of 1100 ms as predicted: 100 replicas of 2.
        (10.0, 200, True),
        # 100 + 100·12.4 = 1340 ms: 121.8 replicas, 122 whole ones.
        (12.4, 244, True),
        # 1400 ms: 127.3, 128 whole ones; the interval ends at 125.
        (13.0, 256, False),
        # 880 ms: 80; 800 ms: 72.7, 73 whole ones.
        (7.8, 160, True),
        (7.0, 146, False),
    ],
)
def test_whether_the_interval_holds_what_was_measured(
    measured_ms: float, gpus: int, inside: bool
) -> None:
    one = held(measured_ms, 10)
    assert gpus_implied(one) == gpus
    assert holds(one, EVEN) is inside
    assert holds(one, None) is None


def test_every_run_counts_where_no_group_does() -> None:
    """Two folds of three runs that agree in everything: no group, and every one of them within a
    whole replica of its interval."""
    rows = [held(ms, 10, fold) for fold in "ab" for ms in (9.9, 10.0, 10.1)]
    assert decisions(rows, "split alone") == []
    assert every_run_held(rows) == pytest.approx(1.0)  # of 100 replicas 99.1 are 100, too
    assert math.isnan(every_run_held(rows[:3]))


def test_summary_of_groups() -> None:
    """Three groups of two: two chosen well, one at 1.1/1.3 of the best."""
    rows = []
    for fold, (slow, fast) in {"a": (10, 10), "b": (10, 10), "c": (12, 9)}.items():
        rows += [held(10.01, 10.01, fold, isl=fold), held(slow, fast, fold, isl=fold, tp="4")]
    one = summary(rows, "split alone")
    assert one is not None
    assert one.groups == 3
    assert one.close == pytest.approx(2 / 3)
    assert one.median == 1.0
    assert 1.1 / 1.3 < one.worst_tenth < 1.0
    assert 0.0 <= one.gpus_held <= 1.0
    cells = printing.choice_cells("model", one)
    assert cells[:4] == ("one model", "split alone", "3", "67%")


@pytest.mark.parametrize(
    ("clients", "count"), [(1, FEWEST), (64, 640)], ids=["few clients", "many"]
)
def test_requests_of_a_benchmark(clients: int, count: int) -> None:
    """The nightly benchmark draws evenly from 0.8 to 1 of the nominal length, 0.9 on average."""
    row = held(10, 10, source="public nightly benchmark").row
    load = requests_of(row, 900.0, 90.0, clients)
    assert len(load) == count == max(FEWEST, ROUNDS * clients)
    assert load.isl.min() >= 800
    assert load.isl.max() <= 1000
    assert load.osl.mean() == pytest.approx(90, rel=0.03)
    assert not load.arrivals_s.any()
    # Elsewhere lengths are as stated, but for a little that keeps clients out of step.
    fixed = requests_of(held(10, 10).row, 1000.0, 100.0, clients)
    assert np.ptp(fixed.isl) <= 0.04 * 1000 + 1


def test_a_whole_request() -> None:
    """100 ms and 100 steps of 10 ms."""
    times = whole(held(10, 10).row, {"ttft_ms": 100.0, "tpot_ms": 10.0})
    assert times["e2e_ms"] == 1100.0


def test_measured_runs_under_their_schedule() -> None:
    """Every 150th committed run that does not queue, of the fit to all of them: closed form
    and simulation are within a quarter of each other in TPOT; both err as reported."""
    rows = [row for row in committed_rows("serving") if row.remarks.get("queued") != "1"]
    runs = list(schedules(rows[::150], current()))
    assert len(runs) == len(rows[::150])
    for run in runs:
        ratio = run.simulated["tpot_ms"] / run.closed_form["tpot_ms"]
        assert 0.8 < ratio < 1.25, run.row.inputs
    everything = {one.quantity: one for one in compared(runs) if one.of == "all"}
    assert everything["tpot"].simulated_median < 0.12
    assert everything["e2e"].closed_form_median < 0.12


def scheduled(engine: str, clients: str, closed: float, simulated: float) -> Scheduled:
    row = held(10, 10, engine=engine, concurrency=clients).row
    measured, *predicted = (
        {"ttft_ms": 100.0, "tpot_ms": tpot, "e2e_ms": 100 + 100 * tpot}
        for tpot in (10.0, closed, simulated)
    )
    return Scheduled(row, measured, *predicted)


def test_errors_by_engine_and_load() -> None:
    runs = [scheduled("vllm", "4", 11.0, 10.0), scheduled("vllm", "100", 8.0, 9.5)]
    lines = {(one.of, one.quantity): one for one in compared(runs)}
    assert lines["all", "tpot"].closed_form_mean == pytest.approx(0.15)
    assert lines["all", "tpot"].simulated_mean == pytest.approx(0.025)
    assert lines["vllm, 1 to 8 clients", "tpot"].closed_form_median == pytest.approx(0.1)
    assert lines["vllm, more than 64", "tpot"].simulated_median == pytest.approx(0.05)
    assert lines["all", "ttft"].simulated_mean == 0.0
    assert printing.schedule_cells(lines["all", "tpot"])[:4] == ("all", "2", "TPOT", "15.0%")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--choices", "--schedules"], "choices, schedules: given together"),
        (["--choices", __file__], "choices: not of ROWS_CSV"),
        (["--report", "x.md", __file__], "report: not of ROWS_CSV"),
    ],
)
def test_contradictions_are_refused(arguments: list[str], words: str) -> None:
    result = CliRunner().invoke(command, arguments)
    assert result.exit_code == 2
    assert words in result.output


class Fits:
    """Stands for the fits, which take minutes."""

    serving = 4

    def __init__(self, refit: object) -> None:
        assert refit is None
        self.rows = [
            held(10, 10, "a"),
            held(12, 9, "a", tp="4"),
            held(10, 10, "b", model="n"),
            held(11, 11, "b", model="n", tp="4"),
        ]

    def held(self, by: str, serving_only: bool) -> list[Held]:
        assert serving_only
        return [replace(one, by=by) for one in self.rows]


@pytest.mark.parametrize("as_json", [False, True])
def test_printed_choices(monkeypatch: pytest.MonkeyPatch, as_json: bool) -> None:
    monkeypatch.setattr("planner.accuracy.holdout.Holdout", Fits)
    monkeypatch.setattr("planner.fitting.refit.refit_committed", lambda: None)
    result = CliRunner().invoke(command, ["--choices", *(["--json"] if as_json else [])])
    assert result.exit_code == 0, result.output
    if as_json:
        content: dict[str, dict[str, Any]] = json.loads(result.output)
        assert list(content) == ["config", "model", "gpu"]
        assert content["model"]["groups"][0]["groups"] == 2
        assert math.isclose(content["model"]["groups"][0]["close"], 0.5)
        assert 0 <= content["model"]["every_run_held"] <= 1
    else:
        assert "within 3%" in result.output
        assert "50%" in result.output
