"""Manifests and command lines of our own writing: each object, each code of a finding.

The first line of a file says what is expected of it: verdict, codes, fields of the scenario.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from planner.handover.checking import Check, CheckQuestion, check
from planner.handover.findings import CODES
from planner.handover.objects import READERS

FILES = sorted((Path(__file__).parent / "manifests").iterdir())
EXPECT = "# expect: "


def expected(path: Path) -> dict[str, Any]:
    first = path.read_text("utf-8").partition("\n")[0]
    content: dict[str, Any] = json.loads(first.removeprefix(EXPECT))
    return content


def checked(path: Path) -> Check:
    question = CheckQuestion(**expected(path).get("question", {}))
    (one,) = check({path.name: path.read_text("utf-8")}, question).checks
    return one


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_a_manifest_is_judged_as_its_first_line_says(path: Path) -> None:
    wanted, one = expected(path), checked(path)
    assert sorted({f.code for f in one.findings}) == wanted["codes"]
    assert one.verdict == wanted["verdict"]
    fields = one.reading.scenario.model_dump(exclude_defaults=True)
    for name, value in wanted.get("fields", {}).items():
        assert fields.get(name, 1) == value


def test_each_code_and_each_object_has_a_manifest() -> None:
    assert len(FILES) >= 40
    codes = {code for path in FILES for code in expected(path)["codes"]}
    assert codes == set(CODES)
    page = (Path(__file__).parents[2] / "docs" / "handover.md").read_text("utf-8")
    assert all(
        f"| `{name}` ({code.severity}) | {code.title} |" in page for name, code in CODES.items()
    )
    assert {checked(path).reading.kind for path in FILES} == {"command", *READERS}


@pytest.mark.parametrize(
    ("name", "code", "line_says"),
    [
        ("deployment-idle.yaml", "gpus_idle", "nvidia.com/gpu"),
        ("deployment-probe.yaml", "probe_kills_start", "livenessProbe"),
        ("llminferenceservice-dropped.yaml", "parallelism_dropped", "tensor: 4"),
        ("vllm-fights.sh", "flags_conflict", "--kv-cache-memory-bytes"),
        ("vllm-typo.sh", "argument_unknown", "--gpu-memory-utilisation 0.9"),
        ("vllm-docker.sh", "length_beyond_model", "--max-model-len 200000"),
        ("trtllm.sh", "not_understood", "no_such_key"),
    ],
)
def test_a_finding_names_the_line(name: str, code: str, line_says: str) -> None:
    path = next(path for path in FILES if path.name == name)
    one = next(f for f in checked(path).findings if f.code == code)
    assert line_says in path.read_text("utf-8").splitlines()[one.line - 1]
    assert one.fix
