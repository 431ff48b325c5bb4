"""Tables on a local Dask cluster: the same bits, no part made twice, a lost worker replaced."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from planner.plans.executors import NoCluster, cluster, local
from planner.plans.table.files import TableSummary, write_table
from planner.plans.table.request import TableRequest

distributed = pytest.importorskip("distributed")
pytest.importorskip("pyarrow")

REQUEST = TableRequest(
    model=["meta-llama/Llama-3.1-8B-Instruct", "deepseek-ai/DeepSeek-V3", "nobody/nothing"],
    gpu=["h100-sxm5", "h200-sxm", "l4", "no-such-gpu"],
    tp=[1, 2, 8],
    batch=list(range(1, 41)),
    context=list(range(500, 20_500, 500)),
)
ROWS = 5_000
"""Of a part: one accelerator each, so that there are twelve of them."""
PARTS = 12


def write(directory: Path, **how: Any) -> TableSummary:
    return write_table(REQUEST, directory, part_rows=ROWS, **how)


def contents(directory: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(directory)): path.read_bytes() for path in directory.rglob("*.parquet")
    }


@pytest.fixture(scope="module")
def scheduler() -> Iterator[Any]:
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
    ) as started:
        yield started


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """The same table, made by this process."""
    directory = tmp_path_factory.mktemp("alone")
    assert write(directory).parts == PARTS
    return contents(directory)


@pytest.mark.slow
def test_a_cluster_makes_the_same_bits(
    scheduler: Any, alone: dict[str, bytes], tmp_path: Path
) -> None:
    with cluster(scheduler.scheduler_address) as (executor, in_flight):
        assert in_flight == 4
        summary = write(tmp_path, executor=executor, in_flight=in_flight)
    assert (summary.made, summary.finished) == (PARTS, PARTS)
    assert contents(tmp_path) == alone


@pytest.mark.slow
def test_the_parts_of_a_killed_worker_are_made_by_others(
    scheduler: Any, alone: dict[str, bytes], tmp_path: Path
) -> None:
    killed: list[int] = []

    def kill(summary: TableSummary) -> None:
        if summary.made == 1:
            with distributed.Client(scheduler.scheduler_address, set_as_default=False) as client:
                pids = client.run(os.getpid)
            killed.append(next(iter(pids.values())))
            os.kill(killed[0], signal.SIGKILL)

    with cluster(scheduler.scheduler_address) as (executor, in_flight):
        summary = write(tmp_path, executor=executor, in_flight=in_flight, progress=kill)
    assert len(killed) == 1
    assert summary.finished == PARTS
    assert contents(tmp_path) == alone


class Stopped(Exception):
    """A run that is cut off."""


@pytest.mark.slow
def test_a_run_that_was_cut_off_goes_on_where_it_ended(
    scheduler: Any, alone: dict[str, bytes], tmp_path: Path
) -> None:
    def stop(summary: TableSummary) -> None:
        if summary.made == 5:
            raise Stopped

    with pytest.raises(Stopped), cluster(scheduler.scheduler_address) as (executor, in_flight):
        write(tmp_path, executor=executor, in_flight=in_flight, progress=stop)
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.parquet")}
    assert len(before) == 5
    with cluster(scheduler.scheduler_address) as (executor, in_flight):
        summary = write(tmp_path, executor=executor, in_flight=in_flight)
    assert (summary.made, summary.finished) == (PARTS - 5, PARTS)
    assert all(path.stat().st_mtime_ns == time for path, time in before.items())
    assert contents(tmp_path) == alone


@pytest.mark.slow
def test_two_processes_make_the_same_bits(alone: dict[str, bytes], tmp_path: Path) -> None:
    with local(2) as (executor, in_flight):
        assert in_flight == 4
        write(tmp_path, executor=executor, in_flight=in_flight)
    assert contents(tmp_path) == alone


def test_one_process_needs_no_pool() -> None:
    with local(1) as (executor, in_flight):
        assert (executor, in_flight) == (None, 1)


def test_a_scheduler_that_is_not_there_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("planner.plans.executors.TIMEOUT_S", 0.2)
    expected = "cluster: no scheduler at tcp://127.0.0.1:9; accepted: an address as tcp://host:8786"
    with pytest.raises(NoCluster, match=expected), cluster("tcp://127.0.0.1:9"):
        pass


def test_an_address_that_is_none_is_one_line() -> None:
    with (
        pytest.raises(NoCluster, match="cluster: no scheduler at nonsense://x"),
        cluster("nonsense://x"),
    ):
        pass
