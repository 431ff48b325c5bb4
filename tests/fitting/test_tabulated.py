"""Serving rows read off curves, against the same rows evaluated one deployment at a time."""

from __future__ import annotations

import numpy as np
import pytest

from planner.calibration import shipped
from planner.errors import InvalidInput
from planner.fitting.own import refit
from planner.fitting.own_rows import OwnRows
from planner.fitting.scaled import PHASES, ScaledServing, scaled
from planner.fitting.tabulated import NODES, SPANS, Tabulated
from planner.runs.rows import INPUTS, Row
from planner.runs.setup import setup

BASE = dict.fromkeys(INPUTS["serving"], "") | {
    "engine": "vllm",
    "engine_version": "0.19.0",
    "gpu": "h100-sxm5",
    "model": "Qwen/Qwen3-8B",
    "weight_format": "bf16",
    "isl": "1024",
    "osl": "512",
    "tp": "1",
    "gpus": "1",
    "pp": "1",
    "attention_dp": "1",
}
RUNS = (
    {"concurrency": "1"},
    {"concurrency": "24"},
    {"concurrency": "512"},
    {"concurrency": "64", "isl": "20000", "osl": "32"},
    {"concurrency": "300", "isl": "64", "osl": "4"},
    {"concurrency": "128", "tp": "4", "gpus": "4", "model": "openai/gpt-oss-120b"},
    {"concurrency": "96", "tp": "2", "gpus": "8", "attention_dp": "4", "weight_format": "fp8"},
    {"concurrency": "48", "engine": "trt-llm", "engine_version": ""},
)


def row(number: int, **inputs: str) -> Row:
    ran = BASE | inputs | {"row": str(number)}
    return Row("serving", ran, {"ttft_ms": 200.0, "tpot_ms": 20.0}, {})


ROWS = [row(number, **run) for number, run in enumerate(RUNS)]


@pytest.fixture(scope="module")
def parts() -> list[ScaledServing]:
    """Each run on its own."""
    made = [scaled(setup(one).deployment, [one], shipped()) for one in ROWS]
    return [part for part in made if isinstance(part, ScaledServing)]


@pytest.mark.parametrize("scales", [(1.0, 1.0, 1.0), (0.6, 1.7, 1.2), (2.5, 0.4, 0.9)])
def test_curves_give_what_the_evaluator_gives(
    parts: list[ScaledServing], scales: tuple[float, float, float]
) -> None:
    together = Tabulated(parts).predict(np.tile(scales, (1, len(parts), 1)))
    for name in ("ttft_ms", "tpot_ms"):
        alone = [part.predict(np.array([scales]))[name][0, 0] for part in parts]
        assert together[name][0] == pytest.approx(alone, rel=3e-3)


def test_each_row_has_scales_of_its_own(parts: list[ScaledServing]) -> None:
    table, ones = Tabulated(parts), np.ones((1, len(parts), len(PHASES)))
    changed = ones.copy()
    changed[0, 2, :2] = 1.5
    before, after = (table.predict(each)["tpot_ms"][0] for each in (ones, changed))
    assert np.delete(after, 2) == pytest.approx(np.delete(before, 2), rel=1e-12)
    assert after[2] == pytest.approx(1.5 * before[2], rel=1e-2)  # steps and prompts alike


def test_curves_meet_the_evaluator_at_their_nodes(parts: list[ScaledServing]) -> None:
    table = Tabulated(parts)
    for share in (0, NODES // 2, NODES, SPANS * NODES):
        span = min(share // NODES, SPANS - 1)
        width = table.bounds[span + 1] - table.bounds[span]
        running = np.exp(table.bounds[span] + (share / NODES - span) * width)
        figures = table.at(running[None])[:, 0]
        for place, part in enumerate(parts):
            exact = part.curves(running[None, place : place + 1])[0][:, 0, 0]
            assert figures[:, place] == pytest.approx(exact, rel=1e-9)


def test_slopes_are_those_of_the_rows_themselves() -> None:
    several = [one for one in ROWS if one.inputs["engine"] == "vllm"]
    deployments = [setup(one).deployment for one in several]
    rows = OwnRows(several, deployments, shipped())
    theta = np.zeros((1, len(rows.unknowns)))
    logs, slopes = rows.slopes(theta)
    assert logs == pytest.approx(np.log(rows.predict(theta)), abs=3e-3)
    step = 0.05
    for unknown in range(0, len(rows.unknowns), 5):
        moved = theta.copy()
        moved[0, unknown] += step
        difference = (np.log(rows.predict(moved)) - np.log(rows.predict(theta))) / step
        assert slopes[0, :, unknown] == pytest.approx(difference[0], abs=0.05)


def test_rows_without_a_finite_time_are_left_out_by_name() -> None:
    impossible = row(7, concurrency="4", isl="1e300")
    fit = refit([ROWS[1], impossible, ROWS[2]], shipped())
    assert fit.rows == 2
    assert fit.notes == ("row 7: no finite time is predicted for it",)
    with pytest.raises(InvalidInput, match="no row can be predicted"):
        refit([impossible], shipped())
