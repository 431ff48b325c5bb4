"""Fields of configuration classes by syntax tree: names, types and defaults, nothing executed."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

LONGEST = 60
"""Characters of a default that is computed which are kept."""
WRAPPERS = {"Annotated", "A", "SkipValidation", "ClassVar", "Required"}
"""Generic types of which only the first parameter says what a value is."""
REQUIRED: dict[str, Any] = {"required": True}


@dataclass(frozen=True, slots=True)
class Argument:
    """One argument of an engine."""

    type: str
    default: Any
    """A JSON value; `{"computed": text}` where it is none, `{"required": true}` without one."""
    file: str
    line: int
    flags: tuple[str, ...] = ()
    """How a command line spells it, where not as its name with dashes."""


@dataclass(slots=True)
class Modules:
    """The parsed modules of a package: their classes and constants by name."""

    classes: dict[str, tuple[str, ast.ClassDef]] = field(default_factory=dict)
    constants: dict[str, ast.expr] = field(default_factory=dict)
    trees: dict[str, ast.Module] = field(default_factory=dict)

    @classmethod
    def of(cls, files: Mapping[str, str]) -> Modules:
        """Return the modules of these Python files."""
        modules = cls()
        for path, text in sorted(files.items()):
            tree = ast.parse(text)
            modules.trees[path] = tree
            for node in tree.body:
                if isinstance(node, ast.ClassDef):
                    modules.classes.setdefault(node.name, (path, node))
                for name, value in _assigned(node):
                    modules.constants.setdefault(name, value)
        return modules

    def fields(self, name: str) -> dict[str, Argument]:
        """Return the fields of a class and of its bases by name; none for an unknown class."""
        if name not in self.classes:
            return {}
        path, node = self.classes[name]
        fields: dict[str, Argument] = {}
        for base in node.bases:
            if isinstance(base, ast.Name):
                fields.update(self.fields(base.id))
        for item in node.body:
            if isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name):
                file, line = self._place(item.value) or (path, item.lineno)
                fallback = _keyword(item.annotation, "fallback")
                stated = fallback if fallback is not None else item.value
                fields[item.target.id] = Argument(
                    type=self.type_text(item.annotation),
                    default=self.value(stated) if stated else REQUIRED,
                    file=file,
                    line=line,
                    flags=_declared_flags(item.annotation),
                )
        return fields

    def type_text(self, node: ast.expr, depth: int = 0) -> str:
        """Return a type as alternatives joined by bars, aliases and literals written out."""
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
            return _joined([self.type_text(node.left, depth), self.type_text(node.right, depth)])
        if isinstance(node, ast.Subscript):
            return self._generic(node, depth)
        alias = self.constants.get(node.id) if isinstance(node, ast.Name) else None
        if alias is not None and depth < 4 and isinstance(alias, ast.Subscript | ast.BinOp):
            return self.type_text(alias, depth + 1)
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            return self.type_text(ast.parse(node.value, mode="eval").body, depth + 1)
        return ast.unparse(node)

    def _generic(self, node: ast.Subscript, depth: int) -> str:
        name = ast.unparse(node.value).rpartition(".")[2]
        items = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        if name in WRAPPERS:
            return self.type_text(items[0], depth)
        if name == "Literal":
            return _joined([self._literal(item, depth) for item in items])
        if name in ("Optional", "Union"):
            texts = [self.type_text(item, depth) for item in items]
            return _joined([*texts, "None"] if name == "Optional" else texts)
        return ast.unparse(node)

    def _literal(self, node: ast.expr, depth: int) -> str:
        value = self.value(node)
        return self.type_text(node, depth + 1) if isinstance(value, dict) else str(value)

    def _place(self, node: ast.expr | None) -> tuple[str, int] | None:
        """Return where a default is stated that a field takes from one of another class."""
        match node:
            case ast.Attribute(value=ast.Name(id=owner), attr=name) if owner in self.classes:
                pass
            case ast.Call(func=ast.Name(id="get_field"), args=[ast.Name(id=owner), member]):
                name = str(self.value(member))
            case _:
                return None
        stated = self.fields(owner).get(name) if owner in self.classes else None
        return (stated.file, stated.line) if stated else None

    def value(self, node: ast.expr, depth: int = 0) -> Any:
        """Return a default as a JSON value, or what it is computed from."""
        if depth > 8:
            return _computed(node)
        match node:
            case ast.Constant(value=bool() | int() | float() | str() | None):
                return node.value
            case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as number)):
                return -number
            case ast.BinOp():
                return self._arithmetic(node, depth)
            case ast.List() | ast.Tuple() | ast.Set():
                return [self.value(item, depth + 1) for item in node.elts]
            case ast.Dict(keys=keys, values=values):
                pairs = [(k, v) for k, v in zip(keys, values, strict=True) if k]
                return {str(self.value(k, depth)): self.value(v, depth + 1) for k, v in pairs}
            case ast.Name() if node.id in self.constants:
                return self.value(self.constants[node.id], depth + 1)
            case ast.Attribute(value=ast.Name(id=owner)) if owner in self.classes:
                return self._member(owner, node.attr, node, depth)
            case ast.Call():
                return self._called(node, depth)
        return _computed(node)

    def _arithmetic(self, node: ast.BinOp, depth: int) -> Any:
        left, right = self.value(node.left, depth + 1), self.value(node.right, depth + 1)
        if not all(isinstance(side, int | float) for side in (left, right)):
            return _computed(node)
        match node.op:
            case ast.Add():
                return left + right
            case ast.Sub():
                return left - right
            case ast.Mult():
                return left * right
            case ast.Pow():
                return left**right
            case ast.LShift():
                return left << right
        return _computed(node)

    def _member(self, owner: str, name: str, node: ast.expr, depth: int) -> Any:
        """Return a field's default, or the value of a member of an enumeration."""
        for item in self.classes[owner][1].body:
            for target, value in _assigned(item):
                if target == name:
                    return self.value(value, depth + 1)
        fields = self.fields(owner)
        return fields[name].default if name in fields else _computed(node)

    def _called(self, node: ast.Call, depth: int) -> Any:
        name = ast.unparse(node.func).rpartition(".")[2]
        keywords = {item.arg: item.value for item in node.keywords if item.arg}
        if name == "get_field" and isinstance(node.args[0], ast.Name):
            owner, member = node.args[0].id, self.value(node.args[1])
            return self._member(owner, str(member), node, depth) if owner in self.classes else None
        if name.lower() not in ("field", "privateattr"):
            return _computed(node)
        if "default" in keywords:
            return self.value(keywords["default"], depth + 1)
        if "default_factory" in keywords:
            return self._made(keywords["default_factory"], depth)
        return self.value(node.args[0], depth + 1) if node.args else REQUIRED

    def _made(self, factory: ast.expr, depth: int) -> Any:
        if isinstance(factory, ast.Lambda):
            return self.value(factory.body, depth + 1)
        if isinstance(factory, ast.Name) and factory.id in ("list", "dict", "set", "tuple"):
            return {} if factory.id == "dict" else []
        return {"computed": f"{ast.unparse(factory)[:LONGEST]}()"}


def argument_calls(tree: ast.AST) -> Iterator[tuple[ast.Call, list[str]]]:
    """Yield the `add_argument` calls below a node with the flags each names."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("add_argument"):
            names = [a.value for a in node.args if isinstance(a, ast.Constant)]
            flags = [str(name) for name in names if str(name).startswith("-")]
            if flags:
                yield node, flags


def _assigned(node: ast.stmt) -> Iterator[tuple[str, ast.expr]]:
    match node:
        case ast.Assign(targets=[ast.Name(id=name)], value=value):
            yield name, value
        case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
            yield name, value


def _keyword(annotation: ast.expr, name: str) -> ast.expr | None:
    """Return what `Annotated[T, Arg(name=…)]` gives a keyword."""
    values = (
        node.value
        for node in ast.walk(annotation)
        if isinstance(node, ast.keyword) and node.arg == name
    )
    return next(values, None)


def _declared_flags(annotation: ast.expr) -> tuple[str, ...]:
    """Return the flags that `Annotated[T, Arg(cli_name=…, aliases=[…])]` names."""
    stated = [_keyword(annotation, name) for name in ("cli_name", "aliases")]
    nodes = (node for value in stated if value is not None for node in ast.walk(value))
    values = (node.value for node in nodes if isinstance(node, ast.Constant))
    return tuple(str(value) for value in values if str(value).startswith("-"))


def _joined(texts: list[str]) -> str:
    alternatives = [item for text in texts for item in _split(text)]
    return "|".join(dict.fromkeys(alternatives))


def _split(text: str) -> list[str]:
    return text.split("|") if "[" not in text else [text]


def _computed(node: ast.expr) -> dict[str, str]:
    return {"computed": ast.unparse(node)[:LONGEST]}
