"""Schemathesis over every operation of the document the service publishes, in all phases.

Exemptions, each with its reason:
- A cursor that looks like one is a 400 all the same: it has to be one that the query returned.
- Lines sent as bytes have to be lines of JSON, which no schema of bytes says.
- A write without If-Match is a 428 (RFC 6585), which the check of missing headers does not know.
- A body over the limit is a 413, which is a refusal the check of invalid data does not know.
- Texts with NUL are not generated: a NUL is a 400, which a schema cannot say of free documents.
- Valid data may meet 404, 409, 412, 422 or 428: they depend on what is stored, on which ids the
  catalogues know and on what fits, which no schema can say.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.api.server import serving

pytest.importorskip("schemathesis")

CONFIG = """
[checks.missing_required_header]
expected-statuses = [400, 401, 403, 406, 415, 422, 428]
[checks.positive_data_acceptance]
expected-statuses = ["2xx", 304, 404, 409, 412, 422, 428]
[checks.negative_data_rejection]
expected-statuses = [400, 401, 403, 404, 405, 406, 409, 413, 415, 422, 428, 429]
[generation]
allow-x00 = false
[[operations]]
include-name = [
  "GET /v1/scenarios", "GET /v1/comparisons", "GET /v1/measurements", "GET /v1/jobs",
  "GET /v1/changes", "GET /v1/workspace/lines", "POST /v1/workspace/lines",
]
checks.positive_data_acceptance.expected-statuses = ["2xx", 400]
"""
SHORT, LONG = 8, 120
"""Examples an operation."""
WITHOUT_COVERAGE = ("--phases", "examples,fuzzing,stateful")
"""Coverage walks the schema, and takes most of the time: in the short run once, on SQLite."""


@pytest.mark.parametrize("examples", [SHORT, pytest.param(LONG, marks=pytest.mark.slow)])
def test_every_operation_keeps_its_word(database_url: str, tmp_path: Path, examples: int) -> None:
    config = tmp_path / "schemathesis.toml"
    config.write_text(CONFIG)
    seed = os.environ.get("PLANNER_TEST_SEED", "20261129")
    auto = {"PLANNER_AUTO_MIGRATE": "true"}
    again = examples == SHORT and not database_url.startswith("sqlite")
    with serving(database_url, tmp_path / "log", environment=auto) as server:
        run = subprocess.run(
            [
                str(Path(sys.executable).with_name("schemathesis")),
                "--config-file",
                str(config),
                "--no-color",
                "run",
                f"{server.base}/schema/openapi.json",
                "--max-examples",
                str(examples),
                "--seed",
                seed,
                "--continue-on-failure",
                "--warnings",
                "off",
                "--suppress-health-check",
                "all",
                "--generation-database",
                "none",
                *(WITHOUT_COVERAGE if again else ()),
            ],
            capture_output=True,
            text=True,
            timeout=1500,
            cwd=tmp_path,
            check=False,
        )
    assert run.returncode == 0, run.stdout[-20_000:] + run.stderr[-2_000:]
    assert "No issues found" in run.stdout
