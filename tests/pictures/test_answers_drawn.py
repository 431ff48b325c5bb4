"""Pictures of answers: comparisons, recommendations, kernels, measured runs, and their files.

Every row that is drawn is worked from typed figures; Vega-Lite's schema takes the specifications.
"""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import planner.pictures.files as drawing
from planner.pictures.accuracy import BAND, accuracy_chart
from planner.pictures.choices import band_chart, choices_chart, front_of, sparkline
from planner.pictures.comparison import pareto_chart, waterfall_chart, waterfall_rows
from planner.pictures.files import NoRenderer, browser_module, write
from planner.pictures.kernels import kernels_chart, placed_rows, typed_rows
from planner.pictures.roofline import roof_line, roofs_of
from planner.pictures.style import PALETTE, Spec
from planner.plans.batches import Option
from planner.plans.compare import Comparison, ComparisonRequest, compare
from planner.plans.compare.answers import Attribution, Contribution, FieldChange
from planner.plans.sized import GpuCount, SizedOption
from planner.scenario import Scenario
from planner.step.placement import place
from planner.step.typed import typed_kernel
from tests.step.machine import DENSE, machine


def valid(spec: Spec) -> None:
    """Raise where the schema of Vega-Lite does not take it."""
    altair = pytest.importorskip("altair")
    altair.Chart.from_dict(spec)


ATTRIBUTION = Attribution(
    baseline="A",
    other="B",
    verdict="",
    steps=[
        FieldChange(fields=["tp"], before={"tp": 1}, after={"tp": 2}),
        FieldChange(
            fields=["kv", "weights"],
            before={"kv": "fp8", "weights": "fp8"},
            after={"kv": None, "weights": ["bf16", "fp8", "fp16", "int8"]},
        ),
        FieldChange(fields=["gpu"], before={"gpu": "l4"}, after={"gpu": {"peaks": 1}}),
    ],
    contributions=[
        Contribution(
            figure="tpot_s",
            unit="s",
            baseline=0.020,
            other=0.014,
            difference=-0.006,
            steps=[-0.010, 0.003, 0.001],
        ),
        Contribution(
            figure="tokens_per_s_per_gpu",
            unit="tokens/s",
            baseline=100.0,
            other=160.0,
            difference=60.0,
            steps=[70.0, -10.0, 0.0],
        ),
    ],
    kernels=[],
)


def test_a_waterfall_steps_from_one_total_to_the_other() -> None:
    """20 ms less 10, plus 3, plus 1 are 14; each bar begins where the last one ended."""
    rows = waterfall_rows(ATTRIBUTION, "tpot_s")
    assert [(row["step"], row["kind"]) for row in rows] == [
        ("A", "total"),
        ("tp 2", "less"),
        ("kv default, weights bf16,fp8,fp16…", "more"),
        ("gpu inline", "more"),
        ("B ", "total"),
    ]
    ends = [(row["low"], row["high"]) for row in rows]
    assert ends == [
        pytest.approx(pair) for pair in ((0, 20), (10, 20), (10, 13), (13, 14), (0, 14))
    ]
    assert [row["amount"] for row in rows] == pytest.approx([20, -10, 3, 1, 14])
    assert all(row["top"] == row["high"] for row in rows)


def test_rates_of_a_waterfall_are_not_times() -> None:
    rows = waterfall_rows(ATTRIBUTION, "tokens_per_s_per_gpu")
    assert [row["amount"] for row in rows] == [100, 70, -10, 0, 160]
    chart = waterfall_chart(ATTRIBUTION, "tokens_per_s_per_gpu")
    assert chart["layer"][0]["encoding"]["y"]["title"] == "tokens_per_s_per_gpu [tokens/s]"
    assert waterfall_chart(ATTRIBUTION)["layer"][0]["encoding"]["y"]["title"] == "tpot [ms]"
    assert waterfall_rows(ATTRIBUTION, "ttft_s") == []
    valid(chart)


def compared() -> Comparison:
    """Twice the ranks are faster for each user; an 8-bit cache is better in everything."""
    fields: dict[str, Any] = {
        "model": "meta-llama/Llama-3.1-8B-Instruct",
        "gpu": "h100-sxm5",
        "batch": 64,
        "context": 8192,
    }
    changes: list[dict[str, Any]] = [{}, {"kv": "fp8"}, {"tp": 2, "kv": "fp8"}]
    scenarios = [Scenario(**{**fields, **change}) for change in changes]
    return compare(ComparisonRequest(scenarios=scenarios, labels=["a", "b", "c"]))


def test_what_nothing_beats_is_filled() -> None:
    result = compared()
    chart = pareto_chart(result)
    rows = {row["label"]: row for row in chart["datasets"]["scenarios"]}
    assert rows["a"]["status"] == "beaten"
    assert rows["b"]["status"] == "nothing beats it"
    assert rows["a"]["tpot_ms"] > rows["b"]["tpot_ms"] > rows["c"]["tpot_ms"]
    # 64 tokens a step on one GPU, and over two.
    for label, gpus in (("b", 1), ("c", 2)):
        rate = 64e3 / rows[label]["tpot_ms"] / gpus
        assert rows[label]["tokens_per_s_per_gpu"] == pytest.approx(rate)
    assert {row["label"] for row in rows.values() if row["status"] != "beaten"} == set(
        result.pareto.members
    )
    valid(chart)


def test_a_scenario_without_a_figure_is_not_drawn() -> None:
    result = compared()
    figures = [
        row.model_copy(update={"values": [None, *row.values[1:]]})
        if row.figure == "tpot_s"
        else row
        for row in result.figures
    ]
    drawn = pareto_chart(result.model_copy(update={"figures": figures}))
    assert [row["label"] for row in drawn["datasets"]["scenarios"]] == ["b", "c"]


def option(tpot_ms: float, rate: float, gpu: str = "g") -> Option:
    interval = SimpleNamespace(p50=tpot_ms / 1e3)
    one = SimpleNamespace(gpu=gpu, tp=1, batch=8, tpot_s=interval, tokens_per_s_per_gpu=rate)
    return cast("Option", one)


def test_a_band_without_an_end_is_drawn_to_the_edge() -> None:
    """16 GPUs of which 8 to 60 are needed; 20 of which no number is enough at p90."""
    ends = ((16, 8, 16, 60), (20, 20, None, None))
    options = [
        SizedOption.model_construct(
            gpu="h100-sxm5", engine=None, gpus=gpus, gpus_needed=GpuCount(p10=p10, p50=p50, p90=p90)
        )
        for gpus, p10, p50, p90 in ends
    ]
    spec = band_chart(options)
    drawn = spec["datasets"]
    assert [row["gpus"] for row in drawn["options"]] == [16, 20]
    assert [row["most"] for row in drawn["needed"]] == [60]
    assert [row["least"] for row in drawn["unbounded"]] == [20]
    (edge,) = (one for one in spec["layer"] if one["data"]["name"] == "unbounded")
    assert edge["encoding"]["x2"] == {"value": "width"}
    valid(spec)


def test_the_front_of_choices() -> None:
    """Slower ones stay only where they give more per GPU; of two as fast the better one."""
    a, b, c, d = option(10, 100), option(20, 90), option(30, 300), option(10, 80)
    assert front_of([c, b, d, a]) == [a, c]
    assert front_of([]) == []
    chart = choices_chart([c, b, d, a])
    status = [row["status"] for row in chart["datasets"]["choices"]]
    assert status == ["nothing beats it", "beaten", "beaten", "nothing beats it"]
    assert [row["tpot_ms"] for row in chart["datasets"]["front"]] == [10, 30]
    valid(chart)


@settings(max_examples=50)
@given(st.lists(st.tuples(st.integers(1, 20), st.integers(1, 20)), min_size=1, max_size=12))
def test_nothing_beats_the_front_and_something_beats_the_rest(pairs: list[tuple[int, int]]) -> None:
    options = [option(float(time), float(rate)) for time, rate in pairs]
    front = front_of(options)

    def beats(one: Option, other: Option) -> bool:
        faster = one.tpot_s.p50 <= other.tpot_s.p50
        more = one.tokens_per_s_per_gpu >= other.tokens_per_s_per_gpu
        better = (one.tpot_s.p50, one.tokens_per_s_per_gpu) != (
            other.tpot_s.p50,
            other.tokens_per_s_per_gpu,
        )
        return faster and more and better

    assert not any(beats(one, other) for one in options for other in front)
    of_front = {(one.tpot_s.p50, one.tokens_per_s_per_gpu) for one in front}
    for one in options:
        if (one.tpot_s.p50, one.tokens_per_s_per_gpu) not in of_front:
            assert any(beats(other, one) for other in front)


def test_a_small_curve_fills_its_box() -> None:
    """0, 5 and 10 of 10 stand at 22, 12 and 2 below the top, at 0, 50 and 100 across."""
    drawn = sparkline([0.0, 5.0, 10.0], mark=1)
    assert drawn == {"path": "M0.0 22.0L50.0 12.0L100.0 2.0", "x": 50.0, "y": 12.0}
    assert sparkline([3.0])["path"] == "M0.0 2.0"
    assert sparkline([0.0, 0.0])["y"] == 22.0
    assert sparkline([]) == {"path": "", "x": 0.0, "y": 0.0}
    assert sparkline([1.0, 2.0])["x"] == 100.0


RIDGES = [
    {
        "format": "bf16",
        "peak_flops_per_s": 1e12,
        "bandwidth_bytes_per_s": 1e10,
        "ridge_point": 100.0,
        "measured_flops_per_s": 8e11,
        "measured_bandwidth_bytes_per_s": 8e9,
        "measured_ridge_point": 100.0,
    },
    {
        "format": "fp8",
        "peak_flops_per_s": 2e12,
        "bandwidth_bytes_per_s": 1e10,
        "ridge_point": 200.0,
        "measured_flops_per_s": None,
        "measured_bandwidth_bytes_per_s": 8e9,
        "measured_ridge_point": None,
    },
]


def test_roofs_are_those_of_the_formats_in_use() -> None:
    """A measured one needs both its figures."""
    names = [roof["roof"] for roof in roofs_of(RIDGES, {"bf16", "fp8"})]
    assert names == ["bf16, specified", "bf16, measured", "fp8, specified"]
    assert roofs_of(RIDGES, {"int8"}) == []


def test_a_roof_rises_with_the_bandwidth_up_to_the_peak() -> None:
    (roof, measured, _) = roofs_of(RIDGES, {"bf16", "fp8"})
    corners = [(row["intensity"], row["rate"]) for row in roof_line(roof, 1.0, 1000.0)]
    assert corners == [(1.0, 1e10), (100.0, 1e12), (1000.0, 1e12)]
    labels = [row["label"] for row in roof_line(roof, 1.0, 1000.0)]
    assert labels == ["", "", "bf16: ridge 100"]
    assert [row["label"] for row in roof_line(measured, 1.0, 1000.0)] == ["", "", ""]


def test_kernels_of_a_model_lie_under_their_roof() -> None:
    placed = place(DENSE, machine(), DENSE.formats(), 4, 100)
    rows = placed_rows(placed)
    assert len(rows) == len(placed.kernels)
    for row in rows:
        assert row["rate"] == pytest.approx(min(1e12, 1e10 * row["intensity"]))
        assert row["bound"] == ("memory" if row["intensity"] < 100 else "compute")
    chart = kernels_chart(rows, RIDGES)
    drawn = chart["datasets"]
    assert drawn["kernels"] == rows
    lowest = min(row["intensity"] for row in rows)
    assert min(row["intensity"] for row in drawn["roofs"]) == pytest.approx(lowest / 3)
    assert max(row["intensity"] for row in drawn["roofs"]) == pytest.approx(300)
    assert {row["roof"] for row in drawn["roofs"]} == {"bf16, specified", "bf16, measured"}
    valid(chart)


def test_ways_of_a_typed_kernel_are_points_of_one_roof() -> None:
    """512³ at two bytes: 2·512³ FLOPs; the ideal traffic is 3·2·512² bytes."""
    rows = typed_rows(typed_kernel("gemm", [512, 512, 512], machine()))
    assert rows[-1]["intensity"] == pytest.approx(2 * 512**3 / (6 * 512**2))
    assert rows[-1]["time_us"] == pytest.approx(2 * 512**3 / 1e12 * 1e6)
    assert {row["format"] for row in rows} == {"bf16"}
    assert [row["rate"] for row in rows] == sorted(row["rate"] for row in rows)
    valid(kernels_chart(rows, RIDGES))


def run(measured: float, predicted: float, engine: str, *, mine: bool = False) -> dict[str, Any]:
    names = {"model": "m", "gpu": "g", "engine": engine, "mine": mine}
    return {"measured": measured, "predicted": predicted, **names}


def test_runs_are_drawn_about_the_diagonal() -> None:
    """Axes reach 20% beyond 8 and 20 ms; the band is 20% either way of a right prediction."""
    rows = [run(10, 8, "vllm"), run(20, 19, "sglang", mine=True)]
    chart = accuracy_chart(rows, "ms", ["vllm", "sglang"])
    line = chart["datasets"]["line"]
    assert [row["measured"] for row in line] == pytest.approx([8 / BAND, 20 * BAND])
    assert all(row["predicted"] == row["measured"] for row in line)
    assert all(row["high"] / row["low"] == pytest.approx(BAND**2) for row in line)
    assert chart["datasets"]["mine"] == [rows[1]]
    colours = chart["layer"][2]["encoding"]["color"]["scale"]
    assert colours == {"domain": ["vllm", "sglang"], "range": list(PALETTE[:2])}
    valid(chart)


def test_a_file_that_cannot_be_written_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(drawing, "render", lambda *_: b"<svg/>")
    file = tmp_path / "a.svg"
    write({}, file)
    assert file.read_bytes() == b"<svg/>"
    with pytest.raises(NoRenderer, match=r"output: cannot write .*: No such file or directory"):
        write({}, tmp_path / "none" / "a.svg")


def test_the_module_for_browsers_is_made_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It takes seconds: a copy is kept by the renderer's version, and a full disk is no fault."""
    made: list[str] = []

    def bundle(source: str) -> str:
        made.append(source)
        return "code"

    monkeypatch.setitem(sys.modules, "vl_convert", SimpleNamespace(javascript_bundle=bundle))
    monkeypatch.setattr(drawing, "find_spec", lambda _: object())
    monkeypatch.setattr(drawing, "version", lambda _: "9.9")
    monkeypatch.setenv("PLANNER_DATA_DIR", str(tmp_path / "data"))
    fresh = browser_module.__wrapped__
    assert fresh() == fresh() == b"code"
    assert made == ["export {vegaEmbed};"]
    assert (tmp_path / "data" / "charts-9.9.js").read_bytes() == b"code"
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("PLANNER_DATA_DIR", str(tmp_path / "file" / "data"))
    assert fresh() == b"code"
    assert len(made) == 2


def test_without_the_renderer_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drawing, "find_spec", lambda _: None)
    with pytest.raises(NoRenderer, match="charts: they need an extra; accepted: pip install"):
        browser_module.__wrapped__()
    with pytest.raises(NoRenderer, match="output: pictures need an extra"):
        drawing.render({}, "svg")
