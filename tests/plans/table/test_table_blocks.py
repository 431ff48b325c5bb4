"""Blocks of a table say what plans say of the same points, in memory that does not grow."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import numpy as np
import pytest

from planner import Scenario, plan
from planner.hw import get_accelerator
from planner.plans.money import PriceBook
from planner.plans.table import blocks as table
from planner.plans.table.blocks import TableBlock, blocks, chunks
from planner.plans.table.request import TableRequest
from planner.scenario import SpeculationOptions
from planner.step.buffers import Buffers
from planner.step.timing import BOUNDS

LLAMA, DEEPSEEK = "meta-llama/Llama-3.1-8B-Instruct", "deepseek-ai/DeepSeek-V3"
GRID = TableRequest(
    model=[LLAMA],
    gpu=["h100-sxm5"],
    tp=[2],
    engine=["vllm"],
    replicas=3,
    batch=[1, 8, 64, 300],
    context=[512, 4096, 100_000],
    limits=True,
)
LOADS = TableRequest(
    model=[LLAMA],
    gpu=["h200-sxm"],
    engine=["vllm"],
    replicas=2,
    concurrency=[1, 16, 4000],
    isl=[1000, 8000],
    osl=[1, 500],
)


def rows(request: TableRequest) -> dict[str, list[Any]]:
    """All rows by column."""
    columns: dict[str, list[Any]] = defaultdict(list)
    for block in blocks(request, Buffers()):
        for name, values in block.columns.items():
            columns[name] += np.broadcast_to(values, block.shape).ravel().tolist()
        for name, value in {**block.keys, **block.constants, "error": block.error}.items():
            columns[name] += [value] * block.rows
    return columns


def test_rows_of_decode_are_points_of_a_plan() -> None:
    table = rows(GRID)
    scenario = Scenario(
        model=LLAMA,
        gpu="h100-sxm5",
        tp=2,
        engine="vllm",
        replicas=3,
        batch=GRID.batch,
        context=GRID.context,
    )
    answer = plan(scenario)
    assert len(answer.points) == len(table["batch"]) == 12
    for i, point in enumerate(answer.points):
        assert (table["batch"][i], table["context"][i]) == (point.batch, point.context)
        assert table["tpot_p10_s"][i] == pytest.approx(point.tpot_s.p10)
        assert table["tpot_p50_s"][i] == pytest.approx(point.tpot_s.p50)
        assert table["tokens_per_s"][i] == pytest.approx(point.tokens_per_s)
        assert table["flops"][i] == pytest.approx(point.flops)
        assert BOUNDS[table["bound"][i]] == point.bound
    assert table["weights_bytes_per_gpu"][0] == answer.memory.weights_bytes_per_gpu
    assert table["kv_pool_bytes_per_gpu"][0] == answer.memory.kv_pool_bytes_per_gpu


def test_feasibility_and_limits_are_those_of_plans_at_each_context() -> None:
    table = rows(GRID)
    for i, context in enumerate(GRID.context):
        one = plan(
            Scenario(
                model=LLAMA,
                gpu="h100-sxm5",
                tp=2,
                engine="vllm",
                batch=GRID.batch,
                context=[context],
            )
        )
        limits = one.limits
        for j, batch in enumerate(GRID.batch):
            row = 3 * j + i
            assert table["max_batch"][row] == one.memory.max_batch
            assert table["fits"][row] == (batch <= one.memory.max_batch)
            assert table["knee_batch"][row] == limits.knee_batch
            assert table["weights_equal_kv_batch"][row] == limits.weights_equal_kv_batch
            crossover = table["crossover_batch"][row]
            assert (None if np.isnan(crossover) else crossover) == limits.crossover_batch


@pytest.mark.parametrize(
    ("request_", "rate"), [(GRID, "tokens_per_s"), (LOADS, "output_tokens_per_s")]
)
def test_cost_is_the_price_of_all_gpus_over_what_they_give(
    request_: TableRequest, rate: str
) -> None:
    table = rows(request_)
    tariff = PriceBook().of(get_accelerator(request_.gpu[0]))
    assert tariff is not None
    gpus = request_.tp[0] * request_.replicas
    for usd, tokens_per_s in zip(table["usd_per_million_output_tokens"], table[rate], strict=True):
        seconds = 1e6 / tokens_per_s
        assert usd == pytest.approx(tariff.usd_per_gpu_hour * gpus * seconds / 3600)


def test_rows_under_load_are_those_of_plans() -> None:
    table = rows(LOADS)
    assert len(table["isl"]) == 12
    for i in range(12):
        load = {name: int(table[name][i]) for name in ("concurrency", "isl", "osl")}
        one = plan(Scenario(model=LLAMA, gpu="h200-sxm", engine="vllm", replicas=2, **load)).serving
        assert one is not None
        for name, interval in (("ttft", one.ttft_s), ("tpot", one.tpot_s)):
            for percentile in ("p10", "p50", "p90"):
                figure = table[f"{name}_{percentile}_s"][i]
                assert figure == pytest.approx(getattr(interval, percentile), rel=1e-3), name
        assert table["output_tokens_per_s"][i] == pytest.approx(one.output_tokens_per_s, rel=1e-3)
        assert table["requests_per_s_p90"][i] == pytest.approx(
            one.requests_per_s_interval.p90, rel=1e-3
        )
        assert table["queued"][i] == pytest.approx(one.queued)


@pytest.mark.parametrize("request_", [GRID, LOADS], ids=["decode", "loads"])
@pytest.mark.parametrize(("most", "contexts"), [(1, 1), (3, 2), (5, 256), (40_000, 2)])
def test_rows_do_not_depend_on_how_they_are_cut(
    request_: TableRequest, most: int, contexts: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = rows(request_)
    monkeypatch.setattr(table, "BLOCK_ROWS", most)
    monkeypatch.setattr(table, "BLOCK_CONTEXTS", contexts)
    assert all(block.rows <= most for block in blocks(request_))
    cut = rows(request_)
    axes = request_.load_axes
    order = sorted(range(12), key=lambda i: tuple(cut[axis][i] for axis in axes))
    # sums of other lengths round otherwise; a steady state is iterated until it is near enough
    near = 1e-12 if request_ is GRID else 1e-3
    for name, values in whole.items():
        again = [cut[name][i] for i in order]
        if isinstance(values[0], float):
            assert again == pytest.approx(values, rel=near, abs=1e-9, nan_ok=True), name
        else:
            assert again == values, name


def test_an_impossible_member_is_one_row_with_the_reason() -> None:
    request = TableRequest(
        model=[LLAMA, "nobody/nothing", {"id": "mine", "model_type": "llama"}],
        gpu=["h100-sxm5", "no-such-gpu"],
        tp=[1, 3],
        batch=[1, 2],
        context=[100, 200, 300],
    )
    errors = {}
    possible = 0
    for block in blocks(request):
        member = (block.keys["model"], block.keys["gpu"], block.keys["tp"])
        if block.error:
            errors[member] = block.error
            assert block.rows == 1
            assert not block.columns
        else:
            possible += block.rows
    assert possible == 6
    assert len(errors) == 11
    assert "tp: 3 does not divide" in errors[LLAMA, "h100-sxm5", 3]
    assert "nobody/nothing" in errors["nobody/nothing", "h100-sxm5", 1]
    assert "no-such-gpu" in errors[LLAMA, "no-such-gpu", 1]
    assert "model" in errors["mine", "h100-sxm5", 1]


def test_members_are_named_by_what_is_used() -> None:
    request = TableRequest(
        model=["deepseek-v3"], gpu=["h200-sxm"], tp=[8], engine=["vllm"], batch=[1], context=[100]
    )
    (block,) = blocks(request)
    assert block.keys["model"] == DEEPSEEK
    assert block.keys["weights"] == "fp8"
    assert block.keys["drafts"] == 0
    assert block.keys["engine"] == "vllm"


def test_drafts_are_a_key_and_change_the_time() -> None:
    drafts = [None, SpeculationOptions(drafts=2, accepted=2.0)]
    request = GRID.model_copy(update={"speculation": drafts, "limits": False})
    plain, drafting = blocks(request)
    assert (plain.keys["drafts"], drafting.keys["drafts"]) == (0, 2)
    assert (drafting.columns["tpot_p50_s"] < plain.columns["tpot_p50_s"])[0].all()


def test_memory_does_not_grow_with_rows() -> None:
    sizes = []
    for batches in (500, 5000):
        buffers = Buffers()
        request = GRID.model_copy(
            update={
                "batch": list(range(1, batches + 1)),
                "context": list(range(100, 40_100, 100)),
                "limits": False,
            }
        )
        count = sum(block.rows for block in blocks(request, buffers))
        assert count == batches * 400
        sizes.append(buffers.nbytes)
    assert sizes[0] == sizes[1] < 10e6


def test_a_block_has_its_size() -> None:
    assert TableBlock(keys={}).rows == 1
    assert TableBlock(keys={}, shape=(3, 4)).rows == 12
    assert [piece.tolist() for piece in chunks(np.arange(5.0), 2)] == [[0, 1], [2, 3], [4]]
