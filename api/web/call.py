"""Calling the planner: its refusals become problems, and only those."""

from __future__ import annotations

from collections.abc import Callable
from typing import ParamSpec, TypeVar

from pydantic import ValidationError

from api.web.body import unacceptable
from api.web.problem import rejected
from planner.errors import InvalidInput, one_line

P = ParamSpec("P")
T = TypeVar("T")


def call_planner(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Return what the planner answers; bad input is a 422 problem that names the field.

    A plain ValueError of NumPy or Python is a defect and stays one.
    """
    try:
        return function(*args, **kwargs)
    except ValidationError as error:
        raise unacceptable(error) from None
    except InvalidInput as error:
        raise rejected(one_line(error)) from None
