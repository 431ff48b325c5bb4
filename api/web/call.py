"""Calling the planner: its bad-input errors become problems, and only those."""

from __future__ import annotations

from collections.abc import Callable
from typing import ParamSpec, TypeVar

from pydantic import ValidationError

from api.web.body import unacceptable
from api.web.problem import rejected
from planner.errors import one_line

P = ParamSpec("P")
T = TypeVar("T")


def ask(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Return what the planner answers; bad input is a 422 problem that names the field.

    A plain ValueError of NumPy or Python is a defect and stays one.
    """
    try:
        return function(*args, **kwargs)
    except ValidationError as error:
        raise unacceptable(error) from None
    except ValueError as error:
        if not _of_planner(error):
            raise
        raise rejected(one_line(error)) from None


def _of_planner(error: ValueError) -> bool:
    return type(error).__module__.startswith("planner.") or _raised_in_planner(error)


def _raised_in_planner(error: ValueError) -> bool:
    """Return whether a `raise` of the planner made the error, rather than a library below it."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    name = trace.tb_frame.f_globals.get("__name__", "") if trace is not None else ""
    return name.startswith("planner.") and ": " in str(error)
