"""Rows of measured runs as parts of a fit: times, weights and doubts, on rows made by hand.

Qwen2.5-7B on an H100 reads 15.2 GB of weights in bf16 at 3.35e12 byte/s: no step is shorter than
4.5 ms.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.fitting.decode_rows import EARLY, FASTEST, DecodeRows
from planner.fitting.kernel_rows import Samples, add_samples
from planner.fitting.own_rows import FEW_REQUESTS, TTFT_WEIGHT, OwnRows, weight_of
from planner.fitting.own_solver import MOST, SIGMA, solve
from planner.fitting.serving_rows import LATE, SLOW_START, ServingRows, States
from planner.hw import MissingFigure, get_accelerator
from planner.roofline import Array
from planner.runs.rows import Row
from planner.step.timing import Item
from tests.runs.by_hand import row
from tests.step.machine import machine


def decode(metric: str, value: float, batch: str = "1", **inputs: str) -> Row:
    usual = {"batch": batch, "isl": "128", "osl": "101", "metric": metric}
    return row("decode", usual | inputs, {"value": value})


def serving(
    ttft_ms: float, tpot_ms: float, remarks: dict[str, str] | None = None, **inputs: str
) -> Row:
    usual = {"isl": "1000", "osl": "100", "concurrency": "4"}
    return row("serving", usual | inputs, {"ttft_ms": ttft_ms, "tpot_ms": tpot_ms}, remarks)


@pytest.mark.parametrize(
    ("metric", "value", "batch", "seconds"),
    [
        ("tpot_ms", 12.0, "8", 0.012),
        # 400 tokens a second over 8 sequences: each of them waits 20 ms.
        ("decode_tokens_per_s", 400.0, "8", 0.02),
        ("decode_tokens_per_s", 50.0, "1", 0.02),
        ("request_latency_s", 2.5, "8", 2.5),
    ],
)
def test_the_time_of_a_row(metric: str, value: float, batch: str, seconds: float) -> None:
    rows = DecodeRows.of([decode(metric, value, batch)])
    assert rows.seconds.tolist() == pytest.approx([seconds])


def test_a_row_faster_than_its_weights_are_read_is_doubted() -> None:
    """Below 0.85 of the roofline's time: 4.54 ms of weights are a limit of 3.9 ms."""
    rows = DecodeRows.of([decode("tpot_ms", ms) for ms in (3.5, 4.2, 20.0)])
    assert rows.doubts == [EARLY, "", ""]
    assert rows.weight[0] == 0.0
    assert rows.weight[1] > 0
    limit_ms = FASTEST * 15.23e9 / 3.35e12 * 1e3
    assert 3.5 < limit_ms < 4.2


def test_a_whole_request_has_its_steps_to_read_the_weights_in() -> None:
    """100 steps after the first token take 0.454 s at least: 0.3 s are doubted, 0.6 s are not."""
    rows = DecodeRows.of([decode("request_latency_s", s) for s in (0.3, 0.6)])
    assert rows.doubts == [EARLY, ""]


def test_suspect_rows_and_large_sets_weigh_less() -> None:
    """Ten rows of one set weigh as five; one marked as suspect weighs nothing."""
    many = [decode("tpot_ms", 20.0) for _ in range(10)]
    rows = DecodeRows.of(many)
    assert rows.weight.tolist() == pytest.approx([0.5] * 10)
    suspect = Row("decode", many[0].inputs, {"value": 20.0}, {"suspect": "1"})
    doubted = DecodeRows.of([suspect, decode("tpot_ms", 90.0, gpu="l4")])
    assert doubted.weight.tolist() == [0.0, 1.0]
    assert "suspect" in doubted.doubts[0]


def test_rows_of_nothing_known_are_left_out() -> None:
    assert len(DecodeRows.of([decode("tpot_ms", 20.0, model="nobody/none")]).rows) == 0
    assert len(ServingRows.of([serving(100, 20, gpu="none")]).rows) == 0


def test_the_running_batch_that_times_imply() -> None:
    """4 clients of 100·20 ms in 2.1 s run 3.8 at once; in 3 ms no weights are read."""
    rows = ServingRows.of([serving(100, 20), serving(100, 3.0)])
    assert rows.early.tolist() == [False, True]
    assert rows.weight[1] == 0.0


def test_what_queues_has_no_weight() -> None:
    rows = ServingRows.of([serving(100, 20), serving(9000, 20, {"queued": "1"})])
    assert rows.queued.tolist() == [False, True]
    assert rows.weight.tolist() == [1.0, 0.0]
    assert rows.measured("ttft_ms").tolist() == [0.1, 9.0]
    assert rows.mixes.tolist() == [True, True]
    assert rows.in_step.tolist() == [False, False]


def states(own_s: float, queued: float, count: int) -> States:
    fields = {name: np.zeros(count) for name in ("running", "decode_s", "bunched_s", "held")}
    return States(
        **fields,
        queued=np.full(count, queued),
        own_s=np.full(count, own_s),
        queue_s=np.zeros(count),
    )


@pytest.mark.parametrize(
    ("ttft_ms", "queued", "doubt"),
    [
        # A prompt of 50 ms waits at most for those of all 4 clients: 250 ms; 625 ms are 2.5 times.
        (600, 0.0, ""),
        (650, 0.0, LATE),
        (650, 1.0, ""),  # the pool is full: it waits for room
    ],
)
def test_a_wait_longer_than_all_prompts_take(ttft_ms: float, queued: float, doubt: str) -> None:
    rows = ServingRows.of([serving(ttft_ms, 20)])
    assert rows.doubts(states(0.05, queued, 1)) == [doubt]


def test_runs_of_the_same_prompts_begin_alike() -> None:
    """Those that differ in their outputs alone: 1.5 times the least of 100 ms is too much."""
    runs = [serving(ttft, 20, osl=osl) for ttft, osl in ((100, "50"), (149, "100"), (151, "200"))]
    other = serving(400, 20, isl="4000")
    rows = ServingRows.of([*runs, other])
    assert rows.slow_start.tolist() == [False, False, True, False]
    assert rows.doubts(states(0.5, 0.0, 4)) == ["", "", SLOW_START, ""]


def samples(seconds: list[float], computes: tuple[str, ...] = ("bf16",)) -> Samples:
    """2e12 FLOPs and 1e9 bytes in each item."""
    figures = np.tile(np.array([2e12, 1e9, 3.0, 4.0]), (len(computes), len(seconds), 1))
    items = tuple(Item("gemm" if one else "all_reduce") for one in computes)
    return Samples("h100-sxm5", "vllm", "", items, computes, figures, np.array(seconds))


def test_a_kernel_asks_of_the_device_and_a_collective_of_its_link() -> None:
    """989.4e12 FLOP/s and 3.35e12 byte/s; 450e9 byte/s of NVLink, one direction."""
    h100 = get_accelerator("h100-sxm5")
    features = samples([1.0], ("bf16", "")).features(h100)
    assert features.compute_s[:, 0] == pytest.approx([2e12 / 989.4e12, 0.0], rel=1e-3)
    assert features.memory_s[:, 0] == pytest.approx([1e9 / 3.35e12, 1e9 / 450e9], rel=1e-3)
    assert (features.launches == 3.0).all()
    assert (features.visits == 4.0).all()
    with pytest.raises(MissingFigure, match="has no link bandwidth on record; accepted: tp=1"):
        samples([1.0], ("",)).features(machine(link=None))


def test_a_set_of_samples_weighs_as_one_row() -> None:
    rows: list[tuple[Any, ...]] = []
    design = SimpleNamespace(add=lambda *one, **_: rows.append(one))
    times, weights = add_samples(cast("Any", design), [samples([1.0, 2.0]), samples([3.0])], 10)
    assert times.tolist() == [1.0, 2.0, 3.0]
    assert weights.tolist() == [0.5, 0.5, 1.0]
    assert [one[4].tolist() for one in rows] == [[10, 11], [12]]
    assert [array.tolist() for array in add_samples(cast("Any", design), [], 0)] == [[], []]


@pytest.mark.parametrize(
    ("name", "remarks", "weight"),
    [
        # 320 requests where none are told: 320/352.
        ("tpot_ms", {}, 10 / 11),
        ("tpot_ms", {"requests": str(FEW_REQUESTS)}, 0.5),
        ("tpot_ms", {"requests": "96"}, 0.75),
        ("ttft_ms", {"requests": "32"}, TTFT_WEIGHT / 2),
        ("ttft_ms", {"requests": "32", "queued": "1"}, 0.0),
        ("tpot_ms", {"requests": "32", "queued": "1"}, 0.5),
    ],
)
def test_what_a_figure_of_one_s_own_weighs(
    name: str, remarks: dict[str, str], weight: float
) -> None:
    assert weight_of(serving(100, 20, remarks), name) == pytest.approx(weight)


def test_a_time_of_nothing_weighs_nothing() -> None:
    assert weight_of(serving(100, 0.0), "tpot_ms") == 0.0


class Scaled:
    """Rows of one unknown that all times are in proportion to, at 1 s where it is nought."""

    def __init__(self, measured: list[float], deviation: float) -> None:
        self.measured = np.array(measured)
        self.deviation = np.array([deviation])
        self.unknowns = [(0, "all")]

    def slopes(self, theta: Array) -> tuple[Array, Array]:
        logs = np.repeat(theta, len(self.measured), axis=1)
        return logs, np.ones((len(theta), len(self.measured), 1))


def solved(measured: list[float], deviation: float = 0.3, weight: float = 1.0) -> float:
    rows = cast("OwnRows", Scaled(measured, deviation))
    return float(solve(rows, np.full((1, len(measured)), weight))[0, 0])


@pytest.mark.parametrize("rows", [1, 2, 10])
def test_few_rows_move_a_factor_by_the_ratio_of_variances(rows: int) -> None:
    """n rows of error σ against a prior of deviation s move a log factor by n·s²/(n·s² + σ²).

    5% is well within the knee of the loss.
    """
    wanted = np.log(1.05)
    share = rows * 0.3**2 / (rows * 0.3**2 + SIGMA**2)
    assert solved([1.05] * rows) == pytest.approx(share * wanted, rel=0.02)


def test_a_lone_outlier_pulls_with_its_root() -> None:
    agreeing = solved([1.0] * 9)
    assert agreeing == pytest.approx(0.0, abs=1e-6)
    pulled = solved([1.0] * 9 + [20.0])
    mean = np.log(20) / 10
    assert 0 < pulled < mean / 3


def test_factors_have_bounds() -> None:
    """About five times either way, whatever is measured."""
    assert solved([1e6] * 500, deviation=5.0) == pytest.approx(MOST)
    assert solved([1e-6] * 500, deviation=5.0) == pytest.approx(-MOST)


def test_rows_without_weight_do_not_count() -> None:
    assert solved([3.0] * 5, weight=0.0) == 0.0
    rows = cast("OwnRows", Scaled([1.0, 1.05], 0.3))
    first, second, both = solve(rows, np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]))[:, 0]
    assert first == pytest.approx(0.0, abs=1e-6)
    assert first < both < second


@settings(max_examples=25, deadline=None)
@given(st.lists(st.floats(0.5, 2.0), min_size=1, max_size=6), st.floats(0.05, 1.0))
def test_a_factor_lies_between_one_and_the_farthest_row(
    measured: list[float], deviation: float
) -> None:
    low, high = min(0.0, *np.log(measured)), max(0.0, *np.log(measured))
    assert low - 1e-3 <= solved(measured, deviation) <= high + 1e-3
