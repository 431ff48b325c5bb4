"""The committed facts: one file for each version at which a fact of a planner changed."""

from __future__ import annotations

import datetime
import json
from pathlib import Path
from typing import Any

from planner.engines.versions import numbers

DATA = Path(__file__).resolve().parents[2] / "planner" / "engines" / "data"


def write_facts(facts: dict[str, Any], folder: Path) -> Path:
    """Write what a planner needs of a version and return the file.

    A version that states the same as the one before it is named in that one's file.
    """
    before = [one for one in read_all(facts["engine"], folder) if _older(one, facts)]
    if before and stated(before[-1]) == stated(facts):
        same = {*before[-1]["same_in"], facts["version"]} - {before[-1]["version"]}
        facts = {**before[-1], "same_in": sorted(same, key=numbers)}
    return _write(folder / f"{facts['engine']}-{facts['version']}.json", facts)


def write_day(folder: Path) -> Path:
    """Note that the facts changed today: it is the edition of the engine data."""
    today = datetime.datetime.now(datetime.UTC).date()
    return _write(folder / "written.json", {"day": today.isoformat()})


def write_parser(parser: dict[str, Any], folder: Path) -> Path:
    """Write all arguments of a version, one a line, and return the file."""
    return _write(folder / f"{parser['engine']}-{parser['version']}.json", parser)


def read_all(engine: str, folder: Path) -> list[dict[str, Any]]:
    """Return the committed files of an engine, oldest version first."""
    files = [json.loads(path.read_text("utf-8")) for path in folder.glob(f"{engine}-*.json")]
    own = [one for one in files if one["engine"] == engine]
    return sorted(own, key=lambda one: numbers(one["version"]))


def stated(facts: dict[str, Any]) -> dict[str, Any]:
    """Return what a version says, without where it says so."""
    return {
        "arguments": {
            name: (one["type"], one["default"]) for name, one in facts["arguments"].items()
        },
        "rules": {name: one["rows"] for name, one in facts["rules"].items()},
    }


def _older(one: dict[str, Any], other: dict[str, Any]) -> bool:
    return numbers(one["version"]) <= numbers(other["version"])


def _write(path: Path, content: dict[str, Any]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    parts = (f"{json.dumps(key)}: {_lines(value)}" for key, value in content.items())
    path.write_text("{\n" + ",\n".join(parts) + "\n}\n", "utf-8")
    return path


def _lines(value: Any) -> str:
    """Return JSON text with one entry of a table a line."""
    if not isinstance(value, dict) or not value:
        return json.dumps(value, ensure_ascii=False)
    rows = (f"  {json.dumps(k)}: {json.dumps(v, ensure_ascii=False)}" for k, v in value.items())
    return "{\n" + ",\n".join(rows) + "\n}"
