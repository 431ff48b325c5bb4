"""Pack tables of measured runs as the calibration keeps them: `pack_rows.py MEASURED_DIR`.

Keeps the columns that say what was run, what came out and where it was published; blank columns
and remarks of the collectors stay behind.
"""

from __future__ import annotations

import csv
import gzip
import io
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

from planner.calibration.table import EDITION
from planner.fitting.committed import ROWS
from planner.runs.rows import INPUTS, MEASURED, recognise

REMARKS = ("queued", "suspect", "source")


STATED = {
    "M0178": {
        "engine_version": "0.21.0",
        "gpu_memory_utilization": "0.85",
        "max_sequences": "4",
        "max_batched_tokens": "6144",
        "weight_format": "awq_g32",
        "source": "noonghunna/club-3090 BENCHMARKS.md row dual-awq.yml n=4; settings of "
        "models/gemma-4-31b/vllm/compose/dual/awq.yml: groups of 32; a nightly build of May 2026 "
        "that prints requests, as 0.21 does",
    },
    "M0183": {
        "engine_version": "0.25.1",
        "kv_pool_bytes": "820000000",
        "max_sequences": "4",
        "max_batched_tokens": "1024",
        "prefix_caching": "off",
        "source": "noonghunna/club-3090 issue 859 (version) and BENCHMARKS.md row "
        "nemotron-75b-dual-w4a16 (5090); settings of "
        "models/nemotron-3-puzzle-75b/vllm/compose/dual/w4a16/turbo.yml",
    },
}
"""Settings of memory rows that their sources state and the table has no column for."""


def completed(rows: Iterable[dict[str, str]]) -> list[dict[str, str]]:
    """Return rows with the settings that their sources state, all with the same columns."""
    rows = [row | STATED.get(row["row"], {}) for row in rows]
    names = {name: "" for row in rows for name in row}
    return [names | row for row in rows]


def pack(source: Path) -> None:
    with source.open(encoding="utf-8", newline="") as file:
        reader = csv.DictReader(file)
        kind = recognise(reader.fieldnames or ())
        rows = completed(reader)
        names = [n for n in (*INPUTS[kind], *MEASURED[kind], *REMARKS) if n in rows[0]]
        text = io.StringIO()
        writer = csv.DictWriter(text, names, extrasaction="ignore", lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    write(kind, text.getvalue())


LABELS = {
    "gpustack": "gpustack performance lab",
    "sgl-project": "sglang cookbook",
    "vllm-project": "vllm recipes",
}
"""Sources of further serving runs that tell what a closed loop does, by their organisation; those
left out sent all requests at once, at rates, or through disaggregated workers."""


def pack_more(source: Path) -> None:
    """Pack runs of further public sources that are a closed loop of plain decoding."""
    with source.open(encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file) if plain(row)]
    for row in rows:
        row["source"] = LABELS[row["source_repo"].partition("/")[0]]
    names = [n for n in (*INPUTS["serving"], *MEASURED["serving"], *REMARKS) if n in rows[0]]
    text = io.StringIO()
    writer = csv.DictWriter(
        text, dict.fromkeys([*names, "origin"]), extrasaction="ignore", lineterminator="\n"
    )
    writer.writeheader()
    writer.writerows(row | {"origin": f"{row['source_repo']} {row['source_path']}"} for row in rows)
    write("serving-more", text.getvalue())


def plain(row: Mapping[str, str]) -> bool:
    """Return whether a run is a closed loop without drafts on a replica of a known split."""
    return (
        row["source_repo"].partition("/")[0] in LABELS
        and row["spec_decode"] == "none"
        and not row["source"].startswith("burst")
        and all(row[name] for name in ("tp", "isl", "osl", "ttft_ms", "tpot_ms"))
        and "cold first request" not in row["source"]
    )


def write(name: str, text: str) -> None:
    target = Path(str(ROWS.joinpath(f"{name}-{EDITION}.csv.gz")))
    target.write_bytes(gzip.compress(text.encode(), mtime=0))
    print(f"{target.name}: {target.stat().st_size} bytes")


if __name__ == "__main__":
    pack_more(Path(sys.argv[1]) / "serving_more.csv")
    for kind in ("serving", "decode", "memory"):
        pack(Path(sys.argv[1]) / f"{kind}_train.csv")
