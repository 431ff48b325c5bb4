"""Shell text as words, metrics as samples, logs as loads: small texts whose meaning is known.

What a shell makes of a text is that of POSIX sh (Shell Command Language, 2.2 to 2.7).
"""

from __future__ import annotations

import json
import math
import shlex
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.handover.accesslog import access_log
from planner.handover.prometheus import EngineMetrics, MetricHistogram, metrics_of
from planner.handover.refusal import Unreadable
from planner.handover.shell import MOST_WORDS, Word, script, substituted
from planner.handover.workers import hosts_of


def words(text: str, **known: str) -> list[list[str]]:
    return [[word.text for word in command] for command in script(text, known=known).commands]


@pytest.mark.parametrize(
    ("text", "commands"),
    [
        ("vllm serve x --tp 4", [["vllm", "serve", "x", "--tp", "4"]]),
        ("a 'b c' \"d e\" f\\ g", [["a", "b c", "d e", "f g"]]),
        ("a'b'\"c\"d", [["abcd"]]),
        ("a; b && c | d & e", [["a"], ["b"], ["c"], ["d"], ["e"]]),
        ("a \\\n  b\nc", [["a", "b"], ["c"]]),
        ("a # comment; b\nc", [["a"], ["c"]]),
        ("a#b", [["a#b"]]),
        ("", []),
        ("  \n\t# only a comment\n", []),
        ("''", [[""]]),
        ("(a; b)", [["a"], ["b"]]),
        # Single quotes keep everything; double ones let a few be escaped.
        ("a '\\n$X'", [["a", "\\n$X"]]),
        ('a "x\\"y\\\\z"', [["a", 'x"y\\z']]),
        ("a > file", [["a", ">", "file"]]),
        # Assignments alone are no command, and hold for those after them.
        ("X=1", []),
        # A shell expands words before it assigns.
        ("X=1 a $X", [["a", "$X"]]),
        ("export X=1 Y=2\na $X ${Y}", [["a", "1", "2"]]),
    ],
)
def test_words_of_a_text(text: str, commands: list[list[str]]) -> None:
    assert words(text) == commands


@given(st.lists(st.text("ab c'\"\\$#;|&\n", max_size=8), min_size=1, max_size=6))
@settings(max_examples=60)
def test_what_is_quoted_comes_back_as_it_was(texts: list[str]) -> None:
    """`shlex.quote` writes a word that any POSIX shell reads as itself."""
    line = " ".join(["command", *map(shlex.quote, texts)])
    assert words(line) == [["command", *texts]]


@given(st.lists(st.text("abc-=./_0", min_size=1, max_size=8), min_size=1, max_size=8))
@settings(max_examples=60)
def test_plain_words_are_those_of_the_standard_library(texts: list[str]) -> None:
    line = "run " + " ".join(texts)
    assert words(line) == [shlex.split(line)]


@pytest.mark.parametrize(
    ("text", "known", "result", "unknown"),
    [
        ("$TP", {"TP": "4"}, "4", False),
        ("${TP}x", {"TP": "4"}, "4x", False),
        ("$(TP)", {"TP": "4"}, "4", False),  # as Kubernetes writes it
        ("${TP:-8}", {}, "8", False),
        ("${TP:-8}", {"TP": "4"}, "4", False),
        ("${TP:-}", {}, "", False),
        ("$TP", {}, "$TP", True),
        ("a$(date -u)", {}, "a$(date -u)", True),
        ("`date`", {}, "`date`", True),
        ("plain", {"plain": "x"}, "plain", False),
    ],
)
def test_variables(text: str, known: dict[str, str], result: str, unknown: bool) -> None:
    assert substituted(text, known) == (result, unknown)


def test_words_know_their_line_and_whether_they_are_open() -> None:
    (first, second) = script("a \\\n  b\n\nc $X", first_line=10).commands
    assert [(word.text, word.line) for word in first] == [("a", 10), ("b", 11)]
    assert [(word.text, word.line, word.open) for word in second] == [
        ("c", 13, False),
        ("$X", 13, True),
    ]


def test_a_here_document_is_a_file() -> None:
    result = script("cat > config.yaml << 'EOF'\ntp: 4\nmore\nEOF\nserve config.yaml\n")
    assert result.files == {"config.yaml": ("tp: 4\nmore\n", 2)}
    assert [[word.text for word in command] for command in result.commands] == [
        ["cat", ">", "config.yaml"],
        ["serve", "config.yaml"],
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a 'b", "line 1: a quote ' is never closed"),
        ('a\n"b', 'line 2: a quote " is never closed'),
        ("a " * (MOST_WORDS + 1), f"line 1: more than {MOST_WORDS} words"),
    ],
)
def test_what_no_shell_reads(text: str, message: str) -> None:
    with pytest.raises(Unreadable, match=message):
        script(text)


METRICS = """# HELP some help
# TYPE requests_total counter
requests_total{model="m",reason="stop"} 90
requests_total{model="m",reason="length"} 10 1700000000
running 7
temperature NaN
tpot_bucket{le="0.01"} 20
tpot_bucket{le="0.02"} 80
tpot_bucket{le="+Inf"} 100
tpot_sum 1.5
tpot_count 100
"""


def test_samples_of_a_scrape() -> None:
    metrics = metrics_of(METRICS, "x")
    assert metrics.total(["missing", "requests_total"]) == 100
    assert metrics.total(["running"]) == 7
    assert metrics.total(["missing"]) is None
    assert metrics.labels(["requests_total"]) == {"model": "m", "reason": "stop"}
    assert metrics.labels(["missing"]) == {}
    assert "temperature" not in metrics.samples


@pytest.mark.parametrize(
    ("share", "value"),
    [
        # 20 observations up to 10 ms and 60 from there to 20 ms, evenly.
        (0.1, 0.005),
        (0.2, 0.01),
        (0.5, 0.015),
        (0.8, 0.02),
        # Beyond the last bound nothing is known.
        (0.9, None),
    ],
)
def test_quantiles_of_a_histogram(share: float, value: float | None) -> None:
    histogram = metrics_of(METRICS, "x").histogram(["tpot"])
    assert histogram is not None
    assert histogram.mean == 0.015
    found = histogram.quantile(share)
    assert found == (None if value is None else pytest.approx(value))


def test_histograms_add_up_over_labels() -> None:
    text = "".join(
        f't_bucket{{rank="{r}",le="1"}} {n}\nt_bucket{{rank="{r}",le="+Inf"}} {n}\n'
        f't_sum{{rank="{r}"}} {n}\nt_count{{rank="{r}"}} {n}\n'
        for r, n in ((0, 2), (1, 6))
    )
    histogram = metrics_of(text, "x").histogram(["t"])
    assert histogram == MetricHistogram(8, 8, ((1.0, 8.0), (math.inf, 8.0)))
    assert MetricHistogram(0, 0, ()).mean is None
    assert metrics_of("a 1", "x").histogram(["t"]) is None


@given(st.lists(st.integers(0, 50), min_size=1, max_size=6), st.lists(st.floats(0, 1), min_size=2))
def test_quantiles_rise(counts: list[int], shares: list[float]) -> None:
    bounds, upto = [], 0
    for index, count in enumerate(counts, 1):
        upto += count
        bounds.append((float(index), float(upto)))
    histogram = MetricHistogram(float(upto), 1.0, tuple(bounds))
    found = [histogram.quantile(share) for share in sorted(shares)]
    known = [value for value in found if value is not None]
    assert known == sorted(known)
    assert all(0 <= value <= len(counts) for value in known)


def test_what_was_counted_between_two_scrapes() -> None:
    """90 + 10 less 40 + 0; a counter that fell started again; a gauge is the later one's."""
    before = metrics_of(
        'requests_total{reason="stop",model="m"} 40\nrunning 3\nerrors_total 9\n', "x"
    )
    after = metrics_of(METRICS + "errors_total 2\n", "x").since(before)
    assert after.total(["requests_total"]) == 60
    assert after.total(["running"]) == 7
    assert after.total(["errors_total"]) == 2
    assert EngineMetrics().since(before).samples == {}


@pytest.mark.parametrize("line", ["no sample at all!", "name value", '{a="b"} 1', "a{b} x"])
def test_what_is_no_sample_names_its_line(line: str) -> None:
    with pytest.raises(Unreadable, match="scrape: line 2 is no Prometheus sample"):
        metrics_of(f"a 1\n{line}\n", "scrape")


def line(**fields: Any) -> str:
    return json.dumps({"path": "/v1/completions", "status": 200, **fields})


def test_a_log_of_json_lines() -> None:
    log = access_log(
        [
            line(ts=100.0, prompt_tokens=100, completion_tokens=10, ttft_ms=50),
            line(ts=104.0, prompt_tokens=300, completion_tokens=30),
            line(ts=110.0, status=500, prompt_tokens=9999),
            line(ts=120.0, path="/health"),
            "no json",
            "[1, 2]",
        ],
        "x",
    )
    assert log.requests == 2
    assert log.seconds == 4.0
    assert log.mean("isl") == 200
    # Deviation of 100 over a mean of 200.
    assert log.spread("isl") == 0.5
    assert log.mean("ttft_ms") == 50
    assert log.spread("ttft_ms") is None
    assert log.mean("tpot_ms") is None


def test_a_log_in_the_common_format() -> None:
    log = access_log(
        [
            '1.2.3.4 - - [01/Dec/2026:10:00:00 +0000] "POST /v1/chat/completions HTTP/1.1" 200 12',
            '1.2.3.4 - - [01/Dec/2026:10:01:30 +0000] "POST /v1/completions?x=1 HTTP/1.1" 200 12',
            '1.2.3.4 - - [01/Dec/2026:10:02:00 +0000] "POST /v1/completions HTTP/1.1" 503 12',
            '1.2.3.4 - - [01/Dec/2026:10:03:00 +0000] "GET /metrics HTTP/1.1" 200 12',
        ],
        "x",
    )
    assert (log.requests, log.seconds) == (2, 90.0)


@pytest.mark.parametrize("lines", [[], ["x"], [line(path="/health")], [line(status=404)]])
def test_a_log_without_requests(lines: list[str]) -> None:
    with pytest.raises(Unreadable, match="log: no request in it; accepted: JSON lines"):
        access_log(lines, "log")


@pytest.mark.parametrize(
    ("text", "hosts"),
    [
        ("srun -N 2 trtllm-serve m", 2),
        ("srun -N4 --ntasks 32 trtllm-serve m", 4),
        ("/usr/bin/srun --nodes=3 trtllm-serve m", 3),
        ("srun --nodes 16 bash -c x", 16),
        ("srun -N 0 trtllm-serve m", 1),
        ("srun -N 2-4 trtllm-serve m", 1),  # a range says neither
        ("srun trtllm-serve m", 1),
        ("trtllm-serve m -N 2", 1),
        ("", 1),
    ],
)
def test_slurm_says_the_hosts(text: str, hosts: int) -> None:
    assert hosts_of([Word(each, 1) for each in text.split()]) == hosts
