"""Take a serving engine into the table of `planner/engines/data`; nothing else is read.

    python tools/engines.py add FILE.json

FILE.json has `id` and `name`, `sources` (text by key) and `figures`: by name, each an object of
`value` (or `rows`, where it differs between devices), `source` (one of the keys, or one the table
has) and `confidence` (documented, source_code, fitted or assumed). Names are the fields of `Engine`
in planner/engines/profiles.py; dotted ones belong to its parts (`overheads.process_bytes`).
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parents[1] / "planner" / "engines" / "data"
CONFIDENCES = ("documented", "source_code", "fitted", "assumed")
END = "\n}\n}\n"
"""How the file ends: the last engine, the engines, the file."""


def newest() -> Path:
    """Return the table of the newest edition."""
    return max(FOLDER.glob("engines-*.json"))


def faults(engine: dict[str, Any], table: dict[str, Any]) -> list[str]:
    """Return what keeps an engine from being taken in, one line each."""
    problems = [f"{name}: missing" for name in ("id", "name", "figures") if not engine.get(name)]
    if engine.get("id") in table["engines"]:
        problems.append(f"id: {engine['id']!r} is in the table")
    sources = table["sources"] | engine.get("sources", {})
    for name, figure in engine.get("figures", {}).items():
        if not {"value", "rows"} & set(figure):
            problems.append(f"{name}: neither value nor rows")
        if figure.get("source") not in sources:
            problems.append(f"{name}: source {figure.get('source')!r} has no text")
        if figure.get("confidence") not in CONFIDENCES:
            problems.append(f"{name}: confidence is not one of {', '.join(CONFIDENCES)}")
    return problems


def added(text: str, engine: dict[str, Any]) -> str:
    """Return the text of the table with an engine at its end, laid out as the others are."""
    sources = [f"  {_dump(key)}: {_dump(value)}," for key, value in engine["sources"].items()]
    figures = [f"    {_dump(name)}: {_dump(f)}" for name, f in engine["figures"].items()]
    entry = f'{_dump(engine["id"])}: {{\n  "name": {_dump(engine["name"])},\n  "figures": {{\n'
    entry += ",\n".join(figures) + "\n  }\n}"
    head, start, rest = text.partition('"sources": {\n')
    if not (start and rest.endswith(END)):
        raise SystemExit("the table is not laid out as expected")
    body = rest.removesuffix(END)
    return f"{head}{start}" + "".join(f"{line}\n" for line in sources) + f"{body},\n{entry}{END}"


def _dump(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def main(arguments: list[str]) -> None:
    match arguments:
        case ["add", file]:
            engine = json.loads(Path(file).read_text(encoding="utf-8"))
            path = newest()
            text = path.read_text(encoding="utf-8")
            if problems := faults(engine, json.loads(text)):
                raise SystemExit("\n".join(problems))
            path.write_text(added(text, {"sources": {}, **engine}), encoding="utf-8")
        case _:
            raise SystemExit(__doc__)


if __name__ == "__main__":
    main(sys.argv[1:])
