"""Commands about jobs and workspaces, in this process."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from api.commands import jobs, work, workspace
from tests.api.conftest import QUESTION, make_settings, started
from tests.api.server import serving

SWEEP: dict[str, Any] = {"scenario": {**QUESTION, "tags": []}, "tp": [4, 8]}


@pytest.fixture
def local(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory with a local store."""
    monkeypatch.setenv("PLANNER_DATABASE_URL", f"sqlite:///{tmp_path / 'cli.db'}")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(command: Any, *arguments: str) -> Result:
    result = CliRunner().invoke(command, arguments)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


@pytest.mark.slow
def test_a_job_is_done_while_one_waits(local: Path) -> None:
    (local / "q.json").write_text(json.dumps(SWEEP))
    done = run(jobs.command, "run", "sweep", "q.json", "--result", "csv", "--output", "out.csv")
    assert done.exit_code == 0, done.output
    header, *rows = (local / "out.csv").read_text().splitlines()
    assert header.startswith("gpu,tp,weights,kv,batch,context")
    assert len(rows) == 4  # two splits, two batches
    listed = json.loads(run(jobs.command, "list", "--json").output)
    assert [(job["kind"], job["state"], job["done"]) for job in listed] == [("sweep", "done", 2)]
    cancelled = run(jobs.command, "cancel", listed[0]["id"])
    assert cancelled.output == f"{listed[0]['id']} done\n"


def test_what_is_refused_is_one_line(local: Path) -> None:
    (local / "q.json").write_text(json.dumps({**SWEEP, "gpu": ["none-such"]}))
    (local / "broken.json").write_text("{")
    for arguments, code, named in (
        (("run", "sweep", "q.json"), 1, "none-such"),
        (("run", "sweep", "broken.json"), 2, "question: broken.json"),
        (("run", "sweep", "q.json", "--result", "parquet"), 2, "--output FILE"),
        (("run", "export", "--no-wait"), 2, "no-wait"),
        (("run", "everything"), 2, "everything"),
    ):
        result = run(jobs.command, *arguments)
        assert result.exit_code == code, result.output
        assert named in result.output


def save(local: Path, *names: str) -> None:
    with started(make_settings(f"sqlite:///{local / 'cli.db'}")) as client:
        for name in names:
            assert client.post("/v1/scenarios", json={**QUESTION, "name": name}).status_code == 201


@pytest.mark.slow
def test_an_export_is_imported_elsewhere_once(local: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save(local, "one", "two", "three")
    monkeypatch.setattr(workspace, "PAGE", 2)
    assert run(workspace.command, "export", "all.lines").exit_code == 0
    whole = (local / "all.lines").read_text().splitlines()
    assert sum(line.startswith('{"scenario"') for line in whole) == 3
    assert not (local / "all.lines.partial").exists()
    monkeypatch.setenv("PLANNER_DATABASE_URL", f"sqlite:///{local / 'other.db'}")
    assert "3 scenarios" in run(workspace.command, "import", "all.lines").output
    assert "3 skipped" in run(workspace.command, "import", "all.lines").output
    with started(make_settings(f"sqlite:///{local / 'other.db'}")) as client:
        items = client.get("/v1/scenarios").json()["items"]
    assert [item["name"] for item in items] == ["one", "two", "three"]


def test_an_export_that_broke_off_goes_on(local: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save(local, "one", "two", "three")
    monkeypatch.setattr(workspace, "PAGE", 1)
    run(workspace.command, "export", "whole")
    lines = (local / "whole").read_bytes().splitlines(keepends=True)
    cut = next(i for i, line in enumerate(lines) if line.startswith(b'{"cursor"')) + 1
    (local / "half.partial").write_bytes(b"".join(lines[:cut]) + lines[cut + 1][:40])
    run(workspace.command, "export", "half")

    def scenarios(name: str) -> list[str]:
        text = (local / name).read_text().splitlines()
        return [line for line in text if line.startswith('{"scenario"')]

    assert scenarios("half") == scenarios("whole")
    assert len(scenarios("half")) == 3


def test_a_worker_without_jobs_says_so(local: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLANNER_LANE_JOBS", "0")
    result = run(work.command)
    assert (result.exit_code, "PLANNER_LANE_JOBS" in result.output) == (2, True)
    assert not (local / "cli.db").exists()


@pytest.mark.slow
def test_a_worker_of_its_own_does_jobs_and_a_killed_one_is_replaced(database_url: str) -> None:
    """The service does none: a worker is killed at its job, and the next one does it again."""
    inherited = {k: v for k, v in os.environ.items() if not k.startswith("PLANNER_")}
    environment = {**inherited, "PLANNER_DATABASE_URL": database_url, "PYTHONUNBUFFERED": "1"}
    script = "from api.commands.work import command; command()"

    def worker() -> subprocess.Popen[bytes]:
        started_ = subprocess.Popen(
            [sys.executable, "-c", script],
            env=environment,
            stdout=subprocess.PIPE,
            start_new_session=True,
        )
        assert started_.stdout is not None
        assert started_.stdout.readline() == b"working on jobs, 1 at once\n"
        return started_

    with started(make_settings(database_url)) as client:
        question = {
            "scenario": QUESTION,
            "gpu": ["h100-sxm5", "h200-sxm", "b200-sxm"],
            "tp": [1, 2, 4, 8],
            "batch": list(range(1, 101)),
            "context": list(range(1, 101)),
        }
        ident = client.post("/v1/jobs", json={"kind": "sweep", "question": question}).json()["id"]
        first = worker()
        while client.get(f"/v1/jobs/{ident}").json()["state"] == "queued":
            time.sleep(0.02)
        os.killpg(first.pid, signal.SIGKILL)
        first.communicate()
        second = worker()
        end = time.monotonic() + 120
        while (job := client.get(f"/v1/jobs/{ident}").json())["finished_at"] is None:
            assert time.monotonic() < end, job
            time.sleep(0.2)
        assert job["state"] == "done"
        assert client.get(f"/v1/jobs/{ident}/result").json()["rows"] == 3 * 4 * 100 * 100
        second.send_signal(signal.SIGTERM)
        second.communicate(timeout=30)
        assert second.returncode == 0


@pytest.mark.slow
def test_commands_speak_to_a_server(tmp_path: Path, local: Path) -> None:
    url = f"sqlite:///{tmp_path / 'server.db'}"
    (local / "q.json").write_text(json.dumps(SWEEP))
    with serving(url, tmp_path / "log") as server:
        done = run(jobs.command, "run", "sweep", "q.json", "--server", server.base)
        assert done.exit_code == 0, done.output
        assert json.loads(done.output)["rows"] == 4
        later = run(jobs.command, "run", "export", "--no-wait", "--server", server.base)
        assert len(later.output.strip()) == 36
