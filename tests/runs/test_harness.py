"""How published runs were loaded: lengths as their benchmark drew them, arrivals, doubts."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from planner.fitting.committed import committed_rows
from planner.fitting.serving_rows import SLOW_START, ServingRows
from planner.runs.harness import harness_of, mean_lengths
from planner.runs.rows import Row
from planner.runs.setup import setup


def row_from(source: str) -> Row:
    found = committed_rows("serving")[0]
    return replace(found, inputs={**found.inputs, "source": source, "isl": "1000", "osl": "500"})


NIGHTLY, VENDOR, OTHER = (row_from(s) for s in ("public nightly benchmark", "vendor run", "mine"))


def test_mean_lengths_are_those_drawn() -> None:
    # InferenceMAX draws lengths evenly from 0.8 to 1 of the nominal one (RANDOM_RANGE_RATIO 0.8).
    isl, osl = mean_lengths([NIGHTLY, VENDOR, OTHER])
    assert isl.tolist() == [900, 1000, 1000]
    assert osl.tolist() == [450, 500, 500]


def test_only_runs_of_equal_lengths_arrive_in_step() -> None:
    assert [harness_of(r).arrivals for r in (NIGHTLY, VENDOR, OTHER)] == ["", "bunched", ""]
    assert setup(VENDOR).deployment.subject.tags["arrivals"] == "bunched"
    assert setup(OTHER).deployment.subject.tags["arrivals"] == ""


def test_a_start_far_slower_than_that_of_the_same_prompts_is_doubted() -> None:
    def run(number: str, osl: str, ttft_ms: float) -> Row:
        inputs = {**OTHER.inputs, "row": number, "osl": osl, "concurrency": "8"}
        return Row("serving", inputs, {"ttft_ms": ttft_ms, "tpot_ms": 20.0}, {})

    rows = ServingRows.of(
        [run("1", "8192", 100.0), run("2", "1024", 149.0), run("3", "512", 151.0)]
    )
    assert rows.slow_start.tolist() == [False, False, True]


def test_the_doubtful_are_named_in_the_report_and_not_in_the_fit_of_ttft() -> None:
    rows = [r for r in committed_rows("serving") if not r.inputs["speculative"]]
    llama = [r for r in rows if "70B" in r.inputs["model"] and r.inputs["engine"] == "trtllm"]
    found = ServingRows.of(llama)
    # 1,024 tokens in and out at TP 1 to 4: twenty decode steps late, see docs/ACCURACY.md.
    assert int(found.slow_start.sum()) == 46
    assert {llama[i].inputs["osl"] for i in np.flatnonzero(found.slow_start)} == {"1024"}
    assert SLOW_START in found.doubts(states_of(found))


def states_of(rows: ServingRows):
    from planner.calibration import shipped

    return rows.states(shipped())


def test_rows_that_queue_have_no_weight() -> None:
    rows = ServingRows.of([r for r in committed_rows("serving") if r.remarks["queued"] == "1"][:9])
    assert rows.weight == pytest.approx(np.zeros(9))
