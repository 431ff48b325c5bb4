"""The golden path, through a service that was started as users start it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import httpx

from tests.api.conftest import CONFIG
from tests.api.server import serving

LLAMA = "meta-llama/Llama-3.1-70B-Instruct"
LOAD: dict[str, Any] = {"model": LLAMA, "batch": [16], "context": [4096], "weights": "fp8"}
DEPLOYMENTS = (
    {**LOAD, "name": "4×H100", "gpu": "h100-sxm5", "tp": 4},
    {**LOAD, "name": "2×H200", "gpu": "h200-sxm", "tp": 2},
    {**LOAD, "name": "1×B200", "gpu": "b200-sxm", "tp": 1},
)
NEXT_EDITION = """
import planner.plans.editions as editions

found = editions.current_editions()
new = {"hardware": "2099-01-01", "engines": "2099-01-01"}
editions.current_editions = lambda: found.model_copy(update=new)
"""


def test_the_golden_path(database_url: str, tmp_path: Path) -> None:
    log, auto = tmp_path / "log", {"PLANNER_AUTO_MIGRATE": "true"}
    with serving(database_url, log, environment=auto) as server:
        assert f'"url": "{server.base}"' in server.text()
        ask = httpx.Client(base_url=server.base, timeout=30)

        # A model of one's own, and the batch to run it with.
        made = ask.post("/v1/models", json={"id": "finetune", "config": CONFIG})
        assert (made.status_code, made.json()["total_params"]) == (201, 8030261248)
        body = {"model": "own/finetune", "gpu": ["h100-sxm5", "b200-sxm"], "tpot_ms": 15}
        choices = ask.post("/v1/recommendations", json=body).json()["choices"]
        assert {c["gpu"] for c in choices} == {"h100-sxm5", "b200-sxm"}
        assert all(c["batch"] >= 1 and c["tpot_s"]["p50"] <= 0.015 for c in choices)

        # Three deployments, side by side.
        ids = [ask.post("/v1/scenarios", json=one).json()["id"] for one in DEPLOYMENTS]
        compared = ask.post("/v1/comparisons", json={"scenarios": ids, "name": "which"})
        assert compared.status_code == 201, compared.text
        comparison = compared.json()["comparison"]
        assert [c["label"] for c in comparison["columns"]] == ["4×H100", "2×H200", "1×B200"]
        assert comparison["pareto"]["members"]
        for attribution in comparison["attributions"]:
            assert [s["fields"] for s in attribution["steps"]] == [["gpu"], ["tp"]]
            for c in attribution["contributions"]:
                assert sum(c["steps"]) == c["difference"]
            tpot = next(c for c in attribution["contributions"] if c["figure"] == "tpot_s")
            assert sum(k["difference_s"] for k in attribution["kernels"]) == tpot["difference"]
        plans = {i: ask.get(f"/v1/scenarios/{i}/plan").json() for i in ids}
        assert all(plan["stale"] is False for plan in plans.values())
        place = compared.headers["location"]
        ask.close()

    # The same after a restart.
    with serving(database_url, log, environment=auto) as server:
        assert httpx.get(f"{server.base}{place}").content == compared.content
        for ident, plan in plans.items():
            assert httpx.get(f"{server.base}/v1/scenarios/{ident}/plan").json() == plan

    # The next release brings new data of hardware and engines: the old answers stay, are marked.
    (tmp_path / "sitecustomize.py").write_text(NEXT_EDITION)
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    newer = {**auto, "PYTHONPATH": path}
    with serving(database_url, log, environment=newer) as server:
        for ident, plan in plans.items():
            response = httpx.get(f"{server.base}/v1/scenarios/{ident}/plan?recompute=true").json()
            assert (response["stale"], response["plan"]) == (True, plan["plan"])
            assert [cause["what"] for cause in response["because"]] == ["hardware", "engines"]
            for cause in response["because"]:
                assert cause["current"] == "2099-01-01"
                assert cause["computed_with"] == plan["plan"]["editions"][cause["what"]]
            assert response["recomputed"]["plan"]["editions"]["hardware"] == "2099-01-01"
            assert response["recomputed"]["differences"] == []
