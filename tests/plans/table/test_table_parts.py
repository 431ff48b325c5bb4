"""Parts of a table: together they are the table, each is made once, and its name is its content."""

from __future__ import annotations

from collections import Counter
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.answer import Editions
from planner.plans.table.parts import TablePart, content_key, parts_of, table_key
from planner.plans.table.request import TableRequest

EDITIONS = Editions(models="1", hardware="2", calibration="3", engines="4")
LLAMA = "meta-llama/Llama-3.1-8B-Instruct"


def made(parts: list[TablePart]) -> Counter[tuple[Any, ...]]:
    """How often every row is made."""
    return Counter(
        row
        for part in parts
        for row in product(*(getattr(part.request, a) for a in ("model", "gpu", "tp", "batch")))
    )


@given(
    models=st.integers(1, 3),
    gpus=st.integers(1, 7),
    tps=st.integers(1, 3),
    batches=st.integers(1, 5),
    rows=st.integers(1, 60),
)
@settings(max_examples=15, deadline=None)
def test_every_row_is_in_one_part(
    models: int, gpus: int, tps: int, batches: int, rows: int
) -> None:
    request = TableRequest(
        model=[f"m{i}" for i in range(models)],
        gpu=[f"g{i}" for i in range(gpus)],
        tp=list(range(1, tps + 1)),
        batch=list(range(1, batches + 1)),
        context=[1],
    )
    parts = parts_of(request, EDITIONS, rows)
    counts = made(parts)
    assert set(counts.values()) == {1}
    assert len(counts) == models * gpus * tps * batches
    for part in parts:
        assert len(part.request.model) == 1
        assert part.rows <= max(rows, tps)  # members of one batch are not parted
    assert len({part.key for part in parts}) == len(parts)


def test_what_is_named_twice_is_made_once() -> None:
    request = TableRequest(
        model=[LLAMA, "llama-3.1-8b-instruct", LLAMA.upper(), "unknown", "unknown"],
        gpu=["h100-sxm5", "H100-SXM5", "h200-sxm"],
    )
    parts = parts_of(request, EDITIONS)
    assert [part.request.model for part in parts] == [[LLAMA], ["unknown"]]
    assert parts[0].request.gpu == ["h100-sxm5", "h200-sxm"]


def test_a_name_is_of_the_content() -> None:
    request = TableRequest(model=[LLAMA], gpu=["h100-sxm5"], batch=[1, 2])
    (part,) = parts_of(request, EDITIONS)
    assert parts_of(request, EDITIONS) == [part]
    assert part.path == f"model=meta-llama%2FLlama-3.1-8B-Instruct/{part.key}.parquet"
    others = [
        parts_of(request.model_copy(update={"batch": [1, 3]}), EDITIONS)[0].key,
        parts_of(request, EDITIONS.model_copy(update={"calibration": "own"}))[0].key,
        parts_of(request.model_copy(update={"gpu": ["h200-sxm"]}), EDITIONS)[0].key,
        table_key(request.model_copy(update={"limits": True}), EDITIONS),
    ]
    assert len({part.key, *others}) == 5


def test_a_config_file_is_read_for_workers_elsewhere(tmp_path: Path) -> None:
    tmp_path.joinpath("config.json").write_text('{"model_type": "llama", "hidden_size": 8}')
    expected = {"model_type": "llama", "hidden_size": 8}
    for name in (str(tmp_path), str(tmp_path / "config.json")):
        (part,) = parts_of(TableRequest(model=[name], gpu=["h100-sxm5"]), EDITIONS)
        assert part.request.model == [expected]
        assert part.path.startswith("model=inline%20")


def test_objects_keep_their_id_in_the_path() -> None:
    request = TableRequest(model=[{"id": "a/b c", "model_type": "llama"}], gpu=[{"base": "l4"}])
    (part,) = parts_of(request, EDITIONS)
    assert part.path.startswith("model=a%2Fb%20c/")
    assert part.request.gpu == [{"base": "l4"}]


def test_keys_do_not_depend_on_the_order_of_fields() -> None:
    assert content_key({"a": 1, "b": [2]}) == content_key({"b": [2], "a": 1})
    assert content_key([1, 2]) != content_key([2, 1])
    with pytest.raises(ValueError, match="JSON"):
        content_key(float("nan"))
