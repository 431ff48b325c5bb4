"""Bounded lanes: what only computes, the store and long work cannot hold each other up."""

from __future__ import annotations

from api.lanes.cache import AnswerCache
from api.lanes.lane import Lane, LaneFull, Lanes
from api.lanes.processes import Processes
from api.lanes.quick import QuickWork
from api.lanes.streams import streamed

__all__ = ["AnswerCache", "Lane", "LaneFull", "Lanes", "Processes", "QuickWork", "streamed"]
