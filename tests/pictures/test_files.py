"""Pictures as files, and plots made of characters."""

from __future__ import annotations

from pathlib import Path

import pytest

from planner.cli import main
from planner.pictures.files import KINDS, NoRenderer, render
from planner.pictures.terminal import plot

PLOT = ["plot", "memory", "meta-llama/Llama-3.1-70B-Instruct", "--gpu", "h100-sxm5", "--tp", "4"]


@pytest.mark.parametrize(
    ("kind", "start"), [("svg", b"<svg"), ("png", b"\x89PNG"), ("html", b"<!DOCTYPE html>")]
)
def test_files_of_each_kind(
    kind: str, start: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("vl_convert")
    path = tmp_path / f"picture.{kind}"
    main([*PLOT, "-o", str(path)])
    assert capsys.readouterr().out == f"{path}\n"
    assert path.read_bytes().lstrip().startswith(start)
    assert {*KINDS} == {"svg", "png", "html"}


def test_another_kind_is_refused_in_one_line() -> None:
    with pytest.raises(NoRenderer, match=r"output: .gif is not a kind of picture; accepted: svg"):
        render({}, "gif")


def test_a_plot_puts_each_decade_where_it_belongs() -> None:
    """A straight line on two logarithmic axes: first and last point in opposite corners."""
    lines = plot([("o line", [(1.0, 10.0), (10.0, 100.0), (100.0, 1000.0)])], "x", "y").split("\n")
    canvas = [line.partition("│")[2] for line in lines if "│" in line]
    assert canvas[0].rstrip().endswith("o")
    assert canvas[-1].startswith("o")
    assert sum(line.count("o") for line in canvas) == 3


def test_a_plot_without_points_says_so() -> None:
    assert plot([("o line", [(0.0, 1.0)])], "x", "y") == "y: nothing to plot"
