"""Integrity of the accelerator data and look-up by name."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from planner import hw

CATALOGUE = hw.load_catalogue()
FIRST = hw.load_catalogue("2026-11-29")
DATA = Path(hw.__file__).with_name("data")
GIB = 2**30


def test_edition_is_the_date_of_the_data_and_of_its_file_names():
    assert hw.edition() == CATALOGUE.edition == max(p.stem[-10:] for p in DATA.glob("*.json"))
    names = {path.name for path in DATA.glob("*.json")}
    for edition in ("2026-11-29", hw.edition()):
        assert names >= {f"{n}-{edition}.json" for n in ("accelerators", "links", "prices")}


def test_unknown_edition_is_refused_with_those_that_exist():
    with pytest.raises(
        ValueError, match="edition: no accelerators of '1999-01-01'; accepted: 2026"
    ):
        hw.load_catalogue("1999-01-01")


def test_count_and_kinds():
    assert len(FIRST) == len(set(FIRST)) == 143
    kinds = Counter(acc.kind for acc in FIRST.values())
    assert kinds == {"gpu": 96, "apple": 19, "asic": 12, "tpu": 6, "cpu": 5, "edge": 5}


# What the edition of 2026-12-01 adds: peaks of parts that had none, and memory sizes.
ADDED = {
    "m2-pro": {"memory_bytes"},
    "m2-max": {"memory_bytes"},
    "m3": {"memory_bytes"},
    "m3-pro": {"memory_bytes"},
    "m4": {"memory_bytes", "peaks_flops_per_s.fp32", "peaks_flops_per_s.fp16"},
    "m5": {"memory_bytes", "peaks_flops_per_s.fp32", "peaks_flops_per_s.fp16"},
    "m5-pro": {"peaks_flops_per_s.fp32", "peaks_flops_per_s.fp16"},
    "m5-max": {"peaks_flops_per_s.fp32", "peaks_flops_per_s.fp16"},
    "m5-ultra": {"sm_count", "peaks_flops_per_s.fp32", "peaks_flops_per_s.fp16"},
    "epyc-9654": {"memory_bytes", "domain_size"}
    | {f"peaks_flops_per_s.{f}" for f in ("fp32", "bf16", "int8")},
    "epyc-9755": {"memory_bytes", "domain_size", "l2_bytes", "tdp_w"}
    | {f"peaks_flops_per_s.{f}" for f in ("fp32", "bf16", "int8")},
    "xeon-6980p": {"memory_bytes", "domain_size", "l2_bytes", "tdp_w"}
    | {f"peaks_flops_per_s.{f}" for f in ("fp32", "fp16", "bf16", "int8")},
    "xeon-6972p": {"memory_bytes", "domain_size"},
}


@pytest.mark.parametrize("ident", list(FIRST))
def test_a_later_edition_keeps_every_value_and_names_what_it_adds(ident):
    before, now = FIRST[ident].figures, CATALOGUE[ident].figures
    assert {name: now[name].value for name in before} == {n: f.value for n, f in before.items()}
    assert set(now) - set(before) == ADDED.get(ident, set())


# Counts and sums of the research table's columns in its own units, taken before import.
@pytest.mark.parametrize(
    ("figure", "count", "total", "unit"),
    [
        ("bandwidth_bytes_per_s", 143, 21358069.4, 1e9),
        ("peaks_flops_per_s.fp32", 118, 5588.91, 1e12),
        ("peaks_flops_per_s.tf32", 69, 18842.34, 1e12),
        ("peaks_flops_per_s.fp16", 120, 51719.41, 1e12),
        ("peaks_flops_per_s.bf16", 98, 55867.12, 1e12),
        ("peaks_flops_per_s.fp8", 58, 105495.7, 1e12),
        ("peaks_flops_per_s.int8", 96, 80737.41, 1e12),
        ("peaks_flops_per_s.fp6", 9, 69293.8, 1e12),
        ("peaks_flops_per_s.fp4", 21, 144922.6, 1e12),
        ("peaks_flops_per_s.int4", 42, 24121.8, 1e12),
        ("sm_count", 130, 10279, 1),
        ("l2_bytes", 91, 4342.5, 2**20),
        ("tdp_w", 112, 45143.5, 1),
        ("link_bytes_per_s", 104, 25452.8, 1e9),
        ("domain_size", 127, 25784, 1),
        # 10,869.33 GB in all, of which B100, Groq, Cerebras and Grace (716.23) are decimal.
        ("memory_bytes", 133, 10153.1 + 716.23e9 / GIB, GIB),
    ],
)
def test_column_sums(figure, count, total, unit):
    values = [acc.figures[figure].value for acc in FIRST.values() if figure in acc.figures]
    assert len(values) == count
    assert sum(values) / unit == pytest.approx(total, rel=1e-9)


@pytest.mark.parametrize("ident", list(CATALOGUE))
def test_every_figure_has_source_and_confidence(ident):
    acc = CATALOGUE[ident]
    for fmt, peak in acc.peaks_flops_per_s.items():
        assert fmt in hw.FORMATS
        assert acc.figures[f"peaks_flops_per_s.{fmt}"].value == peak
    assert acc.figures["bandwidth_bytes_per_s"].value == acc.bandwidth_bytes_per_s
    assert acc.confidence in {"datasheet", "derived", "third_party"}
    assert acc.cross_check in {"agree", "conflict", "single"}
    assert acc.status in {"available", "announced"}
    everything = [
        *acc.figures.values(),
        *(row.figure for row in acc.measured),
        *(figure for figures in acc.also_published.values() for figure in figures),
    ]
    assert all(figure.source and figure.confidence and figure.unit for figure in everything)
    assert not set(acc.unread_formats) & set(acc.peaks_flops_per_s)


@pytest.mark.parametrize("ident", list(CATALOGUE))
def test_measured_does_not_exceed_published(ident):
    acc = CATALOGUE[ident]
    bandwidth = acc.measured_bandwidth
    assert bandwidth is None or bandwidth.value <= acc.bandwidth_bytes_per_s
    for fmt, figure in acc.measured_peaks.items():
        assert figure.value <= acc.peak(fmt)


def test_every_alias_resolves_and_hides_no_id():
    assert len(CATALOGUE.aliases) > 100
    for alias, ident in CATALOGUE.aliases.items():
        assert hw.get_accelerator(alias).id == ident
    for ident in CATALOGUE:
        assert hw.get_accelerator(ident).id == ident
        assert hw.get_accelerator(CATALOGUE[ident].name).id == ident


@pytest.mark.parametrize(
    ("name", "ident"),
    [
        ("H100", "h100-sxm5"),
        ("h100-sxm", "h100-sxm5"),
        ("h100_sxm", "h100-sxm5"),
        ("NVIDIA H100 80GB HBM3", "h100-sxm5"),
        ("NVIDIA A100-SXM4-80GB", "a100-sxm4-80gb"),
        ("a100-80gb", "a100-sxm4-80gb"),
        ("Tesla T4", "t4"),
        ("b200", "b200-sxm"),
        ("MI300X", "mi300x"),
        ("AMD Instinct MI300X", "mi300x"),
        ("4090", "rtx-4090"),
        ("rtx4090", "rtx-4090"),
        ("NVIDIA GeForce RTX 4090", "rtx-4090"),
        (" M3 max ", "m3-max"),
        ("trn2", "trainium2"),
        ("strix halo", "ryzen-ai-max-395"),
    ],
)
def test_names_people_use(name, ident):
    assert hw.get_accelerator(name).id == ident


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("h1000", "h100-sxm5"),
        ("a100", "a100-sxm4-80gb"),  # 40 or 80 GB: not ours to guess
        ("v100", "v100-sxm2-32gb"),
        ("rtx 3080", "rtx-3080-10gb"),
        ("rtx-pro-6000", "rtx-pro-6000-server"),
        ("mi 300", "mi300x"),
        ("", "h100-sxm5"),
        ("x" * 5000, "h100-sxm5"),
        ("nvidia", "h100-sxm5"),
    ],
)
def test_unknown_name_gets_one_line_with_the_nearest(name, near):
    with pytest.raises(hw.UnknownAccelerator) as caught:
        hw.get_accelerator(name)
    message = str(caught.value)
    assert message.startswith("gpu: unknown accelerator ")
    assert "\n" not in message
    assert len(message) < 250
    if name != "nvidia":
        assert near in message.partition("nearest: ")[2]


# Bytes: nominal GB of a card are GiB; units that sources spell out are kept.
@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("h100-sxm5", 85_899_345_920),  # 80 GiB
        ("a100-sxm4-40gb", 40 * GIB),
        ("mi300x", 192 * GIB),
        ("b200-sxm", 180 * GIB),  # 193.3e9, sold as 180 and as 192 GB
        ("b300-sxm", round(268.6 * GIB)),  # device query 275,040 MiB, sold as 288 GB
        ("gb300", round(277.5 * GIB)),
        ("gb200", 186 * GIB),
        ("b100", 192 * 10**9),  # printed decimal
        ("groq-lpu-v1", 230 * 10**6),
        ("tpu-v5p", 95 * GIB),
        ("m4", 32 * GIB),
        ("epyc-9654", 12 * 64 * GIB),  # assumed: a module of 64 GiB on each channel
    ],
)
def test_memory_units(name, expected):
    assert hw.get_accelerator(name).memory_bytes == expected


def test_memory_not_on_record_is_an_error_only_where_it_is_needed():
    acc = FIRST["m4"]
    with pytest.raises(hw.MissingFigure, match=r"m4 has no memory size on record.*memory_bytes"):
        acc.memory()
    assert hw.get_accelerator("h100").memory() == 80 * GIB


def test_values_taken_where_sources_conflict():
    # The eight conflicts that change an answer.
    assert hw.get_accelerator("b300").peak("int8") == 153.5e12
    assert hw.get_accelerator("gb300").peak("int8") == 165e12
    assert hw.get_accelerator("b300").peak("fp4") == 14e15
    assert hw.get_accelerator("b200").bandwidth_bytes_per_s == 7.7e12
    assert hw.get_accelerator("gb200").bandwidth_bytes_per_s == 8e12
    assert hw.get_accelerator("rtx-pro-6000-server").bandwidth_bytes_per_s == 1597e9
    assert hw.get_accelerator("4090").peak("bf16") == 165.2e12
    assert hw.get_accelerator("mi355x").peak("bf16") == 2516.6e12
    assert hw.get_accelerator("gaudi3").peak("bf16") == 1677e12


# Two that match and one that does not, by their datasheets.
@pytest.mark.parametrize(
    ("filters", "inside", "outside"),
    [
        ({"vendor": "amd"}, ("mi300x", "rx-7900-xtx"), "h100-sxm5"),
        ({"kind": "tpu"}, ("tpu-v4", "tpu-v5e"), "trainium2"),
        ({"status": "announced"}, ("rubin-nvl72", "mi455x"), "b300-sxm"),
        ({"format": "fp4"}, ("b200-sxm", "rtx-pro-4500"), "h200-sxm"),
        ({"vendor": "AMD", "format": "fp4"}, ("mi350x", "mi355x"), "b200-sxm"),
        ({"min_memory_bytes": 250 * GIB, "vendor": "NVIDIA"}, ("b300-sxm", "gb300"), "b200-sxm"),
        ({"text": "hopper"}, ("h100-sxm5", "h20-141gb"), "a100-sxm4-80gb"),
    ],
)
def test_list_accelerators(filters, inside, outside):
    listed = {acc.id for acc in hw.list_accelerators(**filters)}
    assert listed >= set(inside)
    assert outside not in listed


def test_no_filter_lists_all_and_one_that_nothing_meets_none():
    assert [acc.id for acc in hw.list_accelerators()] == list(CATALOGUE)
    assert hw.list_accelerators(text="no such") == []
