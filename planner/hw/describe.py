"""The JSON that shows one accelerator."""

from __future__ import annotations

from typing import Any

from planner.hw._data import EDITION
from planner.hw.accelerator import Accelerator
from planner.hw.figure import Figure
from planner.hw.prices import Price, price_per_hour


def describe(acc: Accelerator) -> dict[str, Any]:
    """Everything on record for one accelerator, ready for JSON; SI units, rates per second.

    `ridge_point` and `measured_ridge_point` are FLOP/byte by format, `sources` maps each figure to
    where it comes from, `confidences` to how far that carries, `price` is on demand.
    """
    bandwidth = acc.measured_bandwidth
    return {
        "id": acc.id,
        "name": acc.name,
        "vendor": acc.vendor,
        "architecture": acc.architecture,
        "kind": acc.kind,
        "year": acc.year,
        "status": acc.status,
        "peaks_flops_per_s": dict(acc.peaks_flops_per_s),
        "bandwidth_bytes_per_s": acc.bandwidth_bytes_per_s,
        "memory_bytes": acc.memory_bytes,
        "memory_type": acc.memory_type,
        "ridge_point": acc.ridge_points,
        "measured_bandwidth_bytes_per_s": bandwidth.value if bandwidth else None,
        "measured_flops_per_s": {f: figure.value for f, figure in acc.measured_peaks.items()},
        "measured_ridge_point": acc.measured_ridge_points,
        "link": {
            "name": acc.link.name,
            "bytes_per_s": acc.link.bytes_per_s,
            "pair_bytes_per_s": acc.link.pair_bytes_per_s,
        },
        "domain_size": acc.domain_size,
        "pcie": acc.pcie,
        "form_factor": acc.form_factor,
        "sm_count": acc.sm_count,
        "l2_bytes": acc.l2_bytes,
        "tdp_w": acc.tdp_w,
        "confidence": acc.confidence,
        "cross_check": acc.cross_check,
        "price": _price(price_per_hour(acc.part)),
        "sources": {name: figure.source for name, figure in acc.figures.items()},
        "confidences": {name: figure.confidence for name, figure in acc.figures.items()},
        "also_published": {
            name: [_figure(figure) for figure in figures]
            for name, figures in acc.also_published.items()
        },
        "measured": [
            {
                "metric": row.metric,
                "format": row.format,
                "value": row.figure.value,
                "source": row.figure.source,
                "confidence": row.figure.confidence,
                "note": row.note,
            }
            for row in acc.measured
        ],
        "notes": list(acc.notes),
        "edition": EDITION,
    }


def _figure(figure: Figure) -> dict[str, Any]:
    return {"value": figure.value, "source": figure.source}


def _price(price: Price | None) -> dict[str, Any] | None:
    if price is None:
        return None
    return {
        "usd_per_gpu_hour": price.usd_per_gpu_hour,
        "low": price.low,
        "high": price.high,
        "providers": price.providers,
        "date": price.date,
        "oldest_date": price.oldest_date,
        "source": price.source,
    }
