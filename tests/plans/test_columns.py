"""Columns of a plan, of a sweep and of a point, by hand and against each other.

The deployment is the small model of `tests.step.machine` on its machine of round numbers, on the
pure roofline: 301,568 weights a token, 1 TFLOP/s, 10 GB/s; a cached token is 256 bytes and 1,024
FLOPs.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner import Scenario, plan
from planner.deployment import Deployment, deploy
from planner.plans.columns import columns, grid_columns
from planner.plans.sweep import COLUMNS, SweepRequest, rows_of, sweep
from planner.plans.targets import largest, largest_batch, percentile_factor
from planner.step.parallel import Sharding
from planner.step.timing import BOUNDS, Efficiency
from tests.step.machine import DENSE, machine

WEIGHTS, CACHED_BYTES, CACHED_FLOPS = 301_568, 256, 1_024


def on_the_roof(**split: int) -> Deployment:
    deployment = deploy(DENSE, machine(), Sharding(**split))
    ideal = Efficiency.ideal(len(deployment.step.items))
    return replace(deployment, step=deployment.step.reaching(ideal))


def figures(batch: float, context: float, replicas: int = 1, **split: int) -> dict[str, Any]:
    deployment = on_the_roof(**split)
    passes = deployment.passes(batch, context)
    return columns(deployment, replicas, passes, np.asarray(batch))


def test_figures_of_a_memory_bound_point() -> None:
    """Batch 2 at 1000 tokens: 603,136 + 512,000 bytes take 111.5 µs; the glue of norms 0.1 µs.

    4 layers of 64 values of two bytes a sequence at 10 GB/s is the glue: 0.1024 µs for two.
    """
    found = figures(2.0, 1000.0)
    moved, flops = 2 * WEIGHTS + 2 * 1000 * CACHED_BYTES, 2 * (2 * WEIGHTS + 1000 * CACHED_FLOPS)
    seconds = moved / 1e10
    glue = 2 * 4 * 64 * 2 / 1e10
    assert found["flops"] == flops
    assert found["bytes"] == moved
    assert found["arithmetic_intensity"] == pytest.approx(flops / moved)
    assert found["roofline_tpot_s"] == pytest.approx(seconds)
    assert found["tpot_p50_s"] == pytest.approx(seconds + glue)
    assert found["tokens_per_s"] == pytest.approx(2 / (seconds + glue))
    assert found["tokens_per_s_per_user"] == pytest.approx(1 / (seconds + glue))
    assert found["mbu"] == pytest.approx(seconds / (seconds + glue))
    assert found["mfu"] == pytest.approx(flops / 1e12 / (seconds + glue))
    assert BOUNDS[int(found["bound"])] == "memory"


def test_figures_of_a_compute_bound_point() -> None:
    """Batch 500 without cache: 500·603,136 FLOPs take 301.6 µs, the traffic 60.3."""
    found = figures(500.0, 0.0)
    seconds = 500 * 2 * WEIGHTS / 1e12
    assert found["roofline_tpot_s"] == pytest.approx(seconds)
    assert BOUNDS[int(found["bound"])] == "compute"
    assert found["mfu"] == pytest.approx(seconds / float(found["tpot_p50_s"]))
    assert found["mbu"] == pytest.approx(2 * WEIGHTS / 1e10 / float(found["tpot_p50_s"]))


@pytest.mark.parametrize(
    ("split", "gpus"), [({}, 1), ({"tp": 2}, 2), ({"pp": 2}, 2), ({"attention_dp": 4}, 4)]
)
def test_rates_per_gpu_and_replica(split: dict[str, int], gpus: int) -> None:
    one, three = figures(8.0, 100.0, 1, **split), figures(8.0, 100.0, 3, **split)
    assert one["tokens_per_s_per_gpu"] * gpus == pytest.approx(one["tokens_per_s"])
    for name in ("tokens_per_s", "tokens_per_s_p10", "tokens_per_s_p90"):
        assert three[name] == pytest.approx(3 * one[name])
    for name in set(one) - {"tokens_per_s", "tokens_per_s_p10", "tokens_per_s_p90"}:
        assert three[name] == one[name]


@given(
    st.lists(st.integers(1, 500), min_size=1, max_size=5),
    st.lists(st.integers(0, 3000), min_size=1, max_size=5),
)
@settings(max_examples=25, deadline=None)
def test_a_grid_is_its_points(batches: list[int], contexts: list[int]) -> None:
    deployment = on_the_roof(tp=2)
    grid = grid_columns(deployment, 2, np.array(batches, float), np.array(contexts, float))
    for (i, batch), (j, context) in product(enumerate(batches), enumerate(contexts)):
        point = columns(deployment, 2, deployment.passes(batch, context), np.asarray(float(batch)))
        for name, value in point.items():
            cell = np.broadcast_to(grid[name], (len(batches), len(contexts)))[i, j]
            assert cell == pytest.approx(float(value), rel=1e-12), name
        assert grid["fits"][i, j] == (batch <= deployment.memory.max_batch(float(context)))


def test_intervals_stay_above_the_roofline_and_in_order() -> None:
    deployment = deploy(DENSE, machine(), Sharding())
    batches = np.array([1.0, 10.0, 100.0, 1000.0])
    found = grid_columns(deployment, 1, batches, np.array([0.0, 500.0]))
    assert (found["tpot_p10_s"] >= found["roofline_tpot_s"]).all()
    assert (found["tpot_p10_s"] <= found["tpot_p50_s"]).all()
    assert (found["tpot_p50_s"] <= found["tpot_p90_s"]).all()
    assert (found["tokens_per_s_p10"] <= found["tokens_per_s"]).all()
    assert (found["tokens_per_s"] <= found["tokens_per_s_p90"]).all()
    batch = batches[:, None]
    assert found["tokens_per_s_p10"] * found["tpot_p90_s"] == pytest.approx(
        np.broadcast_to(batch, (4, 2))
    )


@pytest.mark.parametrize("drafts", [1, 3])
def test_drafts_are_verified_in_one_pass_and_made_in_others(drafts: int) -> None:
    """A pass over 1 + n tokens, then n of a layer each: n/4 of a pass over one token."""
    from planner.calibration import Speculation

    drafting = replace(on_the_roof(), speculation=Speculation(drafts, 1.5))
    plain, verify = on_the_roof().step, 1.0 + drafts
    whole = plain.at(2.0, 100.0, verify)
    draft = plain.at(2.0, 100.0)
    seconds = (float(whole.total_s) + drafts / 4 * float(draft.total_s)) / 1.5
    assert float(drafting.time_s(2.0, 100.0)) == pytest.approx(seconds)
    found = columns(drafting, 1, drafting.passes(2.0, 100.0), np.asarray(2.0))
    assert found["tpot_p50_s"] == pytest.approx(seconds)
    assert found["flops"] == pytest.approx(float(whole.flops) + drafts / 4 * float(draft.flops))


LLAMA = Scenario(model="meta-llama/Llama-3.1-8B-Instruct", gpu="h100-sxm5", engine="vllm")


def test_a_sweep_has_a_row_for_every_combination() -> None:
    """2 accelerators × 2 tp × 2 formats × 3 batches × 2 contexts, batches before contexts."""
    request = SweepRequest(
        scenario=LLAMA,
        gpu=["h100-sxm5", "h200-sxm"],
        tp=[1, 2],
        kv=["bf16", "fp8"],
        batch=[1, 8, 64],
        context=[1024, 4096],
    )
    table = sweep(request)
    assert table.rows == 48
    assert list(table.columns) == list(COLUMNS)
    assert all(len(column) == 48 for column in table.columns.values())
    assert table.columns["batch"][:6] == [1, 1, 8, 8, 64, 64]
    assert table.columns["context"][:6] == [1024, 4096] * 3
    assert table.columns["gpu"][:24] == ["h100-sxm5"] * 24
    assert table.columns["tp"][:24] == [1] * 12 + [2] * 12
    assert table.columns["kv"][:12] == ["bf16"] * 6 + ["fp8"] * 6
    assert set(table.columns["error"]) == {None}


@pytest.mark.parametrize(("tp", "kv"), [(1, "bf16"), (2, "fp8")])
def test_rows_of_a_sweep_are_points_of_plans(tp: int, kv: str) -> None:
    scenario = LLAMA.model_copy(
        update={"tp": tp, "kv": kv, "batch": [1, 32], "context": [512, 8192], "replicas": 3}
    )
    table = rows_of(scenario)
    points = plan(scenario).points
    for index, point in enumerate(points):
        assert table["batch"][index] == point.batch
        assert table["tpot_p50_s"][index] == pytest.approx(point.tpot_s.p50)
        assert table["tpot_p90_s"][index] == pytest.approx(point.tpot_s.p90)
        assert table["tokens_per_s"][index] == pytest.approx(point.tokens_per_s)
        assert table["bound"][index] == point.bound
        assert table["mfu"][index] == pytest.approx(point.mfu)


def test_an_impossible_row_says_why_and_has_no_figures() -> None:
    table = sweep(SweepRequest(scenario=LLAMA, tp=[1, 3], batch=[1, 2]))
    assert table.columns["error"][:2] == [None, None]
    assert "tp: 3 does not divide the 32 attention heads" in table.columns["error"][2]
    assert table.columns["tpot_p50_s"][2:] == [None, None]
    assert table.columns["batch"] == [1, 2, 1, 2]


@pytest.mark.parametrize(
    ("axes", "message"),
    [
        ({"tp": list(range(1, 51)), "gpu": [f"g{i}" for i in range(41)]}, "2050 deployments"),
        ({"batch": list(range(1, 501)), "context": list(range(1, 402))}, "200500 rows; accepted"),
    ],
)
def test_a_sweep_has_bounds(axes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        SweepRequest(scenario=LLAMA, **axes)


@pytest.mark.parametrize("quantity", ["tpot", "ttft"])
def test_percentiles_are_of_a_lognormal_through_p10_and_p90(quantity: str) -> None:
    deployment = deploy(DENSE, machine(), Sharding())
    low, high = deployment.interval(quantity)
    at = {p: percentile_factor(deployment, quantity, p) for p in (1, 10, 30, 50, 70, 90, 99)}
    assert at[50] == 1.0
    assert at[10] == pytest.approx(low)
    assert at[90] == pytest.approx(high)
    assert list(at.values()) == sorted(at.values())
    # z(99%) = 2.326, z(90%) = 1.2816.
    assert at[99] == pytest.approx(high ** (2.32635 / 1.28155), rel=1e-4)


@pytest.mark.parametrize(
    ("most", "true", "found"), [(100, 7, 7), (100, 0, 0), (5, 100, 5), (0, 3, 0)]
)
def test_the_largest_load(most: int, true: int, found: int) -> None:
    assert largest(lambda loads: np.asarray(loads <= true), most) == found


def test_the_largest_batch_within_a_limit_by_hand() -> None:
    """At 100 tokens each sequence adds 2.56 + 0.05 µs of glue to 60.3136: 100 µs hold 15."""
    deployment = on_the_roof()
    batch = int((100 - 60.3136) / (2.56 + 0.0512))
    assert batch == 15
    assert largest_batch(deployment, 100, 100e-6, 1000) == batch
    assert largest_batch(deployment, 100, 100e-6, 10) == 10
    assert largest_batch(deployment, 100, 50e-6, 1000) == 0


@given(st.integers(60, 2000), st.integers(1, 100))
@settings(max_examples=25, deadline=None)
def test_a_looser_limit_never_lowers_the_batch(limit_us: int, more_us: int) -> None:
    deployment = on_the_roof()
    tight, loose = (
        largest_batch(deployment, 100, us * 1e-6, 4096) for us in (limit_us, limit_us + more_us)
    )
    assert tight <= loose
    strict = largest_batch(deployment, 100, limit_us * 1e-6, 4096, percentile=90)
    assert strict <= tight
