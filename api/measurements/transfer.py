"""Measurements in the export of a workspace, and back from it."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field

from api.measurements.schemas import MeasuredRun
from api.store.tables import MeasurementRow, new_id
from api.web.call import call_planner
from api.web.parameters import Time
from planner.benchmarks import Context
from planner.benchmarks.results import Run, complete
from planner.runs.entries import entry_of, row_of
from planner.runs.rows import Row


class ExportedMeasurement(BaseModel):
    """Results that were added, as the runs read from them."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    format: str = Field(max_length=40)
    rows: list[MeasuredRun] = Field(min_length=1)
    notes: list[str]
    created_at: Time


def export_measurement(row: MeasurementRow) -> ExportedMeasurement:
    """Return what an export says of a measurement."""
    return ExportedMeasurement(
        format=row.format,
        rows=[MeasuredRun.model_validate(entry) for entry in row.runs],
        notes=row.notes,
        created_at=row.created_at,
    )


def import_measurement(
    workspace: str, exported: ExportedMeasurement
) -> tuple[MeasurementRow, list[Row]]:
    """Return a measurement under a new id, its runs checked as if they were added anew."""
    runs = [
        call_planner(_checked, row_of(run.model_dump()), number)
        for number, run in enumerate(exported.rows, 1)
    ]
    row = MeasurementRow(
        id=new_id(),
        workspace=workspace,
        format=exported.format,
        notes=exported.notes,
        runs=[entry_of(run) for run in runs],
        created_at=exported.created_at,
    )
    return row, runs


def _checked(row: Row, number: int) -> Row:
    inputs = {name: text for name, text in row.inputs.items() if text and name != "row"}
    if requests := row.remarks.get("requests"):
        inputs["requests"] = requests
    run = Run(row.kind, inputs, row.measured)
    return complete(run, Context(), number, row.remarks.get("source", "import"), local=False)
