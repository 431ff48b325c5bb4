"""The schemas of the document as generators of clients take them.

Every schema has a title of its own, properties have none, maps say so with `additionalProperties`,
and every property is described, quantities with their unit.
"""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Iterator
from functools import cache, lru_cache
from itertools import pairwise
from typing import Any

from pydantic import BaseModel

Schema = dict[str, Any]

UNITS = (
    ("usd_per_gpu_hour", "US dollar/h"),
    ("usd_per_million_tokens", "US dollar/10^6 token"),
    ("tokens_per_s_per_gpu", "token/s"),
    ("tokens_per_s_per_user", "token/s"),
    ("tokens_per_s", "token/s"),
    ("requests_per_s", "request/s"),
    ("flops_per_s", "FLOP/s"),
    ("bytes_per_s", "byte/s"),
    ("bytes_per_token", "byte/token"),
    ("bytes_per_sequence", "byte/sequence"),
    ("bytes_per_gpu", "byte"),
    ("bytes", "byte"),
    ("flops", "FLOP"),
    ("intensity", "FLOP/byte"),
    ("ridge_point", "FLOP/byte"),
    ("tokens", "token"),
    ("context", "token"),
    ("isl", "token"),
    ("osl", "token"),
    ("batch", "sequence"),
    ("ms", "ms"),
    ("s", "s"),
    ("w", "W"),
)
"""Unit of a quantity by the end of its name; the first that fits counts."""


def prepared(schemas: Schema) -> Schema:
    """Return the schemas of a document, completed."""
    texts = _texts()
    for key, schema in schemas.items():
        name = key.partition("-")[0]
        schema["title"] = key.replace("-", "")
        for field, property_ in schema.get("properties", {}).items():
            given = property_.get("description") or texts.get(name, {}).get(field)
            property_["description"] = described(field, given)
        for inner in _inside(schema):
            _plain(inner)
    return schemas


def described(field: str, text: str | None) -> str:
    """Return a description of a field: the one it has, or its name in words, with its unit."""
    words = text or field.replace("_", " ").strip()
    unit = _unit(field)
    return words if unit is None or "[" in words else f"{words} [{unit}]"


def _unit(field: str) -> str | None:
    return next((unit for end, unit in UNITS if field == end or field.endswith(f"_{end}")), None)


def _inside(value: Any) -> Iterator[Schema]:
    """Every schema inside one, itself included."""
    if isinstance(value, dict):
        yield value
        for item in value.values():
            yield from _inside(item)
    elif isinstance(value, list):
        for item in value:
            yield from _inside(item)


def _plain(schema: Schema) -> None:
    """Drop the titles of properties, and say of a map what its values are."""
    properties = schema.get("properties")
    if isinstance(properties, dict):
        for property_ in properties.values():
            if isinstance(property_, dict) and isinstance(property_.get("title"), str):
                del property_["title"]
    if isinstance(schema.get("const"), int):  # generators of clients know constant texts only
        schema["enum"] = [schema.pop("const")]
    patterns = schema.get("patternProperties")
    if isinstance(patterns, dict) and len(patterns) == 1:
        ((pattern, values),) = patterns.items()
        del schema["patternProperties"]
        schema["additionalProperties"] = values
        schema["propertyNames"] = {"pattern": pattern}


@lru_cache(maxsize=1)
def _texts() -> dict[str, dict[str, str]]:
    """The texts that stand below the fields of models, by class and field."""
    return {model.__name__: _fields_of(model) for model in _models(BaseModel)}


def _models(base: type[BaseModel]) -> Iterator[type[BaseModel]]:
    for model in base.__subclasses__():
        if model.__module__.partition(".")[0] in {"api", "planner"}:
            yield model
        yield from _models(model)


def _fields_of(model: type[BaseModel]) -> dict[str, str]:
    texts: dict[str, str] = {}
    for each in reversed(model.__mro__):
        if each.__module__.partition(".")[0] in {"api", "planner"}:
            texts |= _source_texts(each)
    return texts


def _source_texts(model: type) -> dict[str, str]:
    return _module_texts(model.__module__).get(model.__name__, {})


@cache
def _module_texts(module: str) -> dict[str, dict[str, str]]:
    """The texts below the fields of the classes of a module; none where its source is not there."""
    try:
        tree = ast.parse(inspect.getsource(sys.modules[module]))
    except OSError:
        return {}
    return {one.name: dict(_texts_of(one)) for one in tree.body if isinstance(one, ast.ClassDef)}


def _texts_of(definition: ast.ClassDef) -> Iterator[tuple[str, str]]:
    for field, below in pairwise(definition.body):
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name):
            value = below.value if isinstance(below, ast.Expr) else None
            if isinstance(value, ast.Constant) and isinstance(value.value, str):
                yield field.target.id, " ".join(value.value.split()).removesuffix(".")
