"""Bounded lanes: what only computes, the store and long work cannot hold each other up."""

from __future__ import annotations

from api.lanes.lane import LANE, Lane, LaneFull, Lanes
from api.lanes.processes import Processes

__all__ = ["LANE", "Lane", "LaneFull", "Lanes", "Processes"]
