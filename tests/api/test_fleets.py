"""A fleet's day over HTTP: the library's, by its shape, in the workspace's own names."""

from __future__ import annotations

from typing import Any

import pytest

from planner.plans.fleet import fleet
from planner.plans.fleet_request import FleetRequest
from tests.api.conftest import CONFIG, Client, Keyed
from tests.api.test_errors import check

POOL = {"model": "meta-llama/Llama-3.1-70B-Instruct", "gpu": "h100-sxm5", "tp": 4, "engine": "vllm"}
DAY: dict[str, Any] = {
    "pools": [POOL],
    "requests_per_s_by_window": [2, 1, 4, 12, 10, 6],
    "isl": 1024,
    "osl": 256,
    "window_s": 14_400,
    "tpot_ms": 50,
}


def test_a_fleet_is_the_librarys(shared: Client) -> None:
    response = shared.post("/v1/fleets", json=DAY)
    assert response.status_code == 200
    assert response.content == fleet(FleetRequest(**DAY)).model_dump_json().encode()


def test_windows_add_up_to_the_figures_of_a_line(shared: Client) -> None:
    """GPU-hours are GPUs × 4 h a window; the lower bound lies below both other lines."""
    result = shared.post("/v1/fleets", json=DAY).json()
    lines = {line["name"]: line for line in result["lines"]}
    assert list(lines) == ["perfect", "autoscaled", "static"]
    for line in lines.values():
        assert len(line["gpus"]) == result["windows"] == 6
        assert sum(line["gpus"]) * 4 == pytest.approx(line["gpu_hours"])
        assert max(line["gpus"]) == line["gpus_peak"]
    assert result["requests_per_s"] == DAY["requests_per_s_by_window"]
    for perfect, static in zip(lines["perfect"]["gpus"], lines["static"]["gpus"], strict=True):
        assert perfect <= static
    (pool,) = result["pools"]
    assert [4 * n for n in pool["replicas"]] == lines["autoscaled"]["gpus"]


def test_two_pools_add_up(shared: Client) -> None:
    pools = [{**POOL, "isl_up_to": 500}, POOL]
    result = shared.post("/v1/fleets", json={**DAY, "pools": pools}).json()
    for line, *parts in zip(
        result["lines"], *(pool["lines"] for pool in result["pools"]), strict=True
    ):
        sums = [sum(gpus) for gpus in zip(*(part["gpus"] for part in parts), strict=True)]
        assert line["gpus"] == pytest.approx(sums)


def test_own_models_serve(keyed: Keyed) -> None:
    made = keyed.client.post(
        "/v1/models", json={"id": "tuned", "config": CONFIG}, headers=keyed.writer
    )
    assert made.status_code == 201
    body = {**DAY, "pools": [{**POOL, "model": "own/tuned", "tp": 1}]}
    response = keyed.client.post("/v1/fleets", json=body, headers=keyed.reader)
    assert response.status_code == 200
    assert response.json()["request"]["pools"][0]["model"] == "own/tuned"
    assert keyed.client.post("/v1/fleets", json=body, headers=keyed.stranger).status_code == 422


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"trace": "/etc/passwd", "requests_per_s_by_window": None}, "trace: files of the service"),
        ({"isl": None}, "isl, osl: needed"),
        ({"tpot_ms": 0.001}, "pools[0]: one replica serves no request"),
        ({"requests_per_s_by_window": [1] * 60_000, "months": 100}, "PLANNER_MAX_SWEEP_POINTS"),
        ({"pools": [{**POOL, "gpu": "h1000"}]}, "h1000"),
    ],
)
def test_bad_days_are_refused(shared: Client, change: dict[str, Any], words: str) -> None:
    response = shared.post("/v1/fleets", json={**DAY, **change})
    check(response, 422)
    assert words in response.text
