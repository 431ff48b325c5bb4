"""Arrays kept between blocks hold the same bits as new ones, and no more than a block's."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from planner import Scenario
from planner.calibration import Speculation
from planner.deployment import Deployment, deployment_of
from planner.plans.columns import grid_columns
from planner.step.buffers import Buffers, fresh, prefixed
from planner.step.timing import BOUNDS

BATCHES, CONTEXTS = np.array([1.0, 7.0, 64.0, 2000.0]), np.array([0.0, 500.0, 1e5])

DEPLOYMENTS: dict[str, dict[str, Any]] = {
    "dense": {"model": "meta-llama/Llama-3.1-70B-Instruct", "gpu": "h100-sxm5", "tp": 4},
    "experts": {"model": "deepseek-ai/DeepSeek-V3", "gpu": "h200-sxm", "tp": 8},
    "attention ranks": {
        "model": "deepseek-ai/DeepSeek-V3",
        "gpu": "h200-sxm",
        "tp": 8,
        "ep": 8,
        "attention_dp": 8,
    },
    "stages": {"model": "meta-llama/Llama-3.1-8B-Instruct", "gpu": "l4", "pp": 2},
}


def deployment(name: str) -> Deployment:
    return deployment_of(Scenario(**DEPLOYMENTS[name]))


@pytest.mark.parametrize("name", DEPLOYMENTS)
@pytest.mark.parametrize("speculation", [None, Speculation(3, 2.5), Speculation(0, 1.0)])
def test_a_block_in_kept_arrays_has_the_same_bits(
    name: str, speculation: Speculation | None
) -> None:
    one = replace(deployment(name), speculation=speculation)
    buffers = Buffers()
    grid_columns(one, 1, BATCHES + 5, CONTEXTS + 9, buffers)
    again = grid_columns(one, 3, BATCHES, CONTEXTS, buffers)
    new = grid_columns(one, 3, BATCHES, CONTEXTS)
    assert list(again) == list(new)
    for column, values in new.items():
        assert again[column].dtype == values.dtype, column
        assert again[column].tobytes() == values.tobytes(), column


def test_the_arrays_of_a_block_are_apart() -> None:
    """No figure is written over another one of the same block."""
    figures = grid_columns(deployment("experts"), 1, BATCHES, CONTEXTS, Buffers())
    names = list(figures)
    for i, one in enumerate(names):
        for other in names[i + 1 :]:
            assert not np.shares_memory(figures[one], figures[other]), (one, other)


def test_the_next_block_overwrites_and_takes_no_more_memory() -> None:
    one, buffers = deployment("dense"), Buffers()
    first = grid_columns(one, 1, BATCHES, CONTEXTS, buffers)
    seconds = first["tpot_p50_s"].copy()
    size = buffers.nbytes
    second = grid_columns(one, 1, 2 * BATCHES, CONTEXTS, buffers)
    assert np.shares_memory(first["tpot_p50_s"], second["tpot_p50_s"])
    assert (first["tpot_p50_s"] > seconds).all()
    assert buffers.nbytes == size


def test_arrays_grow_with_a_larger_block_and_serve_a_smaller_one() -> None:
    buffers = Buffers()
    small = buffers.shaped((2, 3))("x", float)
    large = buffers.shaped((4, 5))("x", float)
    after = buffers.shaped((3, 2))("x", float)
    assert small is not None
    assert large is not None
    assert after is not None
    assert (small.shape, large.shape, after.shape) == ((2, 3), (4, 5), (3, 2))
    assert np.shares_memory(large, after)
    assert not np.shares_memory(small, large)
    assert buffers.nbytes == 20 * 8


def test_names_and_types_have_arrays_of_their_own() -> None:
    buffers = Buffers()
    into = buffers.shaped((4,))
    assert fresh("x") is None
    for other in (into("y", float), into("x", np.bool_), prefixed(into, "draft ")("x", float)):
        assert other is not None
        assert not np.shares_memory(into("x", float), other)
    assert buffers.nbytes == 3 * 4 * 8 + 4


@pytest.mark.parametrize("name", DEPLOYMENTS)
def test_the_bound_of_a_point_is_the_first_of_the_largest_times(name: str) -> None:
    points = deployment(name).step.at(BATCHES[:, None], CONTEXTS)
    assert (points.bound_codes == points.bounds_s.argmax(axis=0)).all()
    assert points.bounds_s.shape == (len(BOUNDS), 4, 3)
