"""Sweeps as the bytes that answer them; functions that a worker process can run."""

from __future__ import annotations

from collections.abc import Sequence

from api.measurements.calibrations import calibration_of
from api.plans.tables import to_csv, to_parquet
from api.web.accept import CSV, JSON
from api.web.call import call_planner
from planner.calibration import using
from planner.plans.sweep import SweepRequest, SweepResult, sweep


def answer_sweep(request: SweepRequest, labels: Sequence[str], document: str, kind: str) -> bytes:
    """Return the rows of a sweep in a media type.

    `labels` are what its accelerators are called; `document` is the workspace's calibration.
    """
    with using(calibration_of(document)):
        result = call_planner(sweep, request)
    # The accelerator is the outermost axis: its rows are together.
    size = result.rows // len(labels)
    named = {"gpu": [name for name in labels for _ in range(size)]}
    return _serialised(result.model_copy(update={"columns": {**result.columns, **named}}), kind)


def _serialised(result: SweepResult, kind: str) -> bytes:
    if kind == JSON:
        return result.model_dump_json().encode()
    return to_csv(result) if kind == CSV else to_parquet(result)
