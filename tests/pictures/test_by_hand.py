"""Pictures by hand: characters where points belong, colours that can be read, rows that add up."""

from __future__ import annotations

from itertools import combinations, pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.pictures.shares import MEMORY_PARTS, memory_chart, memory_rows, time_chart
from planner.pictures.style import BOUNDS, PALETTE, SHAPES, THEMES, layer, log_axis, picture
from planner.pictures.terminal import COLUMNS, PLOTS, ROWS, plot
from planner.pictures.throughput import stops, throughput_chart
from planner.pictures.view import LARGEST, SMALLEST_SPAN, View, batch_axis, look
from planner.scenario import Scenario


def luminance(colour: str) -> float:
    """Return the relative luminance of a colour (WCAG 2.2, definition)."""
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def test_contrast_by_hand() -> None:
    """White on black is 21:1, a colour on itself 1:1."""
    assert contrast("#ffffff", "#000000") == pytest.approx(21.0)
    assert contrast("#777777", "#777777") == 1.0


@pytest.mark.parametrize("colour", PALETTE)
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_every_colour_can_be_told_from_the_page(colour: str, theme: str) -> None:
    """3:1 for graphical objects (WCAG 2.2, 1.4.11)."""
    assert contrast(colour, THEMES[theme]["background"]) >= 3.0


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_text_can_be_read(theme: str) -> None:
    """4.5:1 for text (WCAG 2.2, 1.4.3)."""
    config = THEMES[theme]
    for part in ("axis", "legend"):
        assert contrast(config[part]["labelColor"], config["background"]) >= 4.5
    assert contrast(config["title"]["color"], config["background"]) >= 4.5


def test_bounds_differ_in_colour_and_in_shape() -> None:
    assert len(set(BOUNDS.values())) == len(set(SHAPES)) == len(BOUNDS) == 4
    assert set(BOUNDS) == {"memory", "compute", "launch", "communication"}
    assert all(one != other for one, other in combinations(PALETTE, 2))


def cells(text: str) -> list[str]:
    return [line.partition("│")[2].ljust(COLUMNS) for line in text.splitlines() if "│" in line]


def test_corners_of_a_plot() -> None:
    """From 1 to 100 both ways: a diagonal from the lower left to the upper right."""
    drawn = cells(plot([("o x", [(1, 1), (10, 10), (100, 100)])], "batch", "rate"))
    assert len(drawn) == ROWS
    assert drawn[-1][0] == "o"
    assert drawn[0][COLUMNS - 1] == "o"
    assert sum(line.count("o") for line in drawn) == 3
    middle = [(row, line.index("o")) for row, line in enumerate(drawn) if "o" in line][1]
    assert middle[0] in (ROWS // 2 - 1, ROWS // 2)
    assert middle[1] in (COLUMNS // 2 - 1, COLUMNS // 2)


def test_labels_of_a_plot() -> None:
    """The largest value stands above, ends and geometric mean below, the marks last."""
    text = plot([("o rate", [(1, 2e3), (1e4, 2e6)]), ("- limit", [(1, 5e4)])], "batch", "tokens/s")
    lines = text.splitlines()
    assert lines[0] == "tokens/s"
    assert lines[1].split()[0] == "2M"
    assert lines[-3].split() == ["1", "100", "10k"]
    assert lines[-2].strip() == "batch"
    assert lines[-1].strip() == "o rate   - limit"


@pytest.mark.parametrize("points", [[], [(0, 1)], [(-1, 1), (1, 0)]])
def test_nothing_to_plot(points: list[tuple[float, float]]) -> None:
    assert plot([("o", points)], "x", "y") == "y: nothing to plot"


def test_one_point_lies_in_the_middle() -> None:
    drawn = cells(plot([("o", [(5.0, 7.0)])], "x", "y"))
    ((row, column),) = [(i, line.index("o")) for i, line in enumerate(drawn) if "o" in line]
    assert abs(row - ROWS / 2) <= 1
    assert abs(column - COLUMNS / 2) <= 1


positive = st.floats(1e-6, 1e12)


@given(st.lists(st.tuples(positive, positive), min_size=1, max_size=30))
@settings(max_examples=50)
def test_every_point_lies_on_the_plot(points: list[tuple[float, float]]) -> None:
    text = plot([("o", points)], "x", "y")
    drawn = cells(text)
    assert len(drawn) == ROWS
    assert all(len(line) == COLUMNS for line in drawn)
    assert 1 <= sum(line.count("o") for line in drawn) <= len(points)


def test_layers_without_rows_are_left_out() -> None:
    full = layer("rows", "point", {"x": log_axis("x", "X")})
    empty = layer("none", "point", {})
    drawn = picture("name", "text", [full, empty], {"rows": [{"x": 1}], "none": []}, params=[])
    assert drawn["layer"] == [full]
    assert drawn["params"] == []
    assert drawn["layer"][0]["encoding"]["x"]["scale"]["type"] == "log"


SCENARIO = Scenario(
    model="meta-llama/Llama-3.1-8B-Instruct",
    gpu="h100-sxm5",
    engine="vllm",
    batch=[1, 32],
    context=[8192],
    tpot_ms=20.0,
)


@pytest.fixture(scope="module")
def view() -> View:
    return look(SCENARIO)


def test_batches_are_four_to_a_doubling(view: View) -> None:
    batches = batch_axis(view.plan)
    assert batches[0] == 1
    assert batches == sorted(set(batches))
    assert {1, 32, view.plan.memory.max_batch} <= set(batches)
    assert SMALLEST_SPAN <= batches[-1] <= LARGEST
    assert batches[-1] >= view.plan.memory.max_batch
    large = [batch for batch in batches if batch >= 64]
    assert all(1 < after / before <= 2**0.25 * 1.03 for before, after in pairwise(large))


def test_a_view_is_of_its_scenario(view: View) -> None:
    assert (view.context, view.batch) == (8192, 32)
    assert {row["context"] for row in view.curve} == {8192}
    assert {1024, 8192, 32_768} <= {row["context"] for row in view.contexts}
    by_context = {row["context"]: row for row in view.limits}
    assert by_context[8192]["saturation_intensity"] == view.plan.limits.saturation_intensity
    saturation = [by_context[c]["saturation_intensity"] for c in sorted(by_context)]
    assert saturation == sorted(saturation, reverse=True)
    point = view.plan.points[-1]
    (row,) = (row for row in view.curve if row["batch"] == 32)
    assert row["tpot_p50_s"] == pytest.approx(point.tpot_s.p50)


def test_memory_adds_up(view: View) -> None:
    """Weights of 16.06 GB; what is in use of the pool is 32 of the largest batch."""
    rows = {row["part"]: row["gigabytes"] for row in memory_rows(view)}
    assert tuple(rows) == MEMORY_PARTS
    assert rows["weights"] == pytest.approx(16.1, abs=0.3)
    used, free = rows["KV cache in use"], rows["KV cache free"]
    assert used / (used + free) == pytest.approx(32 / view.plan.memory.max_batch)
    total = view.deployment.accelerator.memory_bytes
    assert sum(rows.values()) == pytest.approx((total or 0) / 1e9)
    assert sum(row["share"] for row in memory_rows(view)) == pytest.approx(1.0)
    chart = memory_chart(view)
    assert len(chart["datasets"]["memory"]) == len(MEMORY_PARTS)


def test_kernels_are_drawn_longest_first(view: View) -> None:
    chart = time_chart(view)
    rows = chart["datasets"]["kernels"]
    sort = chart["layer"][0]["encoding"]["y"]["sort"]
    assert sort == {"field": "time_ms", "op": "max", "order": "descending"}
    times = {row["kernel"]: row["time_ms"] for row in rows}
    assert sum(times.values()) / 1e3 == pytest.approx(
        sum(kernel.time_s for kernel in view.plan.kernels)
    )


def test_stops_stand_below_each_other(view: View) -> None:
    rows = stops(view)
    labels = [row["label"] for row in rows]
    most = view.plan.memory.max_batch
    assert labels[0] in (f"memory holds {most:,}", f"engine runs {most:,}")
    assert labels[-1] == f"knee {view.plan.limits.knee_batch:,}"
    assert [row["line"] for row in rows] == [4 + 14 * i for i in range(len(rows))]


def test_rates_and_times_are_drawn_with_their_bands(view: View) -> None:
    chart = throughput_chart(view)
    for row in chart["datasets"]["curve"]:
        assert row["rate_p10"] <= row["tokens_per_s_per_gpu"] <= row["rate_p90"]
        assert row["tpot_p10_ms"] <= row["tpot_ms"] <= row["tpot_p90_ms"]
        assert row["tokens_per_s_per_gpu"] == pytest.approx(row["batch"] / row["tpot_ms"] * 1e3)
    assert chart["datasets"]["limit"] == [{"tpot_ms": 20.0, "set": True}]


@pytest.mark.parametrize("name", sorted(PLOTS))
def test_a_terminal_plots_it(view: View, name: str) -> None:
    text = PLOTS[name](view)
    assert max(map(len, text.splitlines())) <= 80
    assert text.count("│") % ROWS == 0
