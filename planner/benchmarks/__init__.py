"""Measurements of the user's own: readers of benchmark tools, rows of runs, local refit."""

from planner.benchmarks.read import ACCEPTED, read_measurements, read_text
from planner.benchmarks.results import Context, Measurements, MissingContext, UnknownResults

__all__ = [
    "ACCEPTED",
    "Context",
    "Measurements",
    "MissingContext",
    "UnknownResults",
    "read_measurements",
    "read_text",
]
