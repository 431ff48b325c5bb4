"""`planner sweep --output`: a table made, gone on with, estimated; options that are refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from planner.commands import tables
from planner.commands.tables import make_table
from planner.plans import executors
from planner.plans.table.request import TableRequest
from tests.test_cli import answered, refused

LLAMA = "meta-llama/Llama-3.1-8B-Instruct"
AXES = (LLAMA, "--gpu", "h100-sxm5,l4", "--tp", "1,3", "--batch", "1,8", "--context", "512,1k")


def test_a_table_is_made_and_gone_on_with(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("pyarrow")
    to = str(tmp_path / "table")
    out = answered(capsys, "sweep", *AXES, "--output", to)
    # two accelerators at 2×2 points, and tp=3 of both
    assert f"{to}: 10 rows (2 of them members that are impossible)" in out
    assert "1 parts, 1 made in" in out
    again = json.loads(answered(capsys, "sweep", *AXES, "--output", to, "--json"))
    assert again["output"] == to
    assert (again["parts"], again["finished"], again["made"]) == (1, 1, 0)
    assert (again["rows"], again["errors"]) == (10, 2)
    assert "1 there before" in answered(capsys, "sweep", *AXES, "--output", to)


def test_rows_of_requests(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    loads = ("--concurrency", "1,16", "--isl", "1000", "--osl", "10,200")
    answered(capsys, "sweep", *AXES[:3], *loads, "--output", str(tmp_path / "t"))
    rows = parquet.read_table(tmp_path / "t", partitioning="hive").to_pylist()
    assert [(r["gpu"], r["concurrency"], r["osl"]) for r in rows][:3] == [
        ("h100-sxm5", 1, 10),
        ("h100-sxm5", 1, 200),
        ("h100-sxm5", 16, 10),
    ]
    assert len(rows) == 8


def test_an_estimate_makes_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    to = tmp_path / "table"
    out = answered(capsys, "sweep", *AXES, "--output", str(to), "--estimate")
    assert out.startswith("at most 16 rows of 4 members")
    assert not to.exists()
    taken = json.loads(answered(capsys, "sweep", *AXES, "--estimate", "--json"))
    assert (taken["rows"], taken["members"]) == (16, 4)


def test_whole_catalogues(capsys: pytest.CaptureFixture[str]) -> None:
    from planner.hw import list_accelerators
    from planner.models import list_models

    given = ("sweep", "--all-models", "--all-gpus", "--estimate", "--json", "--batch", "1")
    available = [each for each in list_accelerators() if each.status == "available"]
    expected = len(list_models()) * len(available)
    assert json.loads(answered(capsys, *given))["members"] == expected > 10_000


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([LLAMA], ["gpu", "--all-gpus"]),
        (["--gpu", "l4"], ["model", "--all-models"]),
        ([LLAMA, "--all-models", "--gpu", "l4"], ["model", "one of the two"]),
        ([LLAMA, "--gpu", "l4", "--all-gpus"], ["gpu", "one of the two"]),
        ([LLAMA, LLAMA, "--gpu", "l4"], ["model: 2 values", "--output"]),
        ([LLAMA, "--gpu", "l4", "--pp", "1,2"], ["pp: 2 values", "--output"]),
        ([LLAMA, "--gpu", "l4", "--engine", "vllm,sglang"], ["engine: 2 values", "--output"]),
        ([LLAMA, "--gpu", "l4", "--isl", "10"], ["isl", "--output"]),
        ([LLAMA, "--gpu", "l4", "--limits"], ["limits", "--output"]),
        ([LLAMA, "--gpu", "l4", "--isl", "10", "--estimate"], ["concurrency, osl: missing"]),
    ],
)
def test_what_does_not_go_together_is_one_line(
    arguments: list[str],
    words: list[str],
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    line = refused(capsys, "sweep", *arguments)
    for word in words:
        assert word in line


class Pools:
    """Starts pools that lose their processes so many times."""

    def __init__(self, lost: int) -> None:
        self.lost, self.started = lost, 0

    def __call__(self, workers: int) -> Any:
        from concurrent.futures import ThreadPoolExecutor
        from contextlib import contextmanager

        from tests.plans.table.test_table_files import Recording

        @contextmanager
        def start() -> Any:
            self.started += 1
            with ThreadPoolExecutor(workers) as pool:
                yield (Recording(lost=0) if self.started <= self.lost else pool), 2

        return start()


def test_a_pool_that_lost_a_process_is_started_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from concurrent.futures import BrokenExecutor

    pytest.importorskip("pyarrow")
    request = TableRequest(model=[LLAMA], gpu=["l4"], batch=[1], context=[512])
    pools = Pools(lost=2)
    monkeypatch.setattr(executors, "local", pools)
    make_table(request, tmp_path / "a", 1, None, as_json=True)
    assert pools.started == 3 == tables.STARTS
    assert json.loads(capsys.readouterr().out)["made"] == 1
    monkeypatch.setattr(executors, "local", Pools(lost=3))
    with pytest.raises(BrokenExecutor):
        make_table(request, tmp_path / "b", 1, None, as_json=True)
