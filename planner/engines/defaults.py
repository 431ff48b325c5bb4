"""What each release of an engine defaults to, as its published package says.

One file for each release at which something a planner needs changed, written by
`tools/engine_defaults.py`: arguments with type, default and place, and tables of defaults that
depend on the device.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any

from planner.engines.names import FOLDER, read_json
from planner.engines.versions import Version, numbers

Rows = tuple[Mapping[str, Any], ...]
"""Values by device and split: the first row that matches counts (`planner.engines.rows`)."""


@dataclass(frozen=True, slots=True, eq=False)
class Release:
    """The defaults of one release."""

    version: str
    """The release whose package says so, or one later whose package says the same."""
    package: str
    arguments: Mapping[str, Mapping[str, Any]]
    rules: Mapping[str, Mapping[str, Any]]

    def rows(self, argument: str) -> Rows:
        """Return the defaults of an argument by device; none where the engine works one out."""
        if argument in self.rules:
            return tuple(self.rules[argument]["rows"])
        default = self.arguments.get(argument, {}).get("default")
        return () if default is None else ({"value": default},)

    def place(self, argument: str) -> str:
        """Return file and line that state the default of an argument."""
        stated = self.rules.get(argument) or self.arguments[argument]
        line = f":{stated['line']}" if "line" in stated else ""
        return f"{stated['file']}{line} in {self.package}"


def release_of(engine: str, version: Version | None) -> Release | None:
    """Return the defaults that hold at a version of an engine, or None where none were read.

    The newest without a version; of one between two that were read the older, and of one before
    all of them the oldest.
    """
    if not _versions(engine):
        return None
    return _release(engine, version)


def read_range(engine: str) -> tuple[str, str] | None:
    """Return the first and last version whose defaults were read."""
    known = _versions(engine)
    return (known[0], _latest(engine, known[-1])) if known else None


@cache
def _versions(engine: str) -> tuple[str, ...]:
    """Versions that have a file, oldest first."""
    names = (path.stem for path in (FOLDER / "defaults").glob(f"{engine}-*.json"))
    return tuple(sorted((name.removeprefix(f"{engine}-") for name in names), key=numbers))


@lru_cache(maxsize=256)
def _release(engine: str, version: Version | None) -> Release:
    known = _versions(engine)
    if version is None:
        file = known[-1]
    elif version[0] == "date":
        out = [v for v in known if numbers(_file(engine, v)["released"]) <= version[1]]
        file = (out or known[:1])[-1]
    else:
        out = [v for v in known if numbers(v) <= version[1]]
        file = (out or known[:1])[-1]
    content = _file(engine, file)
    return Release(
        version=_named(engine, file, version),
        package=content["package"],
        arguments=content["arguments"],
        rules=content["rules"],
    )


def _named(engine: str, file: str, version: Version | None) -> str:
    """The newest version with the defaults of a file, up to the one asked about."""
    if version is None:
        return _latest(engine, file)
    if version[0] == "date":
        return file
    return [file, *(v for v in _same(engine, file) if numbers(v) <= version[1])][-1]


def _latest(engine: str, file: str) -> str:
    return _same(engine, file)[-1]


def _same(engine: str, file: str) -> list[str]:
    """The versions with the defaults of a file, oldest first."""
    return [file, *_file(engine, file)["same_in"]]


@cache
def _file(engine: str, version: str) -> dict[str, Any]:
    return read_json(f"defaults/{engine}-{version}.json")
