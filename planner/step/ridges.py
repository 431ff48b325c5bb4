"""Ridge points of accelerators by format: of the datasheet and of what was measured."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from planner.hw import Accelerator, get_accelerator, list_accelerators


def ridges(gpus: Sequence[str | dict[str, Any]] = ()) -> list[dict[str, Any]]:
    """Return one row per accelerator and format, over `gpus` or, when empty, all of them.

    Measured figures are None where nothing was published. Raises UnknownAccelerator.
    """
    chosen = [get_accelerator(gpu) for gpu in gpus] if gpus else list_accelerators()
    return _rows(chosen)


def other_bandwidths(
    gpus: Sequence[str | dict[str, Any]],
) -> list[tuple[list[dict[str, Any]], str]]:
    """Return the rows of `gpus` at every other published bandwidth, and whose figure that is."""
    return [
        (_rows([accelerator.alternative("bandwidth_bytes_per_s", index)]), figure.source)
        for accelerator in map(get_accelerator, gpus)
        for index, figure in enumerate(accelerator.also_published.get("bandwidth_bytes_per_s", ()))
    ]


def _rows(chosen: Sequence[Accelerator]) -> list[dict[str, Any]]:
    rows = []
    for accelerator in chosen:
        bandwidth, peaks = accelerator.measured_bandwidth, accelerator.measured_peaks
        measured = accelerator.measured_ridge_points
        for name, peak in accelerator.peaks_flops_per_s.items():
            rows.append(
                {
                    "gpu": accelerator.id,
                    "format": name,
                    "peak_flops_per_s": peak,
                    "bandwidth_bytes_per_s": accelerator.bandwidth_bytes_per_s,
                    "ridge_point": accelerator.ridge_point(name),
                    "measured_flops_per_s": peaks[name].value if name in peaks else None,
                    "measured_bandwidth_bytes_per_s": bandwidth.value if bandwidth else None,
                    "measured_ridge_point": measured.get(name),
                }
            )
    return rows
