"""Numbers at the ends of what a field accepts, and beyond: an answer or a refusal, never a 500."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import pytest

from tests.api.conftest import QUESTION, Client

ENDS = (5e-324, 1e-300, 1e-9, 1e308, -0.0)
SERVING: dict[str, Any] = {
    **{k: v for k, v in QUESTION.items() if k not in {"batch", "context"}},
    "engine": "vllm",
    "isl": 1024,
    "osl": 128,
    "users": 16,
    "think_time_s": 1.0,
    "tpot_ms": 40.0,
    "ttft_ms": 2000.0,
    "prefix_hit": 0.2,
    "memory_fraction": 0.9,
}
BODIES: dict[str, dict[str, Any]] = {
    "/v1/plans": SERVING,
    "/v1/comparisons": {
        "save": False,
        "usd_per_gpu_hour": {"a": 2.5},
        "scenarios": [{**QUESTION, "name": "a"}, {**QUESTION, "name": "b", "tp": 8}],
    },
    "/v1/recommendations": {
        "model": QUESTION["model"],
        "gpu": ["h100-sxm5"],
        "isl": 1024,
        "osl": 128,
        "requests_per_s": 2.0,
        "tpot_ms": 50.0,
        "usd_per_gpu_hour": 2.0,
        "usd_per_month": 50000.0,
        "duty_cycle": 0.5,
        "api_usd_per_million_output": 1.0,
    },
}


def ends_of(body: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], float]]:
    """Every place of a body with a float, and each end to put there."""
    items = body.items() if isinstance(body, dict) else enumerate(body)
    for key, value in items:
        if isinstance(value, (dict, list)):
            yield from ends_of(value, (*path, key))
        elif isinstance(value, float):
            yield from (((*path, key), end) for end in ENDS)


def with_end(body: dict[str, Any], path: tuple[Any, ...], end: float) -> dict[str, Any]:
    changed = copy.deepcopy(body)
    place: Any = changed
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = end
    return changed


CASES = [(route, *place) for route, body in BODIES.items() for place in ends_of(body)]


@pytest.mark.parametrize("shared_url", ["sqlite"], indirect=True)
@pytest.mark.parametrize(
    "route", [pytest.param(r, marks=pytest.mark.slow) if "recommend" in r else r for r in BODIES]
)
def test_the_ends_of_every_number_are_answered_or_refused(shared: Client, route: str) -> None:
    wrong = []
    for each, path, end in CASES:
        if each != route:
            continue
        answer = shared.post(route, json=with_end(BODIES[route], path, end))
        if answer.status_code not in {200, 422}:
            wrong.append((path, end, answer.status_code))
        elif answer.status_code == 422:
            assert answer.json()["detail"]
    assert wrong == []


@pytest.mark.parametrize("shared_url", ["sqlite"], indirect=True)
@pytest.mark.parametrize(
    ("route", "field"),
    [
        ("/v1/recommendations", "usd_per_gpu_hour"),
        ("/v1/recommendations", "tpot_ms"),
        ("/v1/plans", "ttft_ms"),
    ],
)
def test_what_is_positive_is_bounded_below(shared: Client, route: str, field: str) -> None:
    """Prices of 5e-324 were a 500: dividing by them leaves the range of a double."""
    answer = shared.post(route, json={**BODIES[route], field: 5e-324})
    assert answer.status_code == 422
    assert [error["field"] for error in answer.json()["errors"]] == [field]
    assert "greater than or equal to 0.000000001" in answer.json()["detail"]
