"""Traces of requests line by line: published forms, times with offsets, and what is no trace.

Forms are those that the Azure, Mooncake and ServeGen publications describe; rows are made up.
"""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from planner.workload.traces import Event, InvalidTrace, read_trace

AZURE = "TIMESTAMP,ContextTokens,GeneratedTokens\n"
PACKED = gzip.compress((AZURE + "0,1,1\n" * 500).encode(), mtime=0)
SERVEGEN = "start_s,requests_per_s,isl_mean,osl_mean\n"


def events(text: str | bytes, tmp_path: Path, name: str = "trace") -> list[Event]:
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return list(read_trace(path))


def log(timestamp: Any, inputs: Any = 10, outputs: Any = 20) -> str:
    fields = {"timestamp": timestamp, "input_tokens": inputs, "output_tokens": outputs}
    return json.dumps(fields) + "\n"


def test_each_window_has_lengths_of_its_own(tmp_path: Path) -> None:
    """2/s over 100 s are 200 requests of 500 tokens; those of 50 tokens begin with the second."""
    text = SERVEGEN + "0,2,500,100\n100,3,50,\n300,1,,30\n"
    assert events(text, tmp_path) == [
        Event(0, 500, 100, 200, 100),
        Event(100, 50, 100, 600, 200),
        # The last window is as long as the one before it.
        Event(300, 50, 30, 200, 200),
    ]


def test_one_window_alone_has_no_length(tmp_path: Path) -> None:
    assert events(SERVEGEN + "0,2,500,100\n", tmp_path) == []


def test_columns_may_stand_in_any_order(tmp_path: Path) -> None:
    text = "id, GeneratedTokens ,TIMESTAMP,ContextTokens\n7,20,3.5,10\n\n8,21,4.5,11\n"
    assert events(text, tmp_path) == [Event(3.5, 10, 20), Event(4.5, 11, 21)]


@pytest.mark.parametrize(
    ("first", "second", "gap_s"),
    [
        (1.5, 4, 2.5),
        ("1.5", "4", 2.5),
        ("2026-12-01T10:00:00", "2026-12-01T10:00:02", 2.0),
        ("2026-12-01 10:00:00.25", "2026-12-01 10:00:01.5", 1.25),
        ("2023-11-16 18:15:46.6805900", "2023-11-16 18:15:50.9951690", 4.314579),
        ("2026-12-01T10:00:00Z", "2026-12-01T10:00:00.5Z", 0.5),
        # Ten in Berlin is nine in UTC, summer being over.
        ("2026-12-01T09:00:00Z", "2026-12-01T10:00:00.5+01:00", 0.5),
        ("2026-11-30T23:59:59", "2026-12-01T00:00:01", 2.0),
    ],
)
def test_times(first: Any, second: Any, gap_s: float, tmp_path: Path) -> None:
    one, other = events(log(first) + log(second), tmp_path)
    assert other.at_s - one.at_s == pytest.approx(gap_s, abs=1e-5)


def test_a_date_without_an_offset_is_in_utc(tmp_path: Path) -> None:
    """1 January 1970, ten seconds after midnight."""
    (one,) = events(log("1970-01-01T00:00:10"), tmp_path)
    assert one.at_s == 10.0


def test_milliseconds_of_mooncake(tmp_path: Path) -> None:
    text = '{"timestamp": 2500, "input_length": 7, "output_length": 8, "hash_ids": []}\n\n'
    assert events(text, tmp_path) == [Event(2.5, 7, 8)]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (log(0) + log(1, "many"), "line 2 of .* is "),
        (log(0, None), "line 1 of "),
        (log(0, [3]), "line 1 of "),
        (log(float("nan")), "line 1 of "),
        (log(0, float("inf")), "line 1 of "),
        (log("soon"), "line 1 of "),
        ('{"timestamp": 0, "input_length": "x", "output_length": 1}\n', "line 1 of "),
        (log(0) + "[1]\n", "line 2 of "),
        (log(0) + "3\n", "line 2 of "),
        (log(0) + "{broken\n", "line 2 of "),
        (AZURE + "0,1\n", "line 2 of "),
        (AZURE + "0,nan,1\n", "line 2 of "),
        (AZURE + "0,1,1\n1,1,.¹\n", "line 3 of "),
        (SERVEGEN + "0,inf,1,1\n", "line 2 of "),
        (SERVEGEN + "0\n", "line 2 of "),
        (SERVEGEN + "0,-1,1,1\n", "line 2 of "),
        (SERVEGEN + "0,1,1,1\n60,1,1,1\n60,1,1,1\n", "line 4 of "),
        (log(10**400), "line 1 of "),
        ("time,tokens\n1,2\n", "has the columns time,tokens; accepted: CSV with TIMESTAMP"),
        (AZURE + '0,"' + "1" * 200_000 + '",1\n', "cannot read .*: it is not text"),
    ],
)
def test_what_is_no_trace_names_its_line(text: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidTrace, match=f"^trace: .*{message}") as refused:
        events(text, tmp_path)
    assert "\n" not in str(refused.value)
    assert len(str(refused.value)) < 500 + len(str(tmp_path))


@pytest.mark.parametrize(
    ("content", "name", "reason"),
    [
        (b"\xff\xfe\x00", "trace", "it is not text"),
        (b"no gzip at all", "trace.gz", "it is not text"),
        (PACKED[:-12], "trace.gz", "it is not text"),
        (PACKED[:40] + b"\xff" * 60, "trace.gz", "it is not text"),
    ],
    ids=["bytes", "unpacked", "cut", "garbled"],
)
def test_files_that_are_no_text(content: bytes, name: str, reason: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidTrace, match=f"trace: cannot read .*: {reason}; accepted: CSV"):
        events(content, tmp_path, name)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(InvalidTrace, match=r"cannot read .*: No such file or directory; accepted"):
        list(read_trace(tmp_path / "none"))
