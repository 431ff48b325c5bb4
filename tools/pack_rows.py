"""Pack tables of measured runs as the calibration keeps them: `pack_rows.py MEASURED_DIR`.

Keeps the columns that say what was run, what came out and where it was published; blank columns
and remarks of the collectors stay behind.
"""

from __future__ import annotations

import csv
import gzip
import io
import sys
from collections.abc import Mapping
from pathlib import Path

from planner.calibration.table import EDITION
from planner.fitting.committed import ROWS
from planner.runs.rows import INPUTS, MEASURED, recognise

REMARKS = ("queued", "suspect", "source")


def pack(source: Path) -> None:
    with source.open(encoding="utf-8", newline="") as file:
        reader = csv.DictReader(file)
        kind = recognise(reader.fieldnames or ())
        names = [n for n in (*INPUTS[kind], *MEASURED[kind], *REMARKS) if n in reader.fieldnames]
        text = io.StringIO()
        writer = csv.DictWriter(text, names, extrasaction="ignore", lineterminator="\n")
        writer.writeheader()
        writer.writerows(reader)
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
