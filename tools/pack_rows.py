"""Pack tables of measured runs as the calibration keeps them: `pack_rows.py MEASURED_DIR`.

Keeps the columns that say what was run, what came out and where it was published; blank columns
and remarks of the collectors stay behind.
"""

from __future__ import annotations

import csv
import gzip
import io
import sys
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
    target = Path(str(ROWS.joinpath(f"{kind}-{EDITION}.csv.gz")))
    target.write_bytes(gzip.compress(text.getvalue().encode(), mtime=0))
    print(f"{target.name}: {target.stat().st_size} bytes")


if __name__ == "__main__":
    for kind in ("serving", "decode", "memory"):
        pack(Path(sys.argv[1]) / f"{kind}_train.csv")
