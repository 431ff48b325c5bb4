"""Write planner/models/data from a folder of published config.json files.

    python tools/import_models.py FOLDER

FOLDER has configs/*.json, index.csv (file, hf_id, source, note), aliases.csv (alias,
same_shapes_as) and parameter_truth.csv (hf_id, vision_params). Configs transcribed by hand and
models that are another's network in another format are in transcribed_models.json and
model_variants.json beside this script. Kept of a config are the fields its importer reads.
"""

from __future__ import annotations

import csv
import json
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

from planner.models.huggingface import FAMILIES, family_types, read_config

EDITION = "2026-11-29"
DATA = Path(__file__).parent.parent / "planner" / "models" / "data"
HERE = Path(__file__).parent
FAMILY_PREFIXES = (
    "llama",
    "mistral",
    "ministral",
    "mixtral",
    "qwen",
    "deepseek",
    "gemma",
    "glm",
    "kimi",
    "minimax",
    "nemotron",
    "phi",
    "falcon",
    "granite",
    "olmo",
    "gpt_oss",
    "hunyuan",
    "bailing",
    "ernie",
    "exaone",
    "cohere",
    "internlm",
    "minicpm",
    "opt",
    "starcoder",
    "mamba",
    "lfm2",
)
"""A family's data file is named after the front of its model_type; the rest are in other.json."""

Entry = dict[str, Any]


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


def published(folder: Path) -> dict[str, Entry]:
    """Return the configs of the folder, and those transcribed by hand."""
    entries: dict[str, Entry] = {}
    for row in rows(folder / "index.csv"):
        config = json.loads((folder / row["file"]).read_text(encoding="utf-8"))
        note = row["note"].strip()
        entries[row["hf_id"]] = {
            "source": row["source"],
            "config": config,
            "notes": [note] if note else [],
        }
    transcribed = json.loads((HERE / "transcribed_models.json").read_text(encoding="utf-8"))
    for model_id, entry in transcribed.items():
        entries.setdefault(model_id, {"notes": [], **entry})
    return entries


def changed(config: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    """Return `config` with `changes`; a null takes a field out."""
    merged = {**config, **changes}
    return {key: value for key, value in merged.items() if key not in changes or value is not None}


def add_variants(entries: dict[str, Entry], variants: dict[str, Any]) -> None:
    """Add networks of known shapes in other formats, and formats stated outside config.json."""
    for model_id, (dtype, where) in variants["dtype"].items():
        entry = entries[model_id]
        entry["config"] = {**entry["config"], "dtype": dtype}
        entry["source"] += f"; dtype, which it lacks, by {where}"
    stored_elsewhere = (
        "weight formats are inferred: the repository states them in hf_quant_config.json,"
        " which was not seen"
    )
    for model_id, quantization in variants["quantization"].items():
        entry = entries[model_id]
        entry["config"] = {**entry["config"], "quantization_config": quantization}
        entry["notes"].append(stored_elsewhere)
    for variant in variants["variants"]:
        base = entries[variant["like"]]
        note = variant.get("note")
        entries[variant["id"]] = {
            "source": f"network of {variant['like']}: {base['source']}",
            "config": changed(base["config"], variant["changes"]),
            "notes": [*base["notes"], *([note] if note else [])],
            "like": variant["like"],
        }


def keep_used(model_id: str, entry: Entry) -> Entry:
    """Return the entry with the fields its importer read, which must import to the same model."""
    spec, used = read_config(entry["config"], model_id)
    again, _ = read_config(used, model_id)
    same = (
        "total_params",
        "active_params",
        "kv_elements_per_token",
        "window_elements",
        "state_elements",
        "mtp_params",
        "max_context",
    )
    for fact in same:
        if getattr(spec, fact) != getattr(again, fact):
            raise SystemExit(f"{model_id}: {fact} differs once unused fields are dropped")
    if spec.weights_bytes() != again.weights_bytes():
        raise SystemExit(f"{model_id}: weights_bytes differs once unused fields are dropped")
    return {**entry, "config": used, "model_type": spec.model_type}


def family_of(model_type: str) -> str:
    return next((name for name in FAMILY_PREFIXES if model_type.lower().startswith(name)), "other")


def module_of(config: dict[str, Any]) -> str:
    """Return the family module whose importer reads `config`."""
    nested = config.get("text_config", {})
    for model_type in (config.get("model_type"), nested.get("model_type")):
        for family in FAMILIES:
            if model_type in family_types(family):
                return family
    raise SystemExit(f"no family reads model_type {config.get('model_type')}")


def as_lines(entries: list[Entry]) -> str:
    """One line a model, so that a change of one is a change of one line."""
    return ",\n".join(json.dumps(entry, ensure_ascii=False) for entry in entries)


def main(folder: Path) -> None:
    entries = published(folder)
    variants = json.loads((HERE / "model_variants.json").read_text(encoding="utf-8"))
    add_variants(entries, variants)
    vision = {
        row["hf_id"]: int(float(row["vision_params"]))
        for row in rows(folder / "parameter_truth.csv")
        if row["vision_params"]
    }
    vision |= variants["vision_params"]
    aliases = {row["alias"]: row["same_shapes_as"] for row in rows(folder / "aliases.csv")}
    aliases |= variants["aliases"]
    known = {model_id.lower() for model_id in entries}
    aliases = {alias: of for alias, of in sorted(aliases.items()) if alias.lower() not in known}
    families: dict[str, list[Entry]] = defaultdict(list)
    index: dict[str, str] = {}
    for model_id, entry in sorted(entries.items()):
        kept = keep_used(model_id, entry)
        module = module_of(kept["config"])
        family = family_of(kept.pop("model_type"))
        index[model_id] = family
        own = kept.pop("like", model_id)
        line: Entry = {"id": model_id, "family": module, "source": kept["source"]}
        if names := [alias for alias, of in aliases.items() if of == model_id]:
            line["aliases"] = names
        if kept["notes"]:
            line["notes"] = kept["notes"]
        if image := vision.get(model_id, vision.get(own)):
            line["vision_params"] = image
        families[family].append({**line, "config": kept["config"]})
    missing = sorted(of for of in aliases.values() if of not in index)
    if missing:
        raise SystemExit(f"aliases of unknown models: {missing}")
    DATA.mkdir(exist_ok=True)
    for family, found in families.items():
        head = f'{{"edition": "{EDITION}", "family": "{family}", "models": [\n'
        (DATA / f"{family}.json").write_text(head + as_lines(found) + "\n]}\n", encoding="utf-8")
    whole = {"edition": EDITION, "models": index, "aliases": aliases}
    (DATA / "index.json").write_text(json.dumps(whole, indent=0) + "\n", encoding="utf-8")
    print(len(index), "models,", len(aliases), "aliases,", len(families), "families")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
