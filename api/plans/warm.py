"""What worker processes are forked from: the planner and the long work of the service, loaded."""

from __future__ import annotations

import api.measurements.fitting
import api.plans.work
from planner.calibration import shipped

__all__ = ["api"]

shipped()
