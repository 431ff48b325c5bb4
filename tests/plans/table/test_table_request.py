"""Requests of tables: their size, what does not go together, what they are estimated to take."""

from __future__ import annotations

from typing import Any

import pytest

from planner.plans.table.estimate import MEMBER_S, ROW_S, estimate
from planner.plans.table.fields import DECODE, ERROR, LIMITS, SERVING, fields_of
from planner.plans.table.request import MEMBER_AXES, TableRequest

ONE = {"model": ["meta-llama/Llama-3.1-8B-Instruct"], "gpu": ["h100-sxm5"]}


def test_size_is_the_product_of_the_axes() -> None:
    """2 models × 3 accelerators × 2 tp × 2 engines; 4 batches × 5 contexts each."""
    request = TableRequest(
        model=["a", "b"],
        gpu=["x", "y", "z"],
        tp=[1, 2],
        engine=[None, "vllm"],
        batch=[1, 2, 3, 4],
        context=[1, 2, 3, 4, 5],
    )
    assert (request.members, request.points) == (24, 20)
    scenarios = list(request.scenarios())
    assert len(scenarios) == 24
    assert [s.engine for s in scenarios[:2]] == [None, "vllm"]
    assert (scenarios[0].model, scenarios[-1].model) == ("a", "b")
    assert len({tuple(getattr(s, axis) for axis in MEMBER_AXES) for s in scenarios}) == 24


def test_a_table_has_no_limit_of_rows() -> None:
    request = TableRequest(
        **ONE, batch=list(range(1, 100_001)), context=list(range(100_000, 200_000))
    )
    assert request.members * request.points == 10**10


@pytest.mark.parametrize(
    ("axes", "message"),
    [
        ({"concurrency": [1]}, "isl, osl: missing; accepted: concurrency, isl and osl together"),
        ({"isl": [1], "osl": [2]}, "concurrency: missing"),
        (
            {"concurrency": [1], "isl": [1], "osl": [1], "limits": True},
            "limits: are of decode; accepted: with batch and context alone",
        ),
        ({"model": []}, "model"),
        ({"batch": [0]}, "batch"),
        ({"context": [-1]}, "context"),
        ({"batches": [1]}, "batches"),
    ],
)
def test_what_does_not_go_together_is_refused(axes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        TableRequest(**(ONE | axes))


def test_an_estimate_is_of_all_members() -> None:
    request = TableRequest(**ONE, tp=[1, 2, 4], batch=[1] * 100, context=[1] * 1000)
    taken = estimate(request)
    assert (taken.members, taken.rows) == (3, 300_000)
    assert taken.core_s == pytest.approx(3 * MEMBER_S + 300_000 * ROW_S)
    assert 25 <= taken.bytes / taken.rows <= 60
    limits = estimate(request.model_copy(update={"limits": True}))
    assert limits.core_s - taken.core_s == pytest.approx(3 * 1000 * 1e-3)
    loads = TableRequest(**ONE, concurrency=[1, 2], isl=[1000], osl=[1, 10, 100])
    assert estimate(loads).rows == 6
    assert loads.serving


@pytest.mark.parametrize("serving", [False, True])
@pytest.mark.parametrize("limits", [False, True])
def test_columns_have_one_name_each_and_the_error_last(serving: bool, limits: bool) -> None:
    if serving and limits:
        return
    fields = fields_of(serving, limits)
    names = [field.name for field in fields]
    assert len(set(names)) == len(names)
    assert names[0] == "model"
    assert fields[-1] == ERROR[0]
    assert len(fields) == len(SERVING if serving else DECODE) + len(LIMITS) * limits + 1
