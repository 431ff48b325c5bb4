"""What people paste of benchmark results: the text that load generators print, Markdown tables.

Each is turned into the object of the tool's own JSON, so that one reader serves both.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

PRINTED = {
    "successful requests": "completed",
    "maximum request concurrency": "max_concurrency",
    "max request concurrency": "max_concurrency",
    "traffic request rate": "request_rate",
    "total input tokens": "total_input_tokens",
    "total generated tokens": "total_output_tokens",
    "request throughput (req/s)": "request_throughput",
    "mean ttft (ms)": "mean_ttft_ms",
    "mean tpot (ms)": "mean_tpot_ms",
    "mean e2e latency (ms)": "mean_e2e_latency_ms",
    "backend": "backend",
}
"""Keys of the JSON by what vLLM bench serve and SGLang bench_serving print before a colon."""

_BLOCK = re.compile(r"^=+ *Serving Benchmark Result *=+$", re.IGNORECASE | re.MULTILINE)
_TEST = re.compile(r"^(?:pp(\d+))?\+?(?:tg(\d+))?(?: @ d(\d+))?$")
_BYTES = {"KiB": 2.0**10, "MiB": 2.0**20, "GiB": 2.0**30, "TiB": 2.0**40}
_COUNTS = {"K": 1e3, "M": 1e6, "B": 1e9, "T": 1e12}


def pasted(text: str) -> list[Mapping[str, Any]] | None:
    """Return the objects that a pasted text stands for; None where it is none that is known."""
    return [*_printed(text)] or [*_markdown(text)] or None


def _printed(text: str) -> Iterator[dict[str, Any]]:
    for block in _BLOCK.split(text)[1:]:
        figures: dict[str, Any] = {"model_id": None}
        for line in block.splitlines():
            name, colon, value = line.rpartition(":")
            key = PRINTED.get(name.strip().lower())
            if colon and key:
                figures[key] = value.strip()
        if figures.get("max_concurrency") in ("None", "not set"):
            del figures["max_concurrency"]
        yield figures


def _markdown(text: str) -> Iterator[dict[str, Any]]:
    """Rows of the table that llama-bench prints: model, size, params, backend, test, t/s."""
    names: list[str] = []
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if {"test", "t/s"} <= set(cells):
            names = cells
        elif names and len(cells) == len(names) and not set(line) <= set("|-: "):
            yield _test(dict(zip(names, cells, strict=True)))


def _test(cells: dict[str, str]) -> dict[str, Any]:
    test = _TEST.match(cells["test"])
    prompt, generated, depth = test.groups() if test else (None, None, None)
    return {
        "n_prompt": int(prompt or 0),
        "n_gen": int(generated or 0),
        "n_depth": int(depth or 0),
        "avg_ts": cells["t/s"].partition("±")[0].strip(),
        "model_type": cells.get("model", ""),
        "model_size": _amount(cells.get("size", ""), _BYTES),
        "model_n_params": _amount(cells.get("params", ""), _COUNTS),
        "backends": cells.get("backend", ""),
        "flash_attn": cells.get("fa", ""),
    }


def _amount(text: str, units: dict[str, float]) -> float | None:
    number, _, unit = text.partition(" ")
    try:
        return float(number) * units[unit]
    except (ValueError, KeyError):
        return None
