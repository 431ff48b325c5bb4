"""What one version of an engine accepts and defaults to, read from its package."""

from __future__ import annotations

import ast
import hashlib
import json
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from fnmatch import fnmatch
from functools import cache
from pathlib import Path
from typing import Any

from engine_args.package import Package, Unreadable
from engine_args.rules import Reading, read_tables
from engine_args.syntax import Argument, Modules, argument_calls

Arguments = dict[str, Argument]


@dataclass(frozen=True, slots=True)
class Facts:
    """Everything read of one version."""

    engine: str
    version: str
    package: Package
    arguments: Arguments
    rules: dict[str, dict[str, Any]]
    """Table of an argument whose default depends on the device, with its file and line."""
    by_hand: dict[str, dict[str, Any]]
    """Functions that hold rules no table can: file, line and a digest that shows a change."""

    def planner(self) -> dict[str, Any]:
        """Return the facts a planner needs, as the engine data holds them."""
        wanted = table(self.engine)["planner"]
        known = {name: self.arguments[name] for name in wanted if name in self.arguments}
        return {
            "engine": self.engine,
            "version": self.version,
            "released": self.package.built,
            "package": self.package.name,
            "same_in": [],
            "arguments": {name: _fact(one) for name, one in known.items()},
            "rules": self.rules,
        }

    def parser(self) -> dict[str, Any]:
        """Return all arguments, as a compact table: type, default and flags of each."""
        rows = {name: _compact(name, one) for name, one in sorted(self.arguments.items())}
        head = {"engine": self.engine, "version": self.version, "package": self.package.name}
        return {**head, "by_hand": self.by_hand, "arguments": rows}


@cache
def tables() -> dict[str, Any]:
    """Return where to look in each engine's package."""
    content: dict[str, Any] = json.loads(
        Path(__file__).with_name("engines.json").read_text("utf-8")
    )
    return content


def table(engine: str) -> dict[str, Any]:
    """Return where to look in an engine's package; raises Unreadable naming the known engines."""
    if engine not in tables():
        raise Unreadable(f"engine: unknown engine {engine!r}; accepted: {', '.join(tables())}")
    entry: dict[str, Any] = tables()[engine]
    return entry


def read(engine: str, version: str, package: Package) -> Facts:
    """Return what a package says of one version of an engine.

    Raises Unreadable where the package has none of the arguments that are looked for.
    """
    looked = table(engine)
    arguments = READERS[looked["reader"]](package, looked)
    if not arguments:
        raise Unreadable(f"package: {package.name} holds no arguments of {engine}")
    modules = _modules(package)
    return Facts(
        engine=engine,
        version=version,
        package=package,
        arguments=arguments,
        rules=_rules(modules, looked.get("rules")),
        by_hand=_functions(modules, looked.get("by_hand", ())),
    )


def _modules(package: Package) -> Modules:
    return Modules.of({p: text for p, text in package.files.items() if p.endswith(".py")})


def _of_classes(package: Package, looked: dict[str, Any]) -> Arguments:
    """Fields of configuration classes, with the flags that a parser adds for them."""
    modules = _modules(package)
    arguments: Arguments = {}
    for name, prefix in (looked["classes"] | _classes_of(modules, looked)).items():
        for field, argument in modules.fields(name).items():
            if not field.startswith("_"):
                arguments.setdefault(prefix + field, argument)
    for path, tree in modules.trees.items():
        if any(fnmatch(path, pattern) for pattern in looked["flags"]):
            for call, flags in argument_calls(tree):
                name = _destination(call, flags)
                if name in arguments:
                    both = dict.fromkeys((*arguments[name].flags, *flags))
                    arguments[name] = replace(arguments[name], flags=tuple(both))
    return arguments


def _classes_of(modules: Modules, looked: dict[str, Any]) -> dict[str, str]:
    """Return the classes of the files whose every class is a group of arguments."""
    pattern = looked.get("classes_of", "")
    return {name: "" for name, (path, _) in modules.classes.items() if fnmatch(path, pattern)}


def _destination(call: ast.Call, flags: list[str]) -> str:
    """Return the field a flag sets: what its call names, or what its longest flag spells."""
    for keyword in call.keywords:
        value = keyword.value
        if keyword.arg == "dest" and isinstance(value, ast.Constant):
            return str(value.value)
        if keyword.arg == "default" and isinstance(value, ast.Attribute):
            return value.attr
        if keyword.arg is None and isinstance(value, ast.Subscript):
            return str(ast.literal_eval(value.slice))
    longest = next((flag for flag in flags if flag.startswith("--")), flags[0])
    return longest.lstrip("-").replace("-", "_")


def _of_parser(package: Package, looked: dict[str, Any]) -> Arguments:
    """Arguments a function adds to a parser, itself or through the helpers of a class."""
    modules = _modules(package)
    helpers = _methods(modules, looked["helper"])
    arguments: Arguments = {}
    for path, tree in modules.trees.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef) and node.name == looked["function"]:
                arguments.update(_added(node, path, modules))
                for call in ast.walk(node):
                    name = ast.unparse(call.func) if isinstance(call, ast.Call) else ""
                    owner, _, method = name.rpartition(".")
                    if owner == looked["helper"] and method in helpers:
                        where, helper = helpers[method]
                        arguments.update(_added(helper, where, _with_defaults(modules, helper)))
    return arguments


def _methods(modules: Modules, name: str) -> dict[str, tuple[str, ast.FunctionDef]]:
    if name not in modules.classes:
        return {}
    path, node = modules.classes[name]
    return {item.name: (path, item) for item in node.body if isinstance(item, ast.FunctionDef)}


def _with_defaults(modules: Modules, helper: ast.FunctionDef) -> Modules:
    """Return the modules with a function's parameters standing for their defaults."""
    known = helper.args.args[len(helper.args.args) - len(helper.args.defaults) :]
    values = {name.arg: value for name, value in zip(known, helper.args.defaults, strict=True)}
    return replace(modules, constants={**modules.constants, **values})


def _added(node: ast.AST, path: str, modules: Modules) -> Arguments:
    arguments: Arguments = {}
    for call, flags in argument_calls(node):
        keywords = {item.arg: item.value for item in call.keywords if item.arg}
        switch = "action" in keywords and "store_true" in ast.unparse(keywords["action"])
        kind = "bool" if switch else ast.unparse(keywords.get("type", ast.Name("str")))
        choices = modules.value(keywords["choices"]) if "choices" in keywords else None
        if isinstance(choices, list):
            kind = "|".join(str(choice) for choice in choices)
        default = modules.value(keywords["default"]) if "default" in keywords else None
        name = _destination(call, flags)
        arguments[name] = Argument(
            kind, False if switch else default, path, call.lineno, tuple(flags)
        )
    return arguments


_ROW = re.compile(r"^\| `(?P<flags>-[^`]+)` \| (?P<text>.*) \|$")
_DEFAULT = re.compile(r"default: (?P<value>[^,;)<]+)|- (?P<chosen>\w+) \(default\)")


def _of_readme(package: Package, looked: dict[str, Any]) -> Arguments:
    """Rows of a table of options: flags with a placeholder, a text that states the default."""
    del looked
    arguments: Arguments = {}
    for path, text in package.files.items():
        for number, line in enumerate(text.splitlines(), 1):
            if row := _ROW.match(line.replace("\\|", "/")):
                parts = [part.split(maxsplit=1) for part in row["flags"].split(", ")]
                flags = [part[0] for part in parts if part[0].startswith("-")]
                positive = [flag for flag in flags if not flag.startswith("--no-")]
                name = max(positive or flags, key=len).lstrip("-").replace("-", "_")
                placeholder = next((part[1] for part in parts if len(part) > 1), "bool")
                stated = _DEFAULT.search(row["text"])
                default = _plain(stated["value"] or stated["chosen"]) if stated else None
                arguments[name] = Argument(placeholder, default, path, number, tuple(flags))
    return arguments


def _plain(text: str) -> Any:
    switches = {"enabled": True, "disabled": False}
    try:
        return json.loads(text)
    except ValueError:
        return switches.get(text, text.strip(" '\""))


READERS: dict[str, Callable[[Package, dict[str, Any]], Arguments]] = {
    "classes": _of_classes,
    "parser": _of_parser,
    "readme": _of_readme,
}
"""How an engine states its arguments."""


def _rules(modules: Modules, looked: dict[str, Any] | None) -> dict[str, dict[str, Any]]:
    if looked is None:
        return {}
    read = read_tables(
        modules,
        Reading(
            memory=looked["memory"],
            targets=looked["targets"],
            parallel=tuple(looked["parallel"]),
            device=tuple(looked["device"]),
            key=looked.get("key", ""),
        ),
    )
    return {
        name: {"file": read.places[name][0], "line": read.places[name][1], "rows": rows}
        for name, rows in read.rows.items()
    }


def _functions(modules: Modules, names: Iterable[str]) -> dict[str, dict[str, Any]]:
    functions: dict[str, dict[str, Any]] = {}
    for path, tree in modules.trees.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef) and node.name in names:
                digest = hashlib.sha256(_without_text(node).encode()).hexdigest()[:12]
                functions[node.name] = {"file": path, "line": node.lineno, "digest": digest}
    return functions


def _without_text(node: ast.FunctionDef) -> str:
    """Return a function without its docstring, comments and places: what it does."""
    body = node.body[1:] if ast.get_docstring(node) else node.body
    return "".join(ast.dump(item) for item in body)


def _fact(argument: Argument) -> dict[str, Any]:
    head = {"type": argument.type, "default": argument.default}
    return {**head, "file": argument.file, "line": argument.line}


def _compact(name: str, argument: Argument) -> list[Any]:
    plain = f"--{name.replace('_', '-')}"
    flags = list(argument.flags) if argument.flags and argument.flags != (plain,) else []
    return [argument.type, argument.default, *([flags] if flags else [])]
