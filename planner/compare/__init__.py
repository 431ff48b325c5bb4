"""Comparing scenarios: side by side, who wins what, and where a difference comes from."""

from __future__ import annotations

from planner.compare.answers import Comparison, ComparisonRequest
from planner.compare.comparing import compare
from planner.compare.text import to_csv, to_markdown

__all__ = ["Comparison", "ComparisonRequest", "compare", "to_csv", "to_markdown"]
