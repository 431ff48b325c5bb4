"""From the measurements of a workspace to the document about its calibration."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict

from api.measurements.schemas import WorkspaceCalibration
from api.web.call import call_planner
from api.web.problem import over_limit
from planner.calibration import shipped
from planner.fitting.own import refit
from planner.runs.entries import joined
from planner.runs.rows import Row


def fitted(measured: Mapping[str, Sequence[Row]], most: int) -> WorkspaceCalibration:
    """Return what measurements, one at least, make of the shipped calibration.

    The edition names how many measurements there are and a digest of the factors: the same factors
    have the same edition, in every workspace. Raises a 422 problem where no row can be predicted.
    """
    rows = joined(row for measurement in measured.values() for row in measurement)
    if len(rows) > most:
        raise over_limit("results", len(rows), most, "PLANNER_MAX_MEASURED_RUNS")
    refitted = call_planner(refit, rows, shipped())
    factors = [dict(level) for level in refitted.factors]
    digest = hashlib.sha256(json.dumps(factors, sort_keys=True).encode()).hexdigest()[:12]
    return WorkspaceCalibration.model_validate(
        {
            "edition": f"{refitted.edition}+own.{len(measured)}.{digest}",
            "shipped": refitted.edition,
            "runs": refitted.rows,
            "left_out": refitted.left_out,
            "factors": factors,
            "errors": [
                {**{k: v for k, v in asdict(one).items() if k != "rows"}, "runs": one.rows}
                for one in refitted.groups
            ],
            "notes": list(refitted.notes),
        }
    )
