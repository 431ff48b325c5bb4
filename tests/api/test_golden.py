"""The golden path, through a service that was started as users start it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx

from tests.api.server import serving


def test_a_scenario_survives_a_restart(
    database_url: str, tmp_path: Path, question: dict[str, Any]
) -> None:
    log = tmp_path / "log"
    with serving(database_url, log, environment={"PLANNER_AUTO_MIGRATE": "true"}) as server:
        made = httpx.post(f"{server.base}/v1/scenarios", json=question)
        assert made.status_code == 201
        path = made.headers["location"]
    with serving(database_url, log) as server:
        read = httpx.get(f"{server.base}{path}")
        assert read.json() == made.json()
        assert httpx.get(f"{server.base}{path}/plan").json()["stale"] is False
