"""Sources of runs: their habits, a user's question, and the interval of a set-up of one's own."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from planner.accuracy.holdout import Held
from planner.accuracy.intervals import source_interval
from planner.calibration import shipped
from planner.calibration.subject import Subject
from planner.fitting.committed import committed_rows
from planner.runs.harness import as_a_user_asks, habits, harness_of
from planner.runs.predict import Prediction
from planner.runs.rows import Row
from planner.runs.setup import setup

FIRST = committed_rows("serving")[0]


def row(source: str, engine: str = "sglang", clients: int = 8) -> Row:
    inputs = {**FIRST.inputs, "source": source, "engine": engine, "concurrency": str(clients)}
    return replace(FIRST, inputs=inputs | {"isl": "1000", "osl": "500"})


def test_habits_are_those_of_a_benchmark_and_engine() -> None:
    nightly = "public nightly benchmark"
    rows = [row(nightly), row(nightly, clients=16), row(nightly, "vllm"), row("mine")]
    assert np.asarray(habits(rows).poll).tolist() == [10, 30, 1, 1]
    ranks = habits([row(nightly, "trtllm"), row(nightly), row("mine", "trtllm")]).rank_wait
    assert np.asarray(ranks).tolist() == [60, 0, 0]


def test_a_user_asks_with_mean_lengths_and_says_no_source() -> None:
    user = as_a_user_asks(row("public nightly benchmark"))
    # Drawn evenly from 0.8 to 1 of the nominal length.
    assert (user.inputs["isl"], user.inputs["osl"]) == ("900", "450")
    assert harness_of(user).tuned is False
    assert setup(user).deployment.subject.tags["setup"] == "default"
    assert setup(row("vendor run")).deployment.subject.tags["setup"] == "tuned"


def held(source: str, off: float) -> Held:
    """A run that took exp(off) times as long as predicted."""
    measured = {"tpot_ms": float(10 * np.exp(off))}
    prediction = Prediction("1", {"tpot_ms": 10.0})
    run = Row("serving", FIRST.inputs, measured, {})
    return Held(run, Subject({}), "user", source, prediction)


def test_the_interval_of_a_further_source_by_hand() -> None:
    # Medians 0 and 0.2: m = 0.1, τ² = 0.02, (1 + ½)·τ² = 0.03; t of one degree at 0.9 is 3.0777.
    rows = [held("one", 0.0), held("other", 0.2)]
    reach = 3.0777 * 0.03**0.5
    ends = [np.exp(0.1 - reach), np.exp(0.1 + reach)]
    assert source_interval(rows, "tpot_ms") == pytest.approx(ends, rel=1e-3)
    assert source_interval(rows[:1], "tpot_ms") == []


def test_a_set_up_of_ones_own_is_no_surer_than_a_source_left_out() -> None:
    intervals = shipped().intervals
    known = setup(row("public nightly benchmark", "vllm")).deployment.subject
    own = Subject({**known.tags, "source": ""})
    least, most = intervals.sources["tpot"]
    low, high = intervals.of_case("tpot", own)
    assert low <= least
    assert high >= most
    inner = intervals.of_case("tpot", known)
    assert low <= inner[0] < 1 < inner[1] <= high
    assert "source left out" in intervals.described(own)
    assert "source left out" not in intervals.described(known)
