"""Check, tidy and extend the hardware data of `planner/hw/data`; nothing else is read.

    python tools/hardware.py check                      every rule below holds, and files are tidy
    python tools/hardware.py tidy                       write the files in their one form
    python tools/hardware.py add FILE.toml KEY          take in an accelerator (.toml or .json)
    python tools/hardware.py edition 2027-01-15         start a new edition from the newest

An accelerator's file is the one that `--gpu FILE.toml` takes; its `source` becomes the text of the
source KEY. Every figure names its sources by key, every key has a text that a reader can look up,
and every text is used. The newest edition takes changes until it is released; older ones never do.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from planner.hw import get_accelerator
from planner.hw._data import EDITION, FOLDER
from planner.hw.catalogue import Catalogue
from planner.hw.figure import WEAK

Row = dict[str, Any]
CODE = FOLDER.with_name("_data.py")
TABLES = ("accelerators", "links", "prices")
KEYS = (
    "id",
    "name",
    "vendor",
    "architecture",
    "kind",
    "year",
    "memory_bytes",
    "memory_type",
    "bandwidth_bytes_per_s",
    "peaks",
    "l2_bytes",
    "sm_count",
    "tdp_w",
    "form_factor",
    "link",
    "domain_size",
    "pair_bytes_per_s",
    "pcie",
    "status",
    "confidence",
    "cross_check",
    "sources",
    "figures",
    "notes",
    "runs_in",
    "unread",
    "also_published",
    "measured",
)
"""Fields of an accelerator, in the order of the file."""
PLAIN = (*KEYS[:9], *KEYS[10:14], "domain_size", "pcie")
"""Those that an `Accelerator` has under the same name and in the same form."""
SOURCE_KEY = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
UNTRACEABLE = re.compile(r"passage|index id", re.IGNORECASE)


def path_of(table: str, edition: str = EDITION) -> Path:
    return FOLDER / f"{table}-{edition}.json"


def read(table: str) -> dict[str, Any]:
    data: dict[str, Any] = json.loads(path_of(table).read_text(encoding="utf-8"))
    return data


def as_text(data: dict[str, Any]) -> str:
    """Return the file of a table: one row a line, so that a change of a row is one of a line."""
    parts = [f'"edition": "{data["edition"]}"']
    for name, value in data.items():
        if isinstance(value, list):
            rows = [
                {k: row[k] for k in KEYS if k in row} if "peaks" in row else row for row in value
            ]
            lines = ",\n".join(json.dumps(row, ensure_ascii=False) for row in rows)
            parts.append(f'"{name}": [\n{lines}\n]')
        elif isinstance(value, dict):
            pairs = (
                f"{json.dumps(k)}: {json.dumps(value[k], ensure_ascii=False)}"
                for k in sorted(value)
            )
            parts.append(f'"{name}": {{\n' + ",\n".join(pairs) + "\n}")
    return "{\n" + ",\n".join(parts) + "\n}\n"


def used_keys(row: Row) -> Iterator[str]:
    """Yield the source keys a row of any table names."""
    if "source" in row:
        yield row["source"]
    yield from row.get("sources", ())
    for stated in row.get("figures", {}).values():
        yield from stated["sources"]
    yield from (item[2] for item in row.get("also_published", ()))
    yield from (item[3] for item in row.get("measured", ()))


def faults(table: str, data: dict[str, Any]) -> Iterator[str]:
    """Yield what is wrong with a table, one line each."""
    sources: dict[str, str] = data["sources"]
    rows = [row for value in data.values() if isinstance(value, list) for row in value]
    used = {key for row in rows for key in used_keys(row)}
    for key in sorted(used - set(sources)):
        yield f"{table}: source {key!r} is used and has no text"
    for key in sorted(set(sources) - used):
        yield f"{table}: source {key!r} is not used"
    for key, text in sources.items():
        if not SOURCE_KEY.fullmatch(key):
            yield f"{table}: source key {key!r} is not lower-case words joined by hyphens"
        if len(text) < 5 or UNTRACEABLE.search(text):
            yield f"{table}: the text of source {key!r} is nothing a reader can look up"
        if (prefix := key.partition("-")[0]) in WEAK and not text.lower().startswith(prefix):
            yield f"{table}: the text of source {key!r} must start with {prefix.capitalize()!r}"
    for row in rows:
        if unknown := set(row) - set(KEYS) if "peaks" in row else ():
            yield f"{table}: {row['id']} has unknown fields {sorted(unknown)}"
    if data["edition"] != EDITION:
        yield f"{table}: edition {data['edition']!r} is not {EDITION!r}"


def check() -> list[str]:
    """Return every fault of the newest edition."""
    problems = []
    for table in TABLES:
        data = read(table)
        problems += faults(table, data)
        if as_text(data) != path_of(table).read_text(encoding="utf-8"):
            problems.append(f"{table}: not in its one form; run tools/hardware.py tidy")
    if not problems:
        for accelerator in Catalogue(read("accelerators")).values():
            accelerator.published("bandwidth_bytes_per_s")
    return problems


def write(table: str, data: dict[str, Any]) -> None:
    path_of(table, data["edition"]).write_text(as_text(data), encoding="utf-8")


def add(file: str, key: str) -> None:
    """Take an accelerator of a user's file into the catalogue, every figure under one source."""
    accelerator = get_accelerator(file)
    data = read("accelerators")
    known = {row["id"] for row in data["accelerators"]} | set(data["aliases"])
    if accelerator.id in known:
        raise SystemExit(f"{accelerator.id!r} is in the catalogue; choose another id")
    source = next(iter(accelerator.figures.values())).source
    if data["sources"].get(key, source) != source:
        raise SystemExit(f"source {key!r} has another text; choose another key")
    row: Row = {name: getattr(accelerator, name) for name in PLAIN}
    row |= {
        "peaks": dict(accelerator.peaks_flops_per_s),
        "link": [accelerator.link.name, accelerator.link.bytes_per_s],
        "pair_bytes_per_s": accelerator.link.pair_bytes_per_s,
        "status": "available" if accelerator.status == "user" else accelerator.status,
        "confidence": "third_party" if accelerator.confidence == "user" else accelerator.confidence,
        "cross_check": "single",
        "sources": [key],
        "notes": list(accelerator.notes) or None,
    }
    data["accelerators"].append({name: value for name, value in row.items() if value is not None})
    data["sources"][key] = source
    if problems := list(faults("accelerators", data)):
        raise SystemExit("\n".join(problems))
    write("accelerators", data)


def start_edition(date: str) -> None:
    """Copy the newest edition under a new date and make it the one in use."""
    if not re.fullmatch(r"\d{4}-\d\d-\d\d", date) or date <= EDITION:
        raise SystemExit(f"edition: {date!r} is no date after {EDITION}")
    for table in TABLES:
        write(table, read(table) | {"edition": date})
    code = CODE.read_text(encoding="utf-8").replace(f'EDITION = "{EDITION}"', f'EDITION = "{date}"')
    CODE.write_text(code, encoding="utf-8")


def main(arguments: list[str]) -> None:
    match arguments:
        case ["check"]:
            if problems := check():
                raise SystemExit("\n".join(problems))
        case ["tidy"]:
            for table in TABLES:
                write(table, read(table))
        case ["add", file, key]:
            add(file, key)
        case ["edition", date]:
            start_edition(date)
        case _:
            raise SystemExit(__doc__)


if __name__ == "__main__":
    main(sys.argv[1:])
