"""What a shell user may give where a scenario is wanted."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import click

from planner.commands.loads import LOADS, BadLoad

FILES = (".json", ".toml")


def inline(field: str, name: str) -> str | dict[str, Any]:
    """Return an id as it is, and the content of a file that is named: a server cannot open it."""
    path = Path(name)
    if field == "model" and path.is_dir() and (path / "config.json").is_file():
        path = path / "config.json"
    if path.suffix.lower() not in FILES or not path.is_file():
        return name
    return _read(field, path)


def question(text: str) -> dict[str, Any] | None:
    """Return the scenario that a file or `field=value,…` describes; None for an id or a name."""
    if "=" in text:
        found = dict(_pair(part) for part in text.split(","))
    elif text.lower().endswith(".json"):
        found = _read("scenario", Path(text))
    else:
        return None
    for field in ("model", "gpu"):
        if isinstance(found.get(field), str):
            found[field] = inline(field, found[field])
    return found


def _pair(part: str) -> tuple[str, Any]:
    name, equals, value = part.partition("=")
    if not equals:
        raise click.UsageError(f"scenario: {part!r}; accepted: field=value, separated by commas")
    if name in {"batch", "context"}:
        return name, [_number(item) for item in value.split("+")]
    if name in LOADS:
        return name, _load(name, value)
    return name.strip().replace("-", "_"), _number(value)


def _load(name: str, text: str) -> Any:
    try:
        return LOADS[name](text)
    except BadLoad as error:
        raise click.UsageError(f"{name}: {error}") from None


def _number(value: str) -> Any:
    for kind in (int, float):
        try:
            return kind(value)
        except ValueError:
            continue
    return value


def _read(field: str, path: Path) -> dict[str, Any]:
    try:
        text = path.read_text("utf-8")
        found = tomllib.loads(text) if path.suffix.lower() == ".toml" else json.loads(text)
    except (OSError, ValueError, RecursionError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise click.UsageError(f"{field}: cannot read {path.name!r}: {reason}") from None
    if not isinstance(found, dict):
        raise click.UsageError(f"{field}: {path.name!r} must hold one object")
    return found
