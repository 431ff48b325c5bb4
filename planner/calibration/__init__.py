"""Measured efficiencies: one dated file that says what hardware reaches of its datasheet."""

from planner.calibration.current import current, shipped, using
from planner.calibration.subject import Subject, subject_of
from planner.calibration.table import Calibration, Parameter, Speculation

__all__ = [
    "Calibration",
    "Parameter",
    "Speculation",
    "Subject",
    "current",
    "shipped",
    "subject_of",
    "using",
]
