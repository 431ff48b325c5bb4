"""What a shell user may give where a scenario is wanted."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from planner.commands.plan import command as plan_command

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
        scenario = dict(_pair(part) for part in text.split(","))
    elif text.lower().endswith(".json"):
        scenario = _read("scenario", Path(text))
    else:
        return None
    for field in ("model", "gpu"):
        if isinstance(scenario.get(field), str):
            scenario[field] = inline(field, scenario[field])
    return scenario


def _pair(part: str) -> tuple[str, Any]:
    """Return a field and its value, read as `planner plan` reads the option of that name.

    Values of a list are joined by +, as a comma ends the field.
    """
    name, equals, value = part.partition("=")
    if not equals:
        raise click.UsageError(f"scenario: {part!r}; accepted: field=value, separated by commas")
    name = name.strip().replace("-", "_")
    option = next((param for param in plan_command.params if param.name == name), None)
    if option is None:
        return name, value  # the scenario refuses it, and names what is wrong
    listed = value.replace("+", ",") if name in LISTS else value
    return name, option.type.convert(listed, option, None)


LISTS = ("batch", "context")


def _read(field: str, path: Path) -> dict[str, Any]:
    try:
        text = path.read_text("utf-8")
        document = _parse(path.suffix.lower(), text)
    except (OSError, ValueError, RecursionError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise click.UsageError(f"{field}: cannot read {path.name!r}: {reason}") from None
    if not isinstance(document, dict):
        raise click.UsageError(f"{field}: {path.name!r} must hold one object")
    return document


def _parse(suffix: str, text: str) -> Any:
    if suffix == ".toml":
        import tomllib

        return tomllib.loads(text)
    return json.loads(text)
