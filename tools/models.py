"""Check, tidy and extend the catalogue of models in `planner/models/data`; nothing else is read.

    python tools/models.py check                 entries import, the index agrees, files are tidy
    python tools/models.py tidy                  write the files in their one form
    python tools/models.py add CONFIG ID SOURCE  take in a config.json, with where it was read

Of a config the fields that its importer reads are kept: the rest is not needed to answer.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from planner.models.files import load_json
from planner.models.huggingface import FAMILIES, family_types, read_config

DATA = Path(__file__).parents[1] / "planner" / "models" / "data"
FACTS = (
    "total_params",
    "active_params",
    "kv_elements_per_token",
    "window_elements",
    "state_elements",
    "mtp_params",
    "encoder_params",
    "max_context",
)
"""What an entry must still say once unused fields are dropped."""

Entry = dict[str, Any]


def read(name: str) -> dict[str, Any]:
    data: dict[str, Any] = json.loads((DATA / f"{name}.json").read_text(encoding="utf-8"))
    return data


def families() -> list[str]:
    """Return the names of the files that hold models."""
    return sorted(set(read("index")["models"].values()))


def as_text(data: dict[str, Any]) -> str:
    """Return the file of a family: one model a line, sorted by id."""
    entries = sorted(data["models"], key=lambda entry: entry["id"])
    lines = ",\n".join(json.dumps(entry, ensure_ascii=False) for entry in entries)
    head = f'{{"edition": "{data["edition"]}", "family": "{data["family"]}", "models": [\n'
    return f"{head}{lines}\n]}}\n"


def index_text(index: dict[str, Any]) -> str:
    """Return the index: ids and aliases, sorted."""
    whole = {
        "edition": index["edition"],
        "models": dict(sorted(index["models"].items())),
        "aliases": dict(sorted(index["aliases"].items())),
    }
    return json.dumps(whole, indent=0) + "\n"


def importer_of(config: Entry) -> str:
    """Return the family module whose importer reads `config`."""
    nested = config.get("text_config") or {}
    for model_type in (config.get("model_type"), nested.get("model_type")):
        for family in FAMILIES:
            if model_type in family_types(family):
                return family
    raise SystemExit(f"no family reads model_type {config.get('model_type')!r}")


def used_fields(model_id: str, config: Entry) -> Entry:
    """Return the fields of a config that its importer reads; they import to the same model."""
    spec, used = read_config(config, model_id)
    again, _ = read_config(used, model_id)
    for fact in FACTS:
        if getattr(spec, fact) != getattr(again, fact):
            raise SystemExit(f"{model_id}: {fact} differs once unused fields are dropped")
    if spec.weights_bytes() != again.weights_bytes():
        raise SystemExit(f"{model_id}: weights_bytes differs once unused fields are dropped")
    return used


def faults() -> Iterator[str]:
    """Yield what is wrong with the catalogue, one line each."""
    index = read("index")
    if index_text(index) != (DATA / "index.json").read_text(encoding="utf-8"):
        yield "index: not in its one form; run tools/models.py tidy"
    stored: dict[str, str] = {}
    for family in families():
        data = read(family)
        stored |= {entry["id"]: family for entry in data["models"]}
        if as_text(data) != (DATA / f"{family}.json").read_text(encoding="utf-8"):
            yield f"{family}: not in its one form; run tools/models.py tidy"
        for entry in data["models"]:
            if len(entry.get("source", "")) < 5:
                yield f"{entry['id']}: no source"
            if entry["family"] != importer_of(entry["config"]):
                yield f"{entry['id']}: family {entry['family']!r} does not read its model_type"
    if stored != index["models"]:
        yield f"index: differs from the files on {sorted(stored.items() ^ index['models'].items())}"
    for alias, model_id in index["aliases"].items():
        if model_id not in stored:
            yield f"index: alias {alias!r} is of an unknown model {model_id!r}"


def file_for(model_type: str) -> str:
    """Return the file of a model_type: the longest that is the front of its name, or `other`."""
    fitting = [name for name in families() if model_type.lower().startswith(name)]
    return max(fitting, key=len, default="other")


def add(path: str, model_id: str, source: str) -> None:
    """Take a model into the catalogue; one of the same id is replaced."""
    config = load_json(Path(path))
    used = used_fields(model_id, config)
    spec, _ = read_config(used, model_id)
    entry = {"id": model_id, "family": importer_of(used), "source": source, "config": used}
    index, family = read("index"), file_for(spec.model_type)
    if index["models"].get(model_id, family) != family:
        raise SystemExit(f"{model_id!r} is in {index['models'][model_id]}.json already")
    data = read(family)
    data["models"] = [e for e in data["models"] if e["id"] != model_id] + [entry]
    index["models"][model_id] = family
    (DATA / f"{family}.json").write_text(as_text(data), encoding="utf-8")
    (DATA / "index.json").write_text(index_text(index), encoding="utf-8")
    print(f"{model_id}: {spec.total_params:,} parameters, in planner/models/data/{family}.json")


def tidy() -> None:
    """Write every file in its one form."""
    (DATA / "index.json").write_text(index_text(read("index")), encoding="utf-8")
    for family in families():
        (DATA / f"{family}.json").write_text(as_text(read(family)), encoding="utf-8")


def main(arguments: list[str]) -> None:
    match arguments:
        case ["check"]:
            if problems := list(faults()):
                raise SystemExit("\n".join(problems))
        case ["tidy"]:
            tidy()
        case ["add", path, model_id, source]:
            add(path, model_id, source)
        case _:
            raise SystemExit(__doc__)


if __name__ == "__main__":
    main(sys.argv[1:])
