"""LLM decode capacity planner: a model, a machine and a workload in; a plan out."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from planner.answer import Plan
    from planner.plans.planning import plan
    from planner.scenario import Scenario

__all__ = ["Plan", "Scenario", "plan"]

_HOMES = {"Plan": "answer", "Scenario": "scenario", "plan": "plans.planning"}


def __getattr__(name: str) -> object:
    """Load the public names when they are first used."""
    if name not in _HOMES:
        raise AttributeError(f"module 'planner' has no attribute {name!r}")
    return getattr(import_module(f"planner.{_HOMES[name]}"), name)
