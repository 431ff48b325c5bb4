"""Record batches hold what blocks do: names as dictionaries, 32-bit figures, gaps as nulls."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest

from planner import Scenario, plan
from planner.plans.table.arrow import NoArrow, record_batches, schema_of
from planner.plans.table.request import TableRequest
from planner.step.timing import BOUNDS

pa = pytest.importorskip("pyarrow")

LLAMA = "meta-llama/Llama-3.1-8B-Instruct"
REQUEST = TableRequest(
    model=[LLAMA],
    gpu=["h100-sxm5", "no-such-gpu", "l4"],
    tp=[1, 3],
    batch=[1, 8, 64],
    context=[512, 8192, 65_536],
    limits=True,
)
LOADS = TableRequest(
    model=[LLAMA], gpu=["h100-sxm5", "x"], concurrency=[1, 9], isl=[100, 200], osl=[50]
)


def table(request: TableRequest = REQUEST, **how: Any) -> Any:
    return pa.Table.from_batches(record_batches(request, **how))


def test_a_row_a_point_and_one_for_what_is_impossible() -> None:
    rows = table().to_pylist()
    assert len(rows) == 2 * 9 + 4
    errors = [row for row in rows if row["error"]]
    assert {(row["gpu"], row["tp"]) for row in errors} == {
        ("h100-sxm5", 3),
        ("no-such-gpu", 1),
        ("no-such-gpu", 3),
        ("l4", 3),
    }
    for row in errors:
        named = {"model", "gpu", "tp", "pp", "ep", "attention_dp", "drafts", "error"}
        assert {name for name, value in row.items() if value is not None} == named


def test_figures_are_those_of_a_plan_in_32_bits() -> None:
    answer = plan(
        Scenario(model=LLAMA, gpu="h100-sxm5", batch=REQUEST.batch, context=REQUEST.context)
    )
    for row, point in zip(table().to_pylist(), answer.points, strict=False):
        assert (row["batch"], row["context"]) == (point.batch, point.context)
        assert row["tpot_p50_s"] == np.float32(point.tpot_s.p50)
        assert row["flops"] == np.float32(point.flops)
        assert row["bound"] == point.bound
        assert row["weights"] == "bf16"
        assert row["usd_per_gpu_hour"] > 0


def test_a_limit_that_is_not_reached_is_null() -> None:
    """The cache of a long context keeps the intensity below the ridge at every batch."""
    request = REQUEST.model_copy(
        update={"model": ["meta-llama/Llama-3.1-70B-Instruct"], "gpu": ["h100-sxm5"], "tp": [1]}
    )
    short, _, long = table(request).to_pylist()[:3]
    assert short["crossover_batch"] > 100
    assert long["crossover_batch"] is None
    assert long["knee_batch"] >= 1


@pytest.mark.parametrize("request_", [REQUEST, LOADS], ids=["decode", "loads"])
@pytest.mark.parametrize("rows", [1, 7, 22, 1000])
@pytest.mark.parametrize("reuse", [False, True])
def test_batches_of_any_size_are_the_same_table(
    request_: TableRequest, rows: int, reuse: bool
) -> None:
    whole = table(request_).to_pylist()
    parts = []
    for batch in record_batches(request_, rows, reuse):
        assert 0 < batch.num_rows <= rows
        assert batch.schema == schema_of(request_)
        parts += batch.to_pylist()
    assert parts == whole


def test_types() -> None:
    schema = schema_of(REQUEST)
    text, bound = (pa.dictionary(index, pa.string()) for index in (pa.int32(), pa.int8()))
    for name, kind in {
        "model": text,
        "engine": text,
        "error": text,
        "bound": bound,
        "tp": pa.int32(),
        "batch": pa.int64(),
        "crossover_batch": pa.int64(),
        "tpot_p50_s": pa.float32(),
        "fits": pa.bool_(),
    }.items():
        assert schema.field(name).type == kind, name
    column = table().column("bound").chunk(0)
    assert column.dictionary.to_pylist() == list(BOUNDS)


def test_rows_under_load() -> None:
    rows = table(LOADS).to_pylist()
    assert len(rows) == 5
    assert [(r["concurrency"], r["isl"]) for r in rows[:4]] == [
        (1, 100),
        (1, 200),
        (9, 100),
        (9, 200),
    ]
    assert rows[0]["ttft_p10_s"] < rows[0]["ttft_p50_s"] < rows[0]["ttft_p90_s"]
    assert rows[0]["fits"] is True
    assert rows[4]["fits"] is None
    assert "no-such" not in rows[4]["error"]
    assert "x" in rows[4]["error"]


def test_a_price_that_is_not_on_record_is_null() -> None:
    gpu = {
        "id": "mine",
        "name": "Mine",
        "bandwidth_bytes_per_s": 4e12,
        "memory_bytes": 96e9,
        "peaks_flops_per_s": {"bf16": 1.2e15},
        "source": "a test",
    }
    request = REQUEST.model_copy(update={"gpu": [gpu, "h100-sxm5"], "tp": [1]})
    mine, known = (table(request).to_pylist()[i] for i in (0, 9))
    assert (mine["gpu"], known["gpu"]) == ("mine", "h100-sxm5")
    assert mine["usd_per_gpu_hour"] is mine["usd_per_million_output_tokens"] is None
    assert known["usd_per_million_output_tokens"] > 0


def test_without_arrow_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(NoArrow, match="table: pyarrow is not installed; accepted: the extra"):
        next(iter(record_batches(REQUEST)))
