"""Formats an accelerator lacks, figures replaced, prices summed up: on small made-up parts."""

from __future__ import annotations

from dataclasses import replace

import pytest

from planner.hw import Accelerator, Figure, Link, MissingFigure, UnsupportedFormat, get_accelerator
from planner.hw.figure import Measured
from planner.hw.formats import CHAINS, FORMATS
from planner.hw.inline import accelerator_from
from planner.hw.prices import PriceRow, _median, _summary, list_prices, price_per_hour


def part(**peaks: float) -> Accelerator:
    return accelerator_from(
        {
            "id": "part",
            "peaks_flops_per_s": peaks,
            "bandwidth_bytes_per_s": 1e12,
            "memory_bytes": 1e10,
            "source": "round numbers",
        }
    )


@pytest.mark.parametrize(
    ("peaks", "requested", "actual"),
    [
        ({"bf16": 1e14, "fp8": 2e14}, "fp8", "fp8"),
        # Without a narrow format values are widened to 16 bits.
        ({"bf16": 1e14, "fp16": 1e14}, "fp8", "bf16"),
        ({"fp16": 1e14}, "fp8", "fp16"),
        ({"fp32": 1e13}, "fp8", "fp32"),
        ({"bf16": 1e14, "fp8": 2e14}, "fp4", "bf16"),
        ({"bf16": 1e14, "fp8": 2e14}, "nvfp4", "bf16"),
        ({"bf16": 1e14, "fp4": 4e14}, "nvfp4", "fp4"),
        ({"bf16": 1e14, "int8": 2e14}, "int4", "bf16"),
        ({"bf16": 1e14, "int8": 2e14}, "int8", "int8"),
        # A part without bfloat16 runs it in half precision, and the other way round.
        ({"fp16": 1e14}, "bf16", "fp16"),
        ({"bf16": 1e14}, "fp16", "bf16"),
        ({"fp32": 1e13}, "bf16", "fp32"),
        # Single precision runs in TF32 units before it narrows.
        ({"tf32": 5e13, "bf16": 1e14}, "fp32", "tf32"),
        ({"bf16": 1e14}, "fp32", "bf16"),
        ({"bf16": 1e14, "fp32": 1e13}, "tf32", "fp32"),
    ],
)
def test_what_a_format_falls_back_to(peaks: dict[str, float], requested: str, actual: str) -> None:
    found, remark = part(**peaks).compute_format(requested)
    assert found == actual
    first = CHAINS[requested][0]
    assert (remark is None) == (actual == first)
    if remark:
        assert (
            remark
            == f"part has no {requested} arithmetic: values are converted and run in {actual}"
        )


def test_nothing_to_fall_back_to() -> None:
    with pytest.raises(UnsupportedFormat, match="gpu: part has no peak on record for fp8 or what"):
        part(int4=1e14).compute_format("fp8")
    with pytest.raises(UnsupportedFormat, match="format: unknown number format 'fp7'; accepted"):
        part(bf16=1e14).compute_format("fp7")
    with pytest.raises(UnsupportedFormat, match="part has no fp8 peak on record; accepted: bf16"):
        part(bf16=1e14).peak("fp8")


def test_a_slower_unit_is_passed_over() -> None:
    """Where fp8 is no faster than bf16 it runs in that, and the answer says so."""
    slow = replace(part(bf16=1e14, fp8=1e14), runs_in={"fp8": "bf16"})
    found, remark = slow.compute_format("fp8")
    assert found == "bf16"
    assert remark == "part runs fp8 in bf16: its own fp8 rate is lower"


def test_a_peak_that_was_not_found_is_said_to_be_missing() -> None:
    unread = replace(part(bf16=1e14), unread_formats=("fp8",))
    assert unread.compute_format("fp8") == (
        "bf16",
        "no fp8 peak was found for part: its bf16 peak may understate it",
    )


@pytest.mark.parametrize("requested", sorted(CHAINS))
def test_a_chain_begins_at_home_and_ends_in_32_bits_or_16(requested: str) -> None:
    chain = CHAINS[requested]
    assert chain[0] == {"nvfp4": "fp4"}.get(requested, requested)
    assert set(chain) <= set(FORMATS)
    assert len(set(chain)) == len(chain)
    assert {"bf16", "fp16", "fp32"} <= set(chain)


@pytest.mark.parametrize(
    ("gpu", "fmt", "ridge"),
    [
        # Datasheets, dense: 312 TFLOP/s and 2.039 TB/s; 989.4 and 1978.9 over 3.35; 362 over 0.864;
        # 65 over 0.32; 1307.4 and 2614.9 over 5.3; 181 over 0.96.
        ("a100-sxm4-80gb", "bf16", 312 / 2.039),
        ("h100-sxm5", "bf16", 989.4 / 3.35),
        ("h100-sxm5", "fp8", 1978.9 / 3.35),
        ("h200-sxm", "bf16", 989.4 / 4.8),
        ("l40s", "bf16", 362.05 / 0.864),
        ("t4", "fp16", 65 / 0.32),
        ("mi300x", "bf16", 1307.4 / 5.3),
        ("mi300x", "fp8", 2614.9 / 5.3),
    ],
)
def test_ridge_points_of_datasheets(gpu: str, fmt: str, ridge: float) -> None:
    assert get_accelerator(gpu).ridge_point(fmt) == pytest.approx(ridge, rel=0.005)


def figure(value: float) -> Figure:
    return Figure(value, "FLOP/s", "bench", "measured")


def test_measured_ridges() -> None:
    """80% of the peak over 90% of the bandwidth: a ridge of 88.9 where the datasheet's is 100."""
    measured = (
        Measured("matmul_flops_per_s", "bf16", figure(0.8e14)),
        Measured("matmul_flops_per_s", "bf16", figure(0.5e14)),
        Measured("weight_read_bytes_per_s", "", figure(0.7e12)),
        Measured("stream_bytes_per_s", "", figure(0.9e12)),
    )
    known = replace(part(bf16=1e14), measured=measured)
    # The first of a format counts; a streaming kernel before one that reads weights.
    assert known.measured_peaks["bf16"].value == 0.8e14
    assert known.measured_bandwidth == figure(0.9e12)
    assert known.measured_ridge_points == {"bf16": pytest.approx(88.9, abs=0.1)}
    printed = Measured("ridge_flop_per_byte", "bf16", figure(77.0))
    assert replace(known, measured=(*measured, printed)).measured_ridge_points == {"bf16": 77.0}
    assert part(bf16=1e14).measured_ridge_points == {}


def test_figures_are_replaced_by_name() -> None:
    base = part(bf16=1e14, fp8=2e14)
    changed = base.replaced(
        {
            "peaks_flops_per_s.fp8": Figure(3e14, "FLOP/s", "x", "user"),
            "bandwidth_bytes_per_s": Figure(2e12, "bytes/s", "x", "user"),
            "memory_bytes": Figure(2e10, "bytes", "x", "user"),
            "link_bytes_per_s": Figure(1e11, "bytes/s", "x", "user"),
        }
    )
    assert changed.peaks_flops_per_s == {"bf16": 1e14, "fp8": 3e14}
    assert changed.ridge_points == {"bf16": 50.0, "fp8": 150.0}
    assert (changed.memory_bytes, changed.link.bytes_per_s) == (20_000_000_000, 1e11)
    assert base.peaks_flops_per_s["fp8"] == 2e14


def test_memory_that_is_not_on_record() -> None:
    with pytest.raises(MissingFigure, match="gpu: part has no memory size on record"):
        replace(part(bf16=1e14), memory_bytes=None).memory()
    assert part(bf16=1e14).memory() == 10**10


@pytest.mark.parametrize("value", [0.0, -1.0, float("nan"), float("inf")])
def test_figures_and_links_are_positive(value: float) -> None:
    with pytest.raises(ValueError, match="figure: value must be finite and positive"):
        Figure(value, "FLOP/s", "x", "user")
    with pytest.raises(ValueError, match=r"link\.bytes_per_s must be finite and positive"):
        Link("x", value)


@pytest.mark.parametrize(
    ("values", "median"),
    [([2.0], 2.0), ([3.0, 1.0], 2.0), ([5.0, 1.0, 2.0], 2.0), ([4.0, 1.0, 2.0, 9.0], 3.0)],
)
def test_median(values: list[float], median: float) -> None:
    assert _median(values) == median


def price(provider: str, usd: float, date: str | None = "2026-01-01") -> PriceRow:
    return PriceRow(("x",), provider, "", "on_demand", usd, date, "page")


def test_a_provider_counts_once_with_its_newest_price() -> None:
    """2.0 of a, replaced by the median of 3.0 and 5.0; 6.0 of b; 1.0 of c: the median is 4.0."""
    rows = [
        price("a", 2.0, "2025-06-01"),
        price("a", 3.0, "2026-02-01"),
        price("a", 5.0, "2026-02-01"),
        price("b", 6.0, "2025-12-01"),
        price("c", 1.0, "2026-01-01"),
    ]
    found = _summary("x", rows)
    assert (found.usd_per_gpu_hour, found.low, found.high) == (4.0, 1.0, 6.0)
    assert (found.providers, found.date, found.oldest_date) == (3, "2026-02-01", "2025-12-01")
    assert len(found.rows) == 4


def test_prices_of_the_catalogue_are_of_the_part_alone_where_they_can_be() -> None:
    found = price_per_hour("h100-sxm5")
    assert found is not None
    assert found.low <= found.usd_per_gpu_hour <= found.high
    assert all(row.kind == "on_demand" and row.date for row in found.rows)
    assert set(found.rows) <= set(list_prices("h100-sxm5", "on_demand"))
    assert price_per_hour(None) is None
    assert price_per_hour("no-such-part") is None
