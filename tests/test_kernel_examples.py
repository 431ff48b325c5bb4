"""The worked value in every formula's docstring is what the formula returns."""

from __future__ import annotations

import doctest
import inspect

import pytest

from planner import kernels

FORMULAS = [
    function
    for name, function in vars(kernels).items()
    if inspect.isfunction(function) and function.__module__ == kernels.__name__
]


@pytest.mark.parametrize("function", FORMULAS, ids=lambda function: function.__name__)
def test_worked_value(function: object) -> None:
    (example,) = doctest.DocTestFinder(recurse=False).find(
        function, getattr(function, "__name__", ""), kernels
    )
    assert example.examples, "a formula shows one worked value"
    assert doctest.DocTestRunner(verbose=False).run(example).failed == 0


@pytest.mark.parametrize("function", FORMULAS, ids=lambda function: function.__name__)
def test_units_of_every_parameter(function: object) -> None:
    text = inspect.getdoc(function) or ""
    assert callable(function)
    for name in inspect.signature(function).parameters:
        line = next(line for line in text.splitlines() if line.strip().startswith(f"{name}:"))
        assert "[" in line or name == "fused", line
