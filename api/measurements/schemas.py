"""Documents about measurements and the calibration they give."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from planner.answer import Answer


class MeasuredRun(Answer):
    """One measured run, in the columns of the project's rows."""

    kind: Literal["serving", "decode"]
    inputs: dict[str, str] = Field(description="what was run")
    measured: dict[str, float] = Field(description="what came out: ttft_ms and tpot_ms, or value")
    remarks: dict[str, str] = Field(description="what is known about the run: queued, source")


class MeasurementSummary(Answer):
    """Results that were added, in a list."""

    id: str
    format: str = Field(examples=["vLLM bench serve"])
    runs: int
    notes: list[str] = Field(description="runs left out and assumptions made")
    created_at: str


class Measurement(MeasurementSummary):
    """Results that were added, with the runs read from them."""

    rows: list[MeasuredRun]


class GroupErrors(Answer):
    """Median error of one quantity over the runs of one accelerator and engine."""

    gpu: str
    engine: str
    quantity: str = Field(examples=["tpot_ms"])
    runs: int
    before: float = Field(description="with the shipped calibration")
    after: float = Field(description="with the workspace's")


class WorkspaceCalibration(Answer):
    """What the measurements of a workspace make of the shipped calibration."""

    edition: str = Field(description="as in `editions.calibration` of every answer")
    shipped: str = Field(description="edition of the calibration it adjusts")
    runs: int = Field(description="runs of all measurements; one that is there twice counts once")
    errors: list[GroupErrors]
    left_out: dict[str, float] = Field(
        description="median error of runs left out of the fit in fifths, from ten runs on"
    )
    factors: list[dict[str, float]] = Field(
        description="on times: of each GPU and engine, then by weight format, then by model"
    )
    notes: list[str] = Field(description="runs that cannot be predicted, and so take no part")


class AddedMeasurement(Answer):
    """What was read, and the calibration of the workspace from now on."""

    measurement: Measurement
    calibration: WorkspaceCalibration


class MeasurementPage(Answer):
    """One page of measurements, oldest first."""

    items: list[MeasurementSummary]
    next_cursor: str | None
    calibration: WorkspaceCalibration | None = Field(description="null without measurements")
