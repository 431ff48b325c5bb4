"""Which calibration answers are made with: the shipped one, the user's own, or one chosen."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from importlib.resources import files

from planner.calibration.own import with_own
from planner.calibration.table import EDITION, Calibration, from_json

_CHOSEN: ContextVar[Calibration | None] = ContextVar("calibration", default=None)


@contextmanager
def using(calibration: Calibration | None) -> Iterator[None]:
    """Answer with a calibration inside the block; None leaves the one in use outside of it.

    Only in this thread or task: others started inside have to choose for themselves.
    """
    before = _CHOSEN.set(calibration or _CHOSEN.get())
    try:
        yield
    finally:
        _CHOSEN.reset(before)


def current() -> Calibration:
    """Return the calibration in use: the one of `using`, else the shipped one, with the factors
    that the user of this machine keeps if any.

    Raises BrokenLocal (a ValueError) where those cannot be read.
    """
    return _CHOSEN.get() or _of_this_machine()


@cache
def _of_this_machine() -> Calibration:
    return with_own(shipped())


@cache
def shipped() -> Calibration:
    """Return the calibration that comes with the package."""
    text = files("planner.calibration").joinpath(f"data/calibration-{EDITION}.json")
    return from_json(json.loads(text.read_text("utf-8")))
