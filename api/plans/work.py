"""Long answers; functions that a worker process can run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from api.measurements.calibrations import calibration_of
from api.plans.tables import to_csv, to_parquet
from api.web.accept import CSV, JSON
from api.web.call import call_planner
from planner.calibration import using
from planner.plans.fleet import Fleet, fleet
from planner.plans.fleet_request import FleetRequest
from planner.plans.recommend import Recommendation, RecommendationRequest, recommend
from planner.plans.sweep import SweepRequest, SweepResult, sweep

SweepWork = tuple[SweepRequest, Sequence[str], str, str]
"""A resolved request, labels of its accelerators, the workspace's calibration, a media type."""
RecommendationWork = tuple[RecommendationRequest, RecommendationRequest, Mapping[str, str], str]
"""A request resolved and as it was sent, own ids by the planner's, the workspace's calibration."""
FleetWork = tuple[FleetRequest, FleetRequest, str]
"""A request resolved and as it was sent, and the workspace's calibration."""


def answer_recommendation(
    resolved: RecommendationRequest,
    request: RecommendationRequest,
    names: Mapping[str, str],
    document: str,
) -> Recommendation:
    """Return what to run, in the names of the request."""
    with using(calibration_of(document)):
        result = call_planner(recommend, resolved)
    named = {
        field: [one.model_copy(update={"gpu": names.get(one.gpu, one.gpu)}) for one in items]
        for field, items in (("choices", result.choices), ("refused", result.refused))
    }
    return result.model_copy(update={"request": request, **named})


def answer_fleet(resolved: FleetRequest, request: FleetRequest, document: str) -> Fleet:
    """Return a fleet's day, in the names of the request."""
    with using(calibration_of(document)):
        result = call_planner(fleet, resolved)
    return result.model_copy(update={"request": request})


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
