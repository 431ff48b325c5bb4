"""Measurements in the export of a workspace, and back from it."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field

from api.measurements.schemas import MeasuredRun
from api.store.tables import MeasurementRow, new_id
from api.web.call import ask
from api.web.parameters import Time
from planner.benchmarks import Context
from planner.benchmarks.results import Run, complete
from planner.runs.entries import entry_of, row_of
from planner.runs.rows import Row


class MeasurementPart(BaseModel):
    """Results that were added, as the runs read from them."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    format: str = Field(max_length=40)
    rows: list[MeasuredRun] = Field(min_length=1)
    notes: list[str]
    created_at: Time


def part_of(row: MeasurementRow) -> MeasurementPart:
    """Return what an export says of a measurement."""
    return MeasurementPart(
        format=row.format,
        rows=[MeasuredRun.model_validate(entry) for entry in row.runs],
        notes=row.notes,
        created_at=row.created_at,
    )


def read_part(workspace: str, part: MeasurementPart) -> tuple[MeasurementRow, list[Row]]:
    """Return a measurement under a new id, its runs checked as if they were added anew."""
    runs = [
        ask(_checked, row_of(run.model_dump()), number) for number, run in enumerate(part.rows, 1)
    ]
    row = MeasurementRow(
        id=new_id(),
        workspace=workspace,
        format=part.format,
        notes=part.notes,
        runs=[entry_of(run) for run in runs],
        created_at=part.created_at,
    )
    return row, runs


def _checked(row: Row, number: int) -> Row:
    inputs = {name: text for name, text in row.inputs.items() if text and name != "row"}
    run = Run(row.kind, inputs, row.measured)
    return complete(run, Context(), number, row.remarks.get("source", "import"), local=False)
