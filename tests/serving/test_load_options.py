"""Loads as a shell user writes them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from planner.cli import main
from planner.commands.loads import InvalidLoad, lengths
from tests.test_cli import answered, refused

SERVED = [
    "plan",
    "meta-llama/Llama-3.1-70B-Instruct",
    "--gpu",
    "h200-sxm",
    "--tp",
    "4",
    "--concurrency",
    "8",
    "--osl",
    "256",
]


def served(capsys: pytest.CaptureFixture[str], *more: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(answered(capsys, *SERVED, *more, "--json"))
    return found


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("1024", 1024),
        ("lognormal:1024:0.6", {"lognormal": {"mean": 1024, "cv": 0.6}}),
        ("uniform:100:2000", {"uniform": {"low": 100, "high": 2000}}),
    ],
)
def test_a_length_is_echoed_as_understood(
    text: str, found: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    assert served(capsys, "--isl", text)["scenario"]["isl"] == found


def test_a_file_of_lengths_is_a_trace(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "lengths.txt"
    file.write_text("512\n1536\n\n 1024 \n", "utf-8")
    answer = served(capsys, "--isl", f"@{file}")
    assert answer["scenario"]["isl"] == {"trace": [512, 1536, 1024]}
    assert answer["serving"]["isl"] == 1024
    assert "1024 in, 256 out" in answered(capsys, *SERVED, "--isl", f"@{file}")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("many", ["isl", "many", "lognormal:MEAN:CV", "@FILE"]),
        ("lognormal:1024", ["isl", "lognormal:1024", "lognormal:MEAN:CV"]),
        ("lognormal:nan:1", ["isl", "nan"]),
        ("lognormal:1024:-1", ["isl.lognormal.cv", "-1"]),
        ("uniform:9:3", ["isl.uniform", "high is below low"]),
        ("0", ["isl", "0"]),
        ("@", ["isl", "@FILE"]),
        ("@no-such-file", ["isl", "no-such-file", "@FILE"]),
    ],
)
def test_bad_lengths_are_one_line(
    text: str, words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    line = refused(capsys, *SERVED, "--isl", text)
    for word in words:
        assert word in line


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", ["isl"]),
        (b"100\ntwo\n", ["isl", "line 2", "two"]),
        (b"100\n-5\n", ["isl", "line 2", "-5"]),
        (b"9" * 5000, ["isl", "line 1"]),
        (b"\xff\xfe\x00", ["isl", "not text"]),
        (b"1\n" * 100_001, ["isl.trace", "100000"]),
        (b" " * 3_000_000, ["isl", "too long"]),
    ],
)
def test_bad_files_are_one_line(
    content: bytes, words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "lengths.txt"
    file.write_bytes(content)
    line = refused(capsys, *SERVED, "--isl", f"@{file}")
    for word in words:
        assert word in line


def test_the_parser_stands_alone() -> None:
    assert lengths("uniform:1:2") == {"uniform": {"low": 1.0, "high": 2.0}}
    with pytest.raises(InvalidLoad, match="accepted"):
        lengths("1:2:3")


def test_comparisons_read_the_same_texts(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("litestar", reason="the service is an extra")
    base = "model=meta-llama/Llama-3.1-70B-Instruct,gpu=h200-sxm,tp=4,concurrency=8,osl=256"
    main(["compare", f"{base},isl=1024", f"{base},isl=lognormal:1024:1", "--json"])
    (attribution,) = json.loads(capsys.readouterr().out)["attributions"]
    assert [step["fields"] for step in attribution["steps"]] == [["isl"]]
    assert attribution["steps"][0]["after"] == {"isl": {"lognormal": {"mean": 1024, "cv": 1}}}
