"""`check`, `observe` and `manifest` in a shell: exit codes, files, streams, what is printed."""

from __future__ import annotations

import io
import json
import os
import sys
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import fromstring

import pytest

from planner.answer import Interval
from planner.cli import main
from planner.commands.files import read_texts
from planner.handover.baseline import Regression
from planner.handover.checking import CheckQuestion, CheckReport, check
from planner.handover.findings import finding
from planner.handover.outputs import FORMATS, limit_text, summary
from planner.handover.refusal import Unreadable
from planner.handover.scraping import is_address, scrape
from planner.handover.verdicts import CheckedLimit
from planner.plans.planning import plan
from planner.scenario import Scenario
from tests.handover.fake_engine import Engine

MODEL = "Qwen/Qwen2.5-7B-Instruct"
LOAD = ["--isl", "1000", "--osl", "200", "--concurrency", "16"]
SCENARIO = Scenario(model=MODEL, gpu="h100-sxm5", engine="vllm", isl=1000, osl=200, concurrency=16)


def run(*words: str | Path) -> int:
    try:
        main([str(word) for word in words])
    except SystemExit as error:
        return int(str(error.code or 0))
    return 0


@pytest.fixture
def start(tmp_path: Path) -> Path:
    file = tmp_path / "start.sh"
    file.write_text(f"vllm serve {MODEL} --max-num-seqs 64\n")
    return file


def test_a_check_prints_verdict_limits_and_fixes(
    start: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("check", start, "--gpu", "h100-sxm5", *LOAD, "--tpot-ms", "0.1") == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith(f"{start}:1: FAIL: {MODEL} with vllm, probability 0%; binds: ")
    assert lines[1].startswith("  fail: TPOT ")
    assert lines[1].endswith("limit 100 µs: met with probability 0%")


def test_a_better_baseline_fails_the_file(
    start: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = tmp_path / "before.sh"
    before.write_text(start.read_text().replace("\n", " --kv-cache-dtype fp8\n"))
    start.write_text(start.read_text().replace("\n", " -tp 4\n"))
    words = ["check", start, "--gpu", "h100-sxm5", *LOAD, "--baseline", before]
    assert run(*words) == 1
    assert "regression: tokens_per_s_per_gpu is" in capsys.readouterr().out
    assert run(*words, "--regression", "9") == 0


def test_json_is_a_form(start: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["check", start, "--gpu", "h100-sxm5", *LOAD]
    assert run(*words, "--json") == run(*words, "--format", "json") == 0
    first, second = capsys.readouterr().out.split("\n}\n", 1)
    assert json.loads(first + "}") == json.loads(second)


def test_files_are_read_as_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Windows' line ends and byte order mark are no part of it; `-` is the standard input."""
    file = tmp_path / "a"
    file.write_bytes(b"\xef\xbb\xbfa\r\nb\r\n")
    assert read_texts([file]) == {str(file): "a\nb\n"}
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"piped")))
    assert read_texts([Path("-")]) == {"-": "piped"}


@pytest.mark.parametrize(
    ("content", "message"),
    [(b"\xff\xfe", "not text in UTF-8"), (b"x" * 101, "more than 100 bytes")],
)
def test_files_that_are_not_read(content: bytes, message: str, tmp_path: Path) -> None:
    file = tmp_path / "a"
    file.write_bytes(content)
    with pytest.raises(Unreadable, match=message):
        read_texts([file], 100)


def seen(tmp_path: Path, name: str, requests: int, **fields: Any) -> Path:
    state = plan(SCENARIO).serving
    assert state is not None
    times = {"ttft_s": state.ttft_s.p50, "tpot_s": state.tpot_s.p50}
    text = Engine(
        **{"engine": "vllm", "requests": requests, "isl": 1000, "osl": 200, "running": 16}
        | times
        | fields
    ).text()
    file = tmp_path / name
    file.write_text(text)
    return file


@pytest.fixture
def question(tmp_path: Path) -> Path:
    file = tmp_path / "scenario.json"
    file.write_text(SCENARIO.model_dump_json())
    return file


def test_an_engine_as_planned(
    question: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Between two files 640 requests were counted; at 16 clients each takes its own cycle."""
    state = plan(SCENARIO).serving
    assert state is not None
    first, second = seen(tmp_path, "a", 100), seen(tmp_path, "b", 740)
    elapsed = 640 / state.requests_per_s
    words = ["observe", first, second, "--scenario", question, "--seconds", f"{elapsed:.6f}"]
    assert run(*words) == 0
    text = capsys.readouterr().out
    assert text.startswith("As planned.")
    assert "to calibrate by it: planner calibrate --add observed.json --gpu h100-sxm5" in text
    saved = tmp_path / "saved.json"
    assert run(*words, "--save", saved) == 0
    result = json.loads(saved.read_text())
    assert (result["completed"], result["max_concurrency"]) == (640, 16)
    assert f"--add {saved} --gpu" in capsys.readouterr().out


def test_an_engine_that_drifted(
    question: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    slow = seen(tmp_path, "a", 640, isl=2000, tpot_s=1.0)
    assert run("observe", slow, "--scenario", question) == 1
    assert capsys.readouterr().out.startswith("Drifted: workload and prediction.")
    assert run("observe", slow, "--scenario", question, "--json") == 1
    assert json.loads(capsys.readouterr().out)["drifted"] == ["workload", "prediction"]


def test_a_plan_in_json_is_a_scenario(question: Path, tmp_path: Path) -> None:
    question.write_text(plan(SCENARIO).model_dump_json())
    assert run("observe", seen(tmp_path, "a", 640), "--scenario", question) in (0, 1)


def test_the_age_of_a_process_says_over_what(
    question: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Read when the file was written, 80 s after the process began: 640 requests are 8 a second."""
    file = seen(tmp_path, "a", 640)
    file.write_text(file.read_text() + "process_start_time_seconds 1000000\n")
    os.utime(file, (1_000_080, 1_000_080))
    run("observe", file, "--scenario", question, "--json")
    assert json.loads(capsys.readouterr().out)["observed"]["requests_per_s"] == 8


@pytest.mark.parametrize(
    ("sources", "message"),
    [
        (["a", "b", "c"], "sources: accepted: one URL, or one or two files"),
        (["http://127.0.0.1:1", "http://127.0.0.1:1"], "sources: accepted: one URL"),
        (["a", "http://127.0.0.1:1"], "sources: accepted: one URL"),
        (["https://127.0.0.1"], "accepted: http:// and a local address"),
        (["nothing.txt"], "nothing.txt"),
    ],
)
def test_sources_that_are_none(
    sources: list[str], message: str, question: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("observe", *sources, "--scenario", question) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.strip().count("\n") == 0


def test_too_little_is_not_saved(
    question: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "little"
    file.write_text("vllm:num_requests_running 1\n")
    assert run("observe", file, "--scenario", question, "--save", tmp_path / "x") == 2
    assert "save: too little was seen" in capsys.readouterr().err
    assert not (tmp_path / "x").exists()


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("https://localhost/metrics", "accepted: http:// and a local address"),
        ("http:///metrics", "accepted: http:// and a local address"),
        ("http://8.8.8.8/metrics", "8.8.8.8 is not local; accepted: loopback or a private"),
        ("http://169.254.169.254/latest/meta-data", "is not local"),  # a cloud's own metadata
        ("http://127.0.0.1:99999", "url: 127.0.0.1: "),
        ("http://[::1", "url: "),
        ("http://127.0.0.1:9", "url: 127.0.0.1:9: "),
    ],
)
def test_addresses_that_are_not_looked_at(url: str, message: str) -> None:
    assert is_address(url)
    with pytest.raises(Unreadable) as refused:
        scrape(url)
    assert message in str(refused.value)


def test_what_is_no_address() -> None:
    assert not is_address("metrics.txt")
    assert not is_address("ftp://127.0.0.1/x")


def test_a_manifest_is_written_and_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["manifest", "write", MODEL, "--gpu", "h100-sxm5", "--engine", "vllm", *LOAD]
    assert run(*words, "--as", "deployment", "--autoscale", "hpa", "--max-replicas", "3") == 0
    written = capsys.readouterr()
    assert "note: a replica is within the limits up to" in written.err
    assert "maxReplicas: 3" in written.out
    file = tmp_path / "llm.yaml"
    file.write_text(written.out)
    assert run("manifest", "read", file) == 0
    read = capsys.readouterr().out
    assert "isl" in read
    assert "noted" in read
    assert run("manifest", "read", file, "--json") == 0
    assert json.loads(capsys.readouterr().out)["scenario"]["concurrency"] == 16


def test_what_a_file_leaves_out_is_told(start: Path, capsys: pytest.CaptureFixture[str]) -> None:
    start.write_text(f"vllm serve {MODEL} --nonsense 3 \\\n  --port 80\n")
    assert run("manifest", "read", start, "--gpu", "l4") == 0
    lines = capsys.readouterr().out.splitlines()
    assert "not understood: line 1: --nonsense 3: not an argument of vllm 0.33.0" in lines
    assert "not used: line 2: --port 80" in lines


def report(**changes: Any) -> CheckReport:
    """A report with one finding, one limit and one regression of typed figures."""
    whole = check({"a,b:c.sh": f"vllm serve {MODEL}\n"}, CheckQuestion(gpu="h100-sxm5"))
    limit = CheckedLimit(
        quantity="tpot_s",
        limit=0.02,
        predicted=Interval(p10=0.0081, p50=0.0106, p90=0.0152),
        probability=0.75,
        verdict="near",
    )
    worse = Regression(
        figure="tpot_s", baseline=0.01, value=0.0106, worse=0.06, because="tp 2 to 1 | 50%"
    )
    fields: dict[str, Any] = {
        "findings": [finding("gpus_idle", 3, "4 GPUs | 100% <of> two", "request\n2 GPUs")],
        "limits": [limit],
        "regressions": [worse],
        "probability": 0.75,
        "verdict": "fail",
        "binds": "memory",
    }
    one = whole.checks[0].model_copy(update=fields | changes)
    return whole.model_copy(update={"checks": [one], "verdict": one.verdict})


def test_a_limit_in_words() -> None:
    """Times with their own unit; a rate per second."""
    (one,) = report().checks
    assert limit_text(one.limits[0]) == (
        "TPOT 10.6 ms (8.1 ms – 15.2 ms), limit 20 ms: met with probability 75%"
    )
    rate = one.limits[0].model_copy(
        update={
            "quantity": "requests_per_s",
            "limit": 12.0,
            "predicted": Interval(p10=8, p50=10, p90=12),
        }
    )
    assert limit_text(rate).startswith("requests per second 10/s (8/s – 12/s), limit 12/s")
    assert summary(one) == f"FAIL: {MODEL} with vllm, probability 75%; binds: memory"
    assert "probability" not in summary(report(probability=None).checks[0])


def test_github_reads_properties_and_data_apart() -> None:
    """In a property `,` and `:` are escaped as well (workflow commands of GitHub Actions)."""
    lines = FORMATS["github"](report()).splitlines()
    assert lines[0] == (
        "::warning file=a%2Cb%3Ac.sh,line=3,title=gpus_idle::"
        "4 GPUs | 100%25 <of> two. Fix: request%0A2 GPUs"
    )
    assert [line.partition(" ")[0] for line in lines] == [
        "::warning",
        "::warning",
        "::error",
        "::notice",
    ]


def test_markdown_keeps_a_table_whole() -> None:
    text = FORMATS["markdown"](report())
    assert "| 3 | warning | 4 GPUs \\| 100% &lt;of> two `gpus_idle` | request 2 GPUs |" in text
    assert "- regression: tpot_s 6.0% worse: tp 2 to 1 \\| 50%" in text
    assert "- near: TPOT 10.6 ms" in text


def test_junit_counts_what_fails() -> None:
    suite = fromstring(FORMATS["junit"](report()))  # noqa: S314 - our own text
    assert (suite.get("tests"), suite.get("failures")) == ("1", "1")
    (case,) = suite
    assert case.get("classname") == "a,b:c.sh"
    assert "[limit_near]" in (case[0].text or "")
    passing = fromstring(FORMATS["junit"](report(verdict="near")))  # noqa: S314 - our own text
    assert passing.get("failures") == "0"
    assert passing[0][0].tag == "system-out"


def test_sarif_has_levels_and_places() -> None:
    (one,) = json.loads(FORMATS["sarif"](report()))["runs"]
    levels = {result["ruleId"]: result["level"] for result in one["results"]}
    assert levels == {"gpus_idle": "warning", "limit_near": "warning", "regression": "error"}
    place = one["results"][0]["locations"][0]["physicalLocation"]
    assert place["region"] == {"startLine": 3}
