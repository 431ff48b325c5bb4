"""Links, collectives and dated prices."""

from __future__ import annotations

import pytest

from planner import hw
from planner.hw import links


# Counts and sums of the research table, taken before import.
def test_link_tables_are_whole():
    specs = hw.link_specs()
    assert len(specs) == 27
    assert sum(row.bytes_per_s for row in specs) == 10898.5e9
    curves = hw.all_reduces()
    assert len(curves) == 165
    assert sum(row.busbw_bytes_per_s for row in curves) == pytest.approx(58759.4e9)
    assert len(links.transfers()) == 7
    assert len(links.bus_bandwidths()) == 12
    assert len(links.expert_exchanges()) == 20
    assert len(links.assumptions()) == 14


@pytest.mark.parametrize(
    "rows",
    [
        hw.link_specs(),
        hw.all_reduces(),
        links.transfers(),
        links.bus_bandwidths(),
        links.expert_exchanges(),
        links.assumptions(),
    ],
)
def test_every_link_row_has_a_source_and_plausible_values(rows):
    for row in rows:
        assert row.source
        for name in ("bytes_per_s", "busbw_bytes_per_s"):
            value = getattr(row, name, None)
            assert value is None or 1e7 <= value < 1e13
        for name in ("latency_s", "latency_64kib_s", "latency_1mib_s", "time_s"):
            value = getattr(row, name, None)
            assert value is None or 1e-7 < value < 1e-2
        if gpu := getattr(row, "gpu", None):
            assert gpu in hw.load_catalogue()


def test_all_reduce_of_eight_h100_in_a_graph():
    # aiconfigurator-core 0.12.0 tables: SGLang 0.5.14, 3.54 us up to 8 KiB, 468.1 GB/s.
    (row,) = hw.all_reduces("h100-sxm5", 8, library="sglang", launch="cuda_graph")
    assert (row.version, row.latency_s, row.busbw_bytes_per_s) == ("0.5.14", 3.54e-6, 468.1e9)
    (eager,) = hw.all_reduces("h100-sxm5", 8, library="SGLang", launch="eager")
    assert eager.latency_s is not None
    assert eager.latency_s > 5 * row.latency_s
    assert hw.all_reduces("rtx-4090") == ()


def test_links_of_the_catalogue_match_the_link_table():
    speed = {row.name: row.bytes_per_s for row in hw.link_specs()}
    for name, gpu in [("NVLink 3", "a100-80gb"), ("NVLink 4", "h100"), ("NVLink 5", "b200")]:
        assert hw.get_accelerator(gpu).link.bytes_per_s == speed[name]


def test_prices_are_whole():
    rows = hw.load_prices()
    assert len(rows) == 145
    assert sum(row.usd_per_gpu_hour for row in rows) == pytest.approx(514.8626)
    for row in rows:
        assert row.source
        assert row.provider
        assert row.gpus
        assert set(row.gpus) <= set(hw.load_catalogue())
        assert row.date is None or "2026-06-25" <= row.date <= "2026-11-29"
        assert 0.1 < row.usd_per_gpu_hour < 20


# Worked by hand from the rows: each provider's newest on-demand price, then the median.
@pytest.mark.parametrize(
    ("gpu", "usd", "providers", "date"),
    [
        # Hyperstack 3.20, Nebius 3.85, RunPod 3.99, Lambda 4.14 (median of four sizes),
        # CoreWeave 6.155, AWS 6.88, GCP 10.9791, Azure 12.29
        ("h100-sxm5", 5.1475, 8, "2026-11-09"),
        # Hyperstack 6.00, RunPod 6.79, Lambda 6.84, Nebius 7.15, CoreWeave 8.60
        ("b200-sxm", 6.84, 5, "2026-09-25"),
        ("b300-sxm", 7.4, 1, "2026-08-26"),  # the spot row does not count
        ("rtx-4090", 0.74, 1, "2026-09-25"),  # nor do community hosts and serverless
        ("trainium1", 1.3438, 1, "2026-06-25"),  # 21.50 for sixteen
        ("inferentia2", 1.0817, 1, None),  # undated: nothing better
        ("a100-pcie-40gb", 1.99, 1, "2026-09-20"),  # printed without form factor
    ],
)
def test_price_per_hour(gpu, usd, providers, date):
    price = hw.price_per_hour(gpu)
    assert price is not None
    assert price.usd_per_gpu_hour == pytest.approx(usd)
    assert (price.providers, price.date) == (providers, date)
    assert price.low <= price.usd_per_gpu_hour <= price.high
    assert {row.kind for row in price.rows} == {"on_demand"}
    assert price.rows[0].provider in price.source


@pytest.mark.parametrize("gpu", ["mi300x", "tpu-v6e", "t4", "m3-max", "no such"])
def test_no_on_demand_price(gpu):
    assert hw.price_per_hour(gpu) is None


def test_all_rows_can_be_listed_by_kind():
    kinds = {row.kind for row in hw.list_prices()}
    assert kinds == {
        "on_demand",
        "community",
        "marketplace",
        "listing_average",
        "spot",
        "reserved",
        "serverless",
        "managed",
        "assumption",
        "estimate",
    }
    assert len(hw.list_prices(kind="spot")) == 5
    assert len(hw.list_prices("t4")) == 2
