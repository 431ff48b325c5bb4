"""Ridge points, formats, overrides and the JSON of one accelerator."""

from __future__ import annotations

import json

import pytest

from planner import hw
from planner.hw import inline


# Roofline texts: peak over bandwidth, 312/2.04, 989/3.35, 1979/3.35 (tolerance: the digits given).
@pytest.mark.parametrize(
    ("name", "fmt", "expected"),
    [("a100-sxm4-80gb", "bf16", 153), ("h100-sxm5", "bf16", 295), ("h100-sxm5", "fp8", 590.7)],
)
def test_ridge_points(name, fmt, expected):
    acc = hw.get_accelerator(name)
    assert acc.ridge_point(fmt) == pytest.approx(expected, abs=0.5)
    assert acc.ridge_points[fmt] == acc.ridge_point(fmt)


# Roofline texts: B200 at 8 TB/s; the catalogue has the HGX board's 7.7 TB/s.
@pytest.mark.parametrize(("fmt", "expected"), [("bf16", 281.25), ("fp8", 562.5), ("fp4", 1125)])
def test_b200_ridge_points_at_the_other_published_bandwidth(fmt, expected):
    b200 = hw.get_accelerator("b200")
    assert b200.ridge_point(fmt) == pytest.approx(expected * 8 / 7.7)
    assert b200.alternative("bandwidth_bytes_per_s").ridge_point(fmt) == expected
    mine = inline.override(b200, {"bandwidth_bytes_per_s": 8e12, "source": "DGX datasheet"})
    assert mine.ridge_point(fmt) == expected
    assert mine.figures["bandwidth_bytes_per_s"].source == "DGX datasheet"
    assert mine.figures["bandwidth_bytes_per_s"].confidence == "user"
    assert mine.notes[-1] == "bandwidth_bytes_per_s is 8e+12 bytes/s by DGX datasheet"
    assert mine.memory_bytes == b200.memory_bytes
    assert mine.id == "b200-sxm"
    assert b200.bandwidth_bytes_per_s == 7.7e12


def test_published_lists_the_value_in_use_first():
    values = [f.value for f in hw.get_accelerator("b300").published("bandwidth_bytes_per_s")]
    assert values == [7.7e12, 8e12, 7.75e12]
    acc = hw.get_accelerator("a100-pcie-80gb").alternative("link_bytes_per_s")
    assert acc.link == hw.Link("NVLink 3 bridge", 31e9)
    assert hw.get_accelerator("mi355x").alternative("peaks_flops_per_s.fp8").peak("fp8") == 4.6e15


@pytest.mark.parametrize("figure", ["bandwidth_bytes_per_s", "nonsense"])
def test_no_alternative(figure):
    with pytest.raises(hw.MissingFigure, match="figure: t4 has no other published value"):
        hw.get_accelerator("t4").alternative(figure)


def test_published_of_nothing():
    with pytest.raises(hw.MissingFigure, match="figure: t4 has no 'x'; accepted: memory_bytes"):
        hw.get_accelerator("t4").published("x")


# Roofline texts' table of elementwise add fp32 and 8192^3 fp16 GEMM: GB/s, TFLOP/s, ridge.
@pytest.mark.parametrize(
    ("name", "gb_s", "tflop_s", "ridge"),
    [
        ("t4", 247, 24, 99),
        ("l4", 233, 58, 247),
        ("a10", 476, 76, 159),
        ("l40s", 653, 191, 292),
        ("a100-80gb", 1803, 241, 134),
        ("h100", 3080, 776, 252),
        ("h200", 4359, 780, 179),
    ],
)
def test_measured_beside_published(name, gb_s, tflop_s, ridge):
    acc = hw.get_accelerator(name)
    assert acc.measured_bandwidth is not None
    assert acc.measured_bandwidth.value == gb_s * 1e9
    assert acc.measured_bandwidth.confidence == "unsourced"  # the text is not on record
    assert acc.measured_peaks["fp16"].value == tflop_s * 1e12
    assert acc.measured_ridge_points["fp16"] == ridge
    assert acc.measured_ridge_points["fp16"] < acc.ridge_point("fp16")


def test_measured_of_others():
    b200 = hw.get_accelerator("b200")
    # Highest weight-read rate of the measured GEMM tables; MAMF table of ml-engineering.
    assert b200.measured_bandwidth is not None
    assert 0.85 < b200.measured_bandwidth.value / b200.bandwidth_bytes_per_s < 1
    assert b200.measured_peaks["bf16"].value == 1745e12
    assert b200.measured_peaks["fp4"].value == 5298e12
    assert hw.get_accelerator("rtx-4090").measured_ridge_points == {}
    assert hw.get_accelerator("mi300x").measured_ridge_points == {}


@pytest.mark.parametrize(
    ("name", "wanted", "runs"),
    [
        ("h100", "bf16", "bf16"),
        ("h100", "fp8", "fp8"),
        ("h100", "fp4", "bf16"),
        ("h100", "fp6", "bf16"),
        ("h100", "int4", "bf16"),
        ("b200", "fp4", "fp4"),
        ("b200", "fp6", "fp6"),
        ("b200", "nvfp4", "fp4"),
        ("h100", "nvfp4", "bf16"),
        ("mi355x", "fp4", "fp4"),
        ("mi355x", "nvfp4", "bf16"),
        ("trainium3", "nvfp4", "bf16"),
        ("a100-80gb", "fp8", "bf16"),
        ("a100-80gb", "int4", "int4"),
        ("t4", "bf16", "fp16"),
        ("t4", "fp8", "fp16"),
        ("t4", "int8", "int8"),
        ("v100-sxm2-32gb", "bf16", "fp16"),
        ("v100-sxm2-32gb", "int8", "fp16"),
        ("p40", "bf16", "fp32"),
        ("p40", "fp16", "fp32"),
        ("tpu-v5e", "fp16", "bf16"),
        ("tpu-v5e", "fp32", "bf16"),
        ("mi300x", "tf32", "tf32"),
        ("mi350x", "tf32", "fp32"),
        ("m3-max", "bf16", "fp16"),
    ],
)
def test_compute_format(name, wanted, runs):
    acc = hw.get_accelerator(name)
    actual, note = acc.compute_format(wanted)
    assert actual == runs
    assert acc.peak(actual) > 0
    assert (note is None) == (actual == ("fp4" if wanted == "nvfp4" else wanted))
    if note:
        assert acc.id in note
        assert "\n" not in note


@pytest.mark.parametrize(
    ("name", "wanted", "note"),
    [
        ("t4", "bf16", "t4 has no bf16 arithmetic: values are converted and run in fp16"),
        ("p40", "fp16", "p40 runs fp16 in fp32: its own fp16 rate is lower"),
        ("mi355x", "nvfp4", "mi355x has no nvfp4 arithmetic: values are converted and run in bf16"),
        (
            "jetson-agx-orin-64gb",
            "fp4",
            (
                "no bf16 or fp16 peak was found for jetson-agx-orin-64gb: "
                "its fp32 peak may understate it"
            ),
        ),
    ],
)
def test_compute_format_says_why(name, wanted, note):
    assert hw.get_accelerator(name).compute_format(wanted)[1] == note


# Worked by hand: cores x operations a cycle x clock [GHz], in 1e9 a second.
@pytest.mark.parametrize(
    ("name", "fmt", "expected"),
    [
        ("epyc-9654", "fp32", 96 * 32 * 2.4),  # two 256-bit multiply-adds: 7.37e12
        ("epyc-9654", "int8", 96 * 128 * 2.4),
        ("epyc-9755", "bf16", 128 * 128 * 2.7),  # two 512-bit ones, twice as many bf16: 44.2e12
        ("xeon-6980p", "bf16", 128 * 1024 * 2.0),  # AMX: 262e12
        ("xeon-6972p", "int8", 96 * 2048 * 2.4),
        ("m4", "fp32", 10 * 429),
        ("m5", "fp16", 10 * 1024 * 1.578),
        ("m5-max", "fp16", 40 * 1024 * 1.578),  # 64.6e12
        ("m5-ultra", "fp32", 80 * 256 * 1.578),
        ("rtx-pro-4500", "bf16", 4 * 54_940),
    ],
)
def test_derived_peaks(name, fmt, expected):
    acc = hw.get_accelerator(name)
    assert acc.peak(fmt) == pytest.approx(expected * 1e9, rel=1e-4)
    assert acc.figures[f"peaks_flops_per_s.{fmt}"].confidence == "derived"
    if acc.kind == "cpu":
        assert any(f"{acc.sm_count} cores x" in note for note in acc.notes)


@pytest.mark.parametrize("name", ["cerebras-wse3"])
def test_no_peak_at_all(name):
    with pytest.raises(hw.UnsupportedFormat, match=r"^gpu: .* no peak on record for bf16"):
        hw.get_accelerator(name).compute_format("bf16")


def test_unknown_format_and_missing_peak():
    acc = hw.get_accelerator("t4")
    with pytest.raises(
        hw.UnsupportedFormat, match=r"^format: unknown number format 'fp5'; accepted"
    ):
        acc.compute_format("fp5")
    with pytest.raises(hw.UnsupportedFormat, match=r"no bf16 peak on record; accepted: fp32, fp16"):
        acc.peak("bf16")
    with pytest.raises(hw.UnsupportedFormat):
        acc.ridge_point("fp8")


def test_chains_start_with_the_format_asked_for_and_name_known_formats():
    assert set(hw.CHAINS) == {*hw.FORMATS, "nvfp4"}
    for wanted, chain in hw.CHAINS.items():
        assert chain[0] == wanted.removeprefix("nv")
        assert set(chain) <= set(hw.FORMATS)


@pytest.mark.parametrize(
    "fields",
    [
        {"value": float("nan")},
        {"value": float("inf")},
        {"value": 0.0},
        {"value": -1.0},
        {"unit": " "},
        {"source": ""},
        {"confidence": ""},
    ],
)
def test_figure_needs_a_value_and_where_it_is_from(fields):
    good = {"value": 1.0, "unit": "bytes", "source": "datasheet", "confidence": "datasheet"}
    assert hw.Figure(**good).value == 1.0
    with pytest.raises(ValueError, match=r"^figure: "):
        hw.Figure(**(good | fields))


@pytest.mark.parametrize("value", [0, -1.0, float("nan")])
def test_link_speed_is_positive(value):
    with pytest.raises(ValueError, match=r"^link\.bytes_per_s"):
        hw.Link("x", value)


def test_mesh_pairs_get_a_share():
    # Seven peers: 448 / 7 GB/s on MI300X; NVSwitch gives one pair everything.
    assert hw.get_accelerator("mi300x").link.pair_bytes_per_s == 64e9
    assert hw.get_accelerator("h100").link == hw.Link("NVLink 4 + NVSwitch", 450e9)


def test_accelerators_are_values():
    acc = hw.get_accelerator("h100")
    assert hw.get_accelerator(acc) is acc
    assert len({acc, hw.get_accelerator("h100-sxm5")}) == 1
    with pytest.raises(AttributeError):
        acc.memory_bytes = 1


@pytest.mark.parametrize("name", list(hw.load_catalogue()))
def test_describe_is_json(name):
    shown = hw.describe(hw.get_accelerator(name))
    assert json.loads(json.dumps(shown, allow_nan=False)) == shown
    assert set(shown["ridge_point"]) == set(shown["peaks_flops_per_s"])
    assert set(shown["link"]) >= {"name", "bytes_per_s"}


def test_describe_h100():
    shown = hw.describe(hw.get_accelerator("h100"))
    assert shown["id"] == "h100-sxm5"
    assert shown["peaks_flops_per_s"]["bf16"] == 989.4e12
    assert shown["bandwidth_bytes_per_s"] == 3.35e12
    assert shown["memory_bytes"] == 80 * 2**30
    assert shown["ridge_point"]["bf16"] == pytest.approx(295.3, abs=0.05)
    assert shown["link"]["bytes_per_s"] == 450e9
    assert shown["domain_size"] == 8
    assert shown["tdp_w"] == 700
    assert "aiconfigurator" in shown["sources"]["peaks_flops_per_s.bf16"]
    assert shown["measured_ridge_point"]["fp16"] == 252
    assert shown["price"]["date"] == "2026-11-09"
    assert shown["notes"]
