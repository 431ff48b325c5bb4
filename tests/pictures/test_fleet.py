"""A fleet's day as a picture: steps by window, hours that end the day, thinned where it is long."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.cli import main
from planner.pictures.fleet import (
    LOOKS,
    MOST_WINDOWS,
    drawn_windows,
    fleet_chart,
    line_rows,
    load_rows,
)
from planner.pictures.terminal import COLUMNS, Axis
from planner.pictures.terminal import fleet as plotted
from planner.plans.fleet import Fleet, fleet
from planner.plans.fleet_request import FleetRequest

RATES = [2.0, 1.0, 4.0, 12.0, 10.0, 6.0]
POOL = {"model": "meta-llama/Llama-3.1-70B-Instruct", "gpu": "h100-sxm5", "tp": 4, "engine": "vllm"}
OPTIONS = ["--pool", "h100-sxm5:tp=4:engine=vllm", "--rates", "2,1,4,12,10,6"]
OPTIONS += ["--window-s", "14400", "--isl", "1024", "--osl", "256", "--tpot-ms", "50"]


@cache
def day() -> Fleet:
    return fleet(
        FleetRequest(
            pools=[POOL],
            requests_per_s_by_window=RATES,
            window_s=14_400,
            isl=1024,
            osl=256,
            tpot_ms=50,
        )
    )


def test_steps_are_the_windows_and_the_day_ends_at_24() -> None:
    rows = line_rows(day())
    for line in day().lines:
        steps = [(row["hour"], row["gpus"]) for row in rows if row["scaling"] == line.name]
        assert [hour for hour, _ in steps] == [0, 4, 8, 12, 16, 20, 24]
        assert [gpus for _, gpus in steps] == [*line.gpus, line.gpus[-1]]
    assert [row["requests_per_s"] for row in load_rows(day())] == [*RATES, 6.0]


def test_vega_lite_takes_it() -> None:
    altair = pytest.importorskip("altair")
    spec = fleet_chart(day())
    altair.Chart.from_dict(spec)  # validates
    scale = spec["layer"][1]["encoding"]["color"]["scale"]
    assert scale["domain"] == ["static", "autoscaled", "perfect"]
    assert len(set(scale["range"])) == len({str(dash) for _, dash in LOOKS.values()}) == 3


@given(st.lists(st.floats(0, 1e6), min_size=1, max_size=5000))
def test_of_many_windows_the_largest_are_drawn(values: list[float]) -> None:
    """No peak is lost, and few enough are drawn."""
    drawn = drawn_windows(values)
    assert len(drawn) <= MOST_WINDOWS
    assert max(drawn) == max(values)
    assert set(drawn) <= set(values)
    if len(values) <= MOST_WINDOWS:
        assert drawn == values


def test_in_characters() -> None:
    text = plotted(day())
    lines = text.splitlines()
    assert max(map(len, lines)) <= 80
    assert lines[0] == "GPUs"
    assert lines[1].split("│")[0].strip() == f"{max(day().lines[2].gpus):g}"
    assert lines[-3].split() == ["0", "12", "24"]
    assert lines[-1].split("   ")[-3:] == ["- static", "o autoscaled", "· perfect"]
    assert sum("·" in line for line in lines[1:-1]) >= 3
    assert all(len(line.partition("│")[2]) <= COLUMNS for line in lines)


@pytest.mark.parametrize(
    ("values", "linear", "ends", "middle"),
    [
        ([2.0, 8.0], True, (0.0, 8.0), 4.0),
        ([1.0, 100.0], False, (1.0, 100.0), 10.0),
        ([0.0, 0.0], True, (0.0, 1.0), 0.5),
        ([6.0], False, (3.0, 12.0), 6.0),
    ],
)
def test_axes(values: list[float], linear: bool, ends: tuple[float, float], middle: float) -> None:
    axis = Axis.over(values, linear)
    assert (axis.value(0.0), axis.value(1.0)) == pytest.approx(ends)
    assert axis.value(0.5) == pytest.approx(middle)
    assert axis.place(middle) == pytest.approx(0.5)


def test_plot_fleet(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    model = "meta-llama/Llama-3.1-70B-Instruct"
    main(["plot", "fleet", model, *OPTIONS])
    assert capsys.readouterr().out.strip() == plotted(day()).strip()
    pytest.importorskip("vl_convert")
    path = tmp_path / "day.svg"
    main(["plot", "fleet", model, *OPTIONS, "-o", str(path)])
    text = path.read_text("utf-8")
    assert text.startswith("<svg")
    assert "requests per second" in text


def test_fleet_with_its_plot(capsys: pytest.CaptureFixture[str]) -> None:
    main(["fleet", "meta-llama/Llama-3.1-70B-Instruct", *OPTIONS, "--plot"])
    assert plotted(day()) in capsys.readouterr().out


def test_no_such_picture_names_those_there_are(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["plot", "pie", "x"])
    message = capsys.readouterr().err
    assert "picture: 'pie' is none; accepted: roofline, intensity" in message
    assert "fleet" in message
    assert len(message.strip().splitlines()) == 1
