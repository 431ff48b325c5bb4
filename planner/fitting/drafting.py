"""Fitting multi-token prediction: the tokens a step yields, from runs that had it on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from planner.calibration.table import from_json
from planner.runs.predict import predict
from planner.runs.rows import Row

HALVINGS = 20


def fit_accepted(rows: Sequence[Row], content: Mapping[str, Any]) -> float:
    """Return the tokens a step yields at which half of the rows are faster than predicted [-].

    More tokens a step make every prediction faster, so that the balance is found by bisection.
    """
    given = content["speculation"]
    low, high = 1.0, 1.0 + given["drafts"]
    measured = np.array([row.measured["tpot_ms"] for row in rows])
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        figures = from_json({**content, "speculation": {**given, "accepted": middle}})
        predicted = np.array([one.values["tpot_ms"] for one in predict(rows, figures)])
        low, high = (middle, high) if np.median(predicted / measured) > 1 else (low, middle)
    return float(f"{(low + high) / 2:.4g}")
