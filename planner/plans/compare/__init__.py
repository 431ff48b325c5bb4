"""Comparing scenarios: side by side, who wins what, and where a difference comes from."""

from __future__ import annotations

from planner.plans.compare.answers import Comparison, ComparisonRequest
from planner.plans.compare.comparing import compare
from planner.plans.compare.text import to_csv, to_markdown

__all__ = ["Comparison", "ComparisonRequest", "compare", "to_csv", "to_markdown"]
