"""Figures of benchmarks: read from what they print, kept run by run, drawn for one machine."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any
from xml.etree import ElementTree

import pytest

FOLDER = Path(__file__).parents[1] / "bench"


@pytest.fixture(scope="module")
def history() -> Iterator[ModuleType]:
    spec = spec_from_file_location("bench_history", FOLDER / "history.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    yield module
    del sys.modules[spec.name]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("cold `planner plan`, CPU time: 1.35", {"cold `planner plan`, CPU time": (1.35, "")}),
        (
            "plan, dense: 171 µs, at a new batch 262 µs",
            {"plan, dense": (171.0, "µs"), "plan, dense, at a new batch": (262.0, "µs")},
        ),
        (
            "1e+08 points as arrays: 4.10 s of a core, 24.4 million points/s, 69 MB at most",
            {
                "1e+08 points as arrays": (4.1, "s of a core"),
                "1e+08 points as arrays [million points/s]": (24.4, "million points/s"),
                "1e+08 points as arrays [MB at most]": (69.0, "MB at most"),
            },
        ),
        ("p99 of plans: 3.2 (4.5 ms idle)", {"p99 of plans": (3.2, "")}),
        (
            "search: 4,000 options; 0.31 s, again 1.2e-3 s",
            {
                "search": (4000.0, "options"),
                "search [s]": (0.31, "s"),
                "search, again": (0.0012, "s"),
            },
        ),
        ("nothing is measured here", {}),
        ("nor here: at all", {}),
    ],
)
def test_a_line_has_its_figures(
    history: ModuleType, line: str, expected: dict[str, tuple[float, str]]
) -> None:
    assert history.figures([line]) == expected


def test_a_heading_stands_over_the_lines_below_it(history: ModuleType) -> None:
    lines = ["8 clients, over a no-op (1234):", "  plans: 0.19", "  reads: 0.5", "other: 2"]
    assert history.figures(lines) == {
        "8 clients, over a no-op: plans": (0.19, ""),
        "8 clients, over a no-op: reads": (0.5, ""),
        "other": (2.0, ""),
    }


def test_runs_are_kept_one_after_another(history: ModuleType, tmp_path: Path) -> None:
    path = tmp_path / "history.json"
    assert history.read(path) == []
    for value in (1, 2):
        history.keep(history.entry("speed", [f"plan: {value} µs\n"]), path)
    runs = json.loads(path.read_text("utf-8"))
    assert [run["figures"] for run in runs] == [{"plan": [1.0, "µs"]}, {"plan": [2.0, "µs"]}]
    assert {"time", "commit", "machine", "load", "script"} < set(runs[0])
    assert list(tmp_path.iterdir()) == [path]


def test_a_drawing_is_of_one_machine(history: ModuleType) -> None:
    runs = [
        {"script": "speed", "machine": of, "figures": {"plan <a>": [value, "µs"]}}
        for of, value in (("here", 4.0), ("elsewhere", 900.0), ("here", 3.0))
    ]
    assert history.series(runs, "here") == {"speed: plan <a>": [(4.0, "µs"), (3.0, "µs")]}
    picture = history.drawn(runs, "here")
    root = ElementTree.fromstring(picture)  # noqa: S314 written a line above
    texts = ["".join(text.itertext()) for text in root.iter("{http://www.w3.org/2000/svg}text")]
    assert texts == ["here", "speed: plan <a>", "3 µs"]
    (line,) = root.iter("{http://www.w3.org/2000/svg}polyline")
    (_, first), (_, last) = (point.split(",") for point in line.attrib["points"].split())
    assert float(first) < float(last)  # less is lower, and zero is the foot of the row


@pytest.mark.parametrize("fails", [False, True])
def test_a_script_is_run_and_kept_unless_it_fails(
    history: ModuleType,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    fails: bool,
) -> None:
    ending = "raise SystemExit(3)" if fails else ""
    tmp_path.joinpath("speed.py").write_text(f"print('plan: 7 µs')\n{ending}\n", "utf-8")
    kept, drawing = tmp_path / "history.json", tmp_path / "history.svg"
    for name, value in (("FOLDER", tmp_path), ("HISTORY", kept), ("DRAWING", drawing)):
        monkeypatch.setattr(history, name, value)
    monkeypatch.setattr(sys, "argv", ["history.py", "speed"])
    if fails:
        with pytest.raises(SystemExit, match="3"):
            history.main()
        assert not kept.exists()
        return
    history.main()
    assert "plan: 7 µs" in capsys.readouterr().out
    assert _runs(kept)[0]["figures"] == {"plan": [7.0, "µs"]}
    assert "speed: plan" in drawing.read_text("utf-8")


def _runs(path: Path) -> list[dict[str, Any]]:
    runs: list[dict[str, Any]] = json.loads(path.read_text("utf-8")) if path.exists() else []
    return runs


def test_nothing_kept_draws_nothing(history: ModuleType) -> None:
    assert "polyline" not in history.drawn([], "here")


def test_every_benchmark_that_is_named_can_be_there(history: ModuleType) -> None:
    asked_for = {"peers", "page"}  # they download packages, or need a browser
    there = {path.stem for path in FOLDER.glob("*.py")} - {"history", *asked_for}
    assert there <= set(history.SCRIPTS)
