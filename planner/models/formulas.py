"""Formulas that data files state: arithmetic over the fields of a config, and nothing else."""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from planner.models.reader import ConfigError


class MissingField(ConfigError):
    """A formula names a field that the config lacks."""


class NoCount(ConfigError):
    """A formula has no value, or none that counts anything."""


Scope = Mapping[str, Any]
"""What the names of a formula mean: numbers, lists of them, or scopes (`text.vocab_size`)."""

LARGEST = 10**15
"""A count above this is refused as absurd [-]."""

_OPERATORS: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}
_COMPARISONS: dict[type[ast.cmpop], Callable[[Any, Any], bool]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}


def linear(inputs: float, outputs: float, bias: float = 1) -> float:
    """Parameters of a matrix and, by default, its bias [-]."""
    return inputs * outputs + (outputs if bias else 0)


def block(width: float, inner: float, bias: float = 1) -> float:
    """Parameters of a pre-norm encoder layer: q, k, v, output, two MLP matrices, two LayerNorms."""
    attention = 4 * linear(width, width, bias)
    return attention + linear(width, inner, bias) + linear(inner, width, bias) + 4 * width


def area(side: Any) -> float:
    """Product of two sides, or the square of one [-]."""
    return float(math.prod(side)) if isinstance(side, list) else side * side


def grid(side: Any, patch: Any) -> float:
    """Patches that fit a picture of one side or two [-]."""
    sides = side if isinstance(side, list) else [side, side]
    patches = patch if isinstance(patch, list) else [patch, patch]
    return float(math.prod(s // p for s, p in zip(sides, patches, strict=True)))


def most(value: Any) -> Any:
    """Return the largest of a list, or the one value."""
    return max(value) if isinstance(value, list) else value


def many(value: Any) -> int:
    """Entries of a list; 1 of a single value [-]."""
    return len(value) if isinstance(value, list) else 1


def runs(kinds: Any, kind: str) -> int:
    """Entries of a list that equal `kind` [-]."""
    return sum(item == kind for item in kinds) if isinstance(kinds, list) else 0


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "linear": linear,
    "block": block,
    "area": area,
    "grid": grid,
    "most": most,
    "many": many,
    "runs": runs,
    "max": max,
    "min": min,
    "sum": sum,
    "int": int,
    "ceil": math.ceil,
}


def evaluate(formula: str, scope: Scope) -> int:
    """Return the value of `formula`, a whole number of 0 or more.

    Raises MissingField, or NoCount where fields are of no use in arithmetic.
    """
    try:
        value = _value(_parsed(formula), scope)
    except ConfigError:
        raise
    except (TypeError, ValueError, ZeroDivisionError, OverflowError, IndexError) as error:
        raise NoCount(str(error)) from None
    if not isinstance(value, (int, float)) or not 0 <= value <= LARGEST:
        raise NoCount("its count is out of range")
    return round(value)


def names(formula: str) -> list[str]:
    """Return the names a formula holds, `owner.field` with its owner, in order."""
    tree = ast.walk(_parsed(formula))
    return [ast.unparse(node) for node in tree if isinstance(node, (ast.Name, ast.Attribute))]


@cache
def _parsed(formula: str) -> ast.expr:
    return ast.parse(formula, mode="eval").body


def _value(node: ast.expr, scope: Scope) -> Any:
    match node:
        case ast.Constant(value=value):
            return value
        case ast.Name() | ast.Attribute() | ast.Subscript():
            return _named(node, scope)
        case ast.BoolOp() | ast.UnaryOp() | ast.Compare() | ast.IfExp():
            return _chosen(node, scope)
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATORS:
            return _OPERATORS[type(op)](_number(left, scope), _number(right, scope))
        case ast.Call(func=ast.Name(id=name), args=args, keywords=[]) if name in FUNCTIONS:
            return FUNCTIONS[name](*(_value(arg, scope) for arg in args))
    raise ValueError(f"{ast.unparse(node)} is not arithmetic")


def _number(node: ast.expr, scope: Scope) -> float:
    value = _value(node, scope)
    if not isinstance(value, (int, float)):
        raise TypeError(f"{ast.unparse(node)} is no number")
    return value


def _named(node: ast.Name | ast.Attribute | ast.Subscript, scope: Scope) -> Any:
    match node:
        case ast.Name(id=name):
            return _field(scope, name)
        case ast.Attribute(value=owner, attr=name):
            return _field(_value(owner, scope), name)
    entries, place = _value(node.value, scope), _value(node.slice, scope)
    if not isinstance(entries, list):
        raise TypeError(f"{ast.unparse(node.value)} is no list")
    return entries[place]


def _chosen(node: ast.expr, scope: Scope) -> Any:
    match node:
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_value(operand, scope)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return not _value(operand, scope)
        case ast.BoolOp(op=ast.Or(), values=values):
            return _first(values, scope)
        case ast.BoolOp(op=ast.And(), values=values):
            return all(_value(value, scope) for value in values)
        case ast.Compare(left=left, ops=[op], comparators=[right]) if type(op) in _COMPARISONS:
            return _COMPARISONS[type(op)](_value(left, scope), _value(right, scope))
        case ast.IfExp(test=test, body=body, orelse=other):
            return _value(body if _value(test, scope) else other, scope)
    raise ValueError(f"{ast.unparse(node)} is not arithmetic")


def _first(values: list[ast.expr], scope: Scope) -> Any:
    """Return the first value that is there and true: `a or b` reads b where there is no a."""
    for value in values[:-1]:
        try:
            if value_read := _value(value, scope):
                return value_read
        except ConfigError:
            continue
    return _value(values[-1], scope)


def _field(scope: Any, name: str) -> Any:
    try:
        return scope[name]
    except KeyError:
        raise MissingField(f"{name}: missing") from None
