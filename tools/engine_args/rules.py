"""Defaults that depend on a device's memory: chains of `if memory < …:` read as tables.

Only what the syntax says outright is read: comparisons of the memory with a number, of the tensor
parallel size with a number, and names a device must not have. A branch under any other condition
is left out, and a value that is no literal too.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from engine_args.syntax import Modules

UNITS = {"bytes": 2.0**30, "MiB": 2.0**10}
"""One GiB in the unit a variable of memory has."""


@dataclass(frozen=True, slots=True)
class Reading:
    """Which names of a package hold what a rule depends on and what it sets."""

    memory: dict[str, str]
    """Unit of a device's memory by the variable that holds it."""
    targets: dict[str, str]
    """Argument by the text of what is assigned, or by the keyword of a call that declares it."""
    parallel: tuple[str, ...] = ()
    """Texts that stand for the tensor parallel size."""
    device: tuple[str, ...] = ()
    """Variables that hold a device's name."""
    key: str = ""
    """Which entry of an assigned dictionary holds for a server."""


@dataclass(frozen=True, slots=True)
class Where:
    """The devices and splits a value is the default for."""

    from_gib: float | None = None
    below_gib: float | None = None
    tp_from: int | None = None
    tp_below: int | None = None
    excluded: tuple[str, ...] = ()
    only: tuple[str, ...] = ()
    depends: bool = False
    """Whether anything but the value itself was tested."""

    def row(self, value: Any) -> dict[str, Any]:
        """Return the row of a table, bounds that are open left out."""
        bounds = {
            "from_gib": self.from_gib,
            "below_gib": self.below_gib,
            "tp_from": self.tp_from,
            "tp_below": self.tp_below,
            "except": list(self.excluded) or None,
            "only": list(self.only) or None,
        }
        return {**{name: bound for name, bound in bounds.items() if bound}, "value": value}


@dataclass(slots=True)
class Tables:
    """Rows of each argument, the first that matches counts."""

    rows: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    places: dict[str, tuple[str, int]] = field(default_factory=dict)


def read_tables(modules: Modules, reading: Reading) -> Tables:
    """Return the tables of all functions that compare a device's memory."""
    tables = Tables()
    for path, tree in modules.trees.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef) and _compares(node, reading):
                for where, target, value, line in _assignments(node.body, Where(), reading):
                    literal = modules.value(value)
                    if isinstance(literal, int | float) and where.depends:
                        tables.rows.setdefault(target, []).append(where.row(literal))
                        tables.places.setdefault(target, (path, line))
    return tables


def _compares(function: ast.FunctionDef, reading: Reading) -> bool:
    return any(
        isinstance(node, ast.Compare) and ast.unparse(node.left) in reading.memory
        for node in ast.walk(function)
    )


Assignments = Iterator[tuple[Where, str, ast.expr, int]]


def _assignments(body: list[ast.stmt], where: Where, reading: Reading) -> Assignments:
    for statement in body:
        match statement:
            case ast.If():
                yield from _branches(statement, where, reading)
            case ast.Assign(targets=[target], value=value):
                yield from _set(ast.unparse(target), value, where, reading)
            case ast.Expr(value=ast.Call(keywords=keywords)):
                for keyword in keywords:
                    if keyword.arg in reading.targets:
                        argument = reading.targets[keyword.arg]
                        yield where, argument, keyword.value, statement.lineno


def _set(target: str, value: ast.expr, where: Where, reading: Reading) -> Assignments:
    if target not in reading.targets:
        return
    if isinstance(value, ast.Dict):
        for key, item in zip(value.keys, value.values, strict=True):
            if key is not None and ast.unparse(key).endswith(reading.key):
                yield where, reading.targets[target], item, item.lineno
    else:
        yield where, reading.targets[target], value, value.lineno


def _branches(statement: ast.If, where: Where, reading: Reading) -> Assignments:
    """Both sides of a test; a side whose condition cannot be told is left out."""
    tests = _conjuncts(statement.test)
    inside: Where | None = where
    outside: Where | None = where
    for test in tests:
        if inside is not None:
            inside, outside = _tested(test, inside, reading)
    if len(tests) > 1:
        outside = replace(where, depends=True) if inside and inside.depends else where
    if inside is not None:
        yield from _assignments(statement.body, inside, reading)
    if outside is not None:
        yield from _assignments(statement.orelse, outside, reading)


def _conjuncts(test: ast.expr) -> list[ast.expr]:
    match test:
        case ast.BoolOp(op=ast.And(), values=values):
            return values
    return [test]


def _tested(test: ast.expr, where: Where, reading: Reading) -> tuple[Where | None, Where | None]:
    """Return what holds where a test does and where it does not; None where that is not known."""
    match test:
        case ast.Compare(left=left, ops=[ast.Is()], comparators=[ast.Constant(value=None)]):
            known = ast.unparse(left) in reading.memory
            return (None, where) if known else (where, None)
        case ast.Compare(ops=[ast.IsNot()], comparators=[ast.Constant(value=None)]):
            return where, None
        case ast.Compare(left=ast.Constant(value=str() as word), ops=[op], comparators=[name]):
            if ast.unparse(name) in reading.device:
                without = replace(where, excluded=(*where.excluded, word), depends=True)
                with_it = replace(where, only=(*where.only, word), depends=True)
                return (without, with_it) if isinstance(op, ast.NotIn) else (with_it, without)
        case ast.Compare(left=left, ops=[op], comparators=[bound]):
            return _bounded(ast.unparse(left), op, bound, where, reading)
        case ast.UnaryOp(op=ast.Not(), operand=ast.Name(id=name)) if name.startswith("is_"):
            word = name.removeprefix("is_")
            return replace(where, excluded=(*where.excluded, word), depends=True), where
    return None, where


def _bounded(
    name: str, op: ast.cmpop, bound: ast.expr, where: Where, reading: Reading
) -> tuple[Where | None, Where | None]:
    number = Modules(constants={"GiB_bytes": ast.Constant(2**30)}).value(bound)
    if not isinstance(number, int | float):
        return None, where
    if name in reading.memory:
        gib = round(number / UNITS[reading.memory[name]], 3)
        low = replace(where, below_gib=_least(where.below_gib, gib), depends=True)
        high = replace(where, from_gib=max(where.from_gib or 0.0, gib), depends=True)
    elif name in reading.parallel:
        size = int(number)
        low = replace(where, tp_below=size, depends=True)
        high = replace(where, tp_from=size, depends=True)
    else:
        return None, where
    if isinstance(op, ast.Lt | ast.LtE):
        return low, high
    return (high, low) if isinstance(op, ast.Gt | ast.GtE) else (None, where)


def _least(one: float | None, other: float) -> float:
    return other if one is None else min(one, other)
