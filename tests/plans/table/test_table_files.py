"""Tables in a directory: whole files, a manifest to go on from, the same bits from any executor."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from concurrent.futures import BrokenExecutor, Executor, Future, ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from planner.plans.editions import current_editions
from planner.plans.table import files
from planner.plans.table.arrow import record_batches
from planner.plans.table.files import (
    MANIFEST,
    OtherEditions,
    OtherTable,
    TableSummary,
    make_part,
    write_table,
)
from planner.plans.table.parts import parts_of
from planner.plans.table.request import TableRequest

pa = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")

LLAMA, QWEN = "meta-llama/Llama-3.1-8B-Instruct", "Qwen/Qwen3-32B"
REQUEST = TableRequest(
    model=[LLAMA, QWEN, "nobody/nothing"],
    gpu=["h100-sxm5", "l4"],
    tp=[1, 3],
    batch=[1, 8],
    context=[512, 8192],
)
ROWS = 8
"""Of a part: one accelerator each, so that there are six of them."""


class Stopped(Exception):
    """A run that is cut off."""


@pytest.fixture(autouse=True)
def _no_waiting_for_the_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files.os, "fsync", lambda _: None)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished table, to be read only."""
    directory = tmp_path_factory.mktemp("whole")
    write(directory)
    return directory


def write(directory: Path, **how: Any) -> TableSummary:
    return write_table(REQUEST, directory, part_rows=ROWS, **how)


def contents(directory: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(directory)): path.read_bytes()
        for path in sorted(directory.rglob("*.parquet"))
    }


def stop_after(parts: int) -> Callable[[TableSummary], None]:
    def progress(summary: TableSummary) -> None:
        if summary.made == parts:
            raise Stopped

    return progress


def test_a_table_is_what_its_record_batches_are(tmp_path: Path) -> None:
    summary = write(tmp_path)
    read = parquet.read_table(tmp_path, partitioning="hive")
    whole = pa.Table.from_batches(record_batches(REQUEST))
    assert (summary.rows, read.num_rows) == (whole.num_rows, whole.num_rows)
    assert (summary.parts, summary.finished, summary.made) == (6, 6, 6)

    def sorted_rows(rows: list[dict[str, Any]]) -> list[str]:
        return sorted(json.dumps(row, sort_keys=True) for row in rows)

    assert sorted_rows(read.to_pylist()) == sorted_rows(whole.to_pylist())
    # nobody/nothing on two accelerators at two degrees, and tp=3 of the two others on both
    assert summary.errors == 2 * 2 + 2 * 2
    assert summary.bytes == sum(len(data) for data in contents(tmp_path).values())


def test_files_are_partitioned_and_say_what_they_are_of(whole: Path) -> None:
    folders = sorted(path.name for path in whole.iterdir())
    assert folders == [
        MANIFEST,
        "model=Qwen%2FQwen3-32B",
        "model=meta-llama%2FLlama-3.1-8B-Instruct",
        "model=nobody%2Fnothing",
    ]
    path = next(whole.glob("model=Qwen*/*.parquet"))
    metadata = parquet.read_schema(path).metadata
    assert json.loads(metadata[b"planner.editions"]) == current_editions().model_dump()
    assert metadata[b"planner.part"].decode() == path.stem
    again = TableRequest.model_validate_json(metadata[b"planner.request"])
    assert again.model == [QWEN]
    assert (again.tp, again.batch, again.context) == (REQUEST.tp, [1, 8], [512, 8192])


@pytest.mark.parametrize("parts", [1, 5])
def test_a_run_that_was_cut_off_goes_on_without_redoing(
    tmp_path: Path, parts: int, whole: Path
) -> None:
    with pytest.raises(Stopped):
        write(tmp_path / "cut", progress=stop_after(parts))
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "cut").rglob("*.parquet")}
    assert len(before) == parts
    summary = write(tmp_path / "cut")
    assert (summary.made, summary.finished) == (6 - parts, 6)
    assert all(path.stat().st_mtime_ns == time for path, time in before.items())
    assert contents(tmp_path / "cut") == contents(whole)
    assert write(tmp_path / "cut").made == 0


@pytest.mark.parametrize("shares_disk", [True, False])
def test_any_executor_makes_the_same_bits(tmp_path: Path, whole: Path, shares_disk: bool) -> None:
    with ThreadPoolExecutor(3) as pool:
        summary = write(tmp_path, executor=pool, in_flight=4, shares_disk=shares_disk)
    assert contents(tmp_path) == contents(whole)
    assert summary.bytes == sum(map(len, contents(tmp_path).values()))
    assert [path.name for path in tmp_path.rglob(".*")] == []  # nothing unfinished


@pytest.mark.parametrize("shares_disk", [True, False])
def test_who_writes_is_who_has_the_disk(tmp_path: Path, shares_disk: bool) -> None:
    """A worker without a directory in common gets no path, and gives the bytes of a file."""
    calls: list[tuple[Any, ...]] = []

    class Noting(ThreadPoolExecutor):
        def submit(self, work: Any, /, *args: Any, **named: Any) -> Any:
            calls.append((work, *args))
            return super().submit(work, *args, **named)

    with Noting(1) as pool:
        write(tmp_path, executor=pool, shares_disk=shares_disk)
    with_path = [str(tmp_path) in repr(call) for call in calls]
    assert with_path == [shares_disk] * 6


class Recording(Executor):
    """Runs at once, and records how many parts are waiting; some are lost."""

    def __init__(self, lost: int = 10**9) -> None:
        self.calls = 0
        self.lost = lost

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
        self.calls += 1
        future: Future[Any] = Future()
        if self.calls > self.lost:
            future.set_exception(BrokenExecutor("a worker died"))
        else:
            future.set_result(fn(*args, **kwargs))
        return future


def test_what_is_finished_stays_when_workers_are_lost(tmp_path: Path) -> None:
    with pytest.raises(BrokenExecutor):
        write(tmp_path, executor=Recording(lost=4), in_flight=1)
    assert len(contents(tmp_path)) == 4
    again = Recording()
    assert write(tmp_path, executor=again).finished == 6
    assert again.calls == 2


def test_parts_in_flight_are_bounded(tmp_path: Path) -> None:
    executor = Recording()
    waiting = []

    def progress(summary: TableSummary) -> None:
        waiting.append(executor.calls - summary.made)

    write(tmp_path, executor=executor, in_flight=2, progress=progress)
    assert waiting[0] == 0
    assert max(waiting) <= 2


def test_a_line_that_was_cut_off_is_made_again(tmp_path: Path) -> None:
    write(tmp_path)
    manifest = tmp_path / MANIFEST
    text = manifest.read_text("utf-8")
    manifest.write_text(text[:-20], "utf-8")
    assert write(tmp_path).made == 1
    assert len(manifest.read_text("utf-8").splitlines()) == 7
    assert write(tmp_path).made == 0


@pytest.mark.parametrize("damage", ["gone", "short"])
def test_a_file_that_is_not_whole_is_made_again(tmp_path: Path, damage: str) -> None:
    write(tmp_path)
    path = next(tmp_path.rglob("*.parquet"))
    whole = path.read_bytes()
    if damage == "gone":
        path.unlink()
    else:
        path.write_bytes(whole[:100])
    assert write(tmp_path).made == 1
    assert path.read_bytes() == whole


def test_a_file_is_there_whole_or_not_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_: int) -> None:
        raise OSError("no space left on device")

    write(tmp_path, progress=None)
    path = next(tmp_path.rglob("*.parquet"))
    path.unlink()
    monkeypatch.setattr(files.os, "fsync", full)
    with pytest.raises(OSError, match="no space"):
        write(tmp_path)
    assert not path.exists()


def test_a_directory_of_something_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / "letters").mkdir()
    (tmp_path / "letters" / "a.txt").write_text("a", "utf-8")
    with pytest.raises(OtherTable, match=r"output: .*letters is not empty and no table; accepted"):
        write(tmp_path / "letters")
    write(tmp_path / "table")
    other = REQUEST.model_copy(update={"batch": [1]})
    with pytest.raises(OtherTable, match="holds a table of other axes or editions; accepted"):
        write_table(other, tmp_path / "table")


def test_a_table_of_other_editions_is_not_gone_on_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path)
    other = current_editions().model_copy(update={"calibration": "own"})
    monkeypatch.setattr(files, "current_editions", lambda: other)
    with pytest.raises(OtherTable, match="editions"):
        write(tmp_path)


def test_a_worker_with_other_data_is_refused() -> None:
    part = parts_of(REQUEST, current_editions())[0]
    other = current_editions().model_copy(update={"hardware": "2020-01-01"})
    with pytest.raises(OtherEditions, match=r"editions: a worker has .*; accepted: .*2020-01-01"):
        make_part(part, other)


def test_the_manifest_names_every_file_with_its_digest(whole: Path) -> None:
    head, *lines = map(json.loads, (whole / MANIFEST).read_text("utf-8").splitlines())
    assert head["editions"] == current_editions().model_dump()
    assert head["request"]["model"] == REQUEST.model
    written = contents(whole)
    assert {line["path"] for line in lines} == set(written)
    for line in lines:
        data = written[line["path"]]
        assert line["bytes"] == len(data)
        assert line["sha256"] == hashlib.sha256(data).hexdigest()


def test_repeated_names_cost_next_to_nothing(tmp_path: Path) -> None:
    """Fifteen figures of four bytes are what a row takes, less what compression saves."""
    request = TableRequest(
        model=[LLAMA], gpu=["h100-sxm5"], batch=list(range(1, 201)), context=list(range(1, 201))
    )
    summary = write_table(request, tmp_path)
    assert summary.rows == 40_000
    assert summary.bytes / summary.rows < 45
    path = next(tmp_path.rglob("*.parquet"))
    columns = parquet.ParquetFile(path).metadata.row_group(0)
    sizes = {
        columns.column(i).path_in_schema: columns.column(i).total_compressed_size
        for i in range(columns.num_columns)
    }
    repeated = ("gpu", "tp", "weights", "kv", "engine", "usd_per_gpu_hour", "error")
    assert sum(sizes[name] for name in repeated) < 0.01 * summary.bytes


def test_summaries_add_up() -> None:
    record = files.PartRecord("k", "p", rows=5, errors=1, bytes=7, sha256="")
    summary = TableSummary(parts=3).with_part(record).with_part(record, made=1)
    assert summary == replace(
        TableSummary(parts=3), finished=2, made=1, rows=10, errors=2, bytes=14
    )
