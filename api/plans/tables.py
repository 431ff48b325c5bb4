"""Sweeps as files: CSV, and Parquet where the extra `tables` is installed."""

from __future__ import annotations

import csv
import io
from importlib.util import find_spec
from typing import Any

from api.web.accept import CSV, JSON, PARQUET
from api.web.problem import Problem
from planner.plans.sweep import SweepResult

OFFERED = (JSON, CSV, PARQUET)


def to_csv(result: SweepResult) -> bytes:
    """Return a row a point; texts that a spreadsheet would take for a formula are quoted."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(result.columns)
    for row in zip(*result.columns.values(), strict=True):
        writer.writerow([_plain(cell) for cell in row])
    return text.getvalue().encode()


def _plain(cell: Any) -> Any:
    return f"'{cell}" if isinstance(cell, str) and cell[:1] in {"=", "+", "-", "@"} else cell


def require_parquet() -> None:
    """Raise 406 where nothing here can write Parquet."""
    if find_spec("pyarrow") is None:
        raise Problem(406, f"Accept: no Parquet here (extra `tables`); offered: {JSON}, {CSV}")


def to_parquet(result: SweepResult) -> bytes:
    """Return a Parquet file; raises 406 where nothing here can write one."""
    require_parquet()
    import pyarrow as pa
    import pyarrow.parquet as parquet

    types = (
        dict.fromkeys(("gpu", "weights", "kv", "bound", "error"), pa.string())
        | dict.fromkeys(("tp", "batch", "context"), pa.int64())
        | {"fits": pa.bool_()}
    )
    schema = pa.schema([(name, types.get(name, pa.float64())) for name in result.columns])
    data = io.BytesIO()
    parquet.write_table(pa.table(result.columns, schema=schema), data)
    return data.getvalue()
