"""Write tests/models/truth.csv: facts of published models that the importers must reproduce.

    python tools/import_truth.py FOLDER

FOLDER has parameter_truth.csv and kv_truth.csv (see import_models.py for the rest). Totals leave
out image encoders, as `total_params` does. transformers crops a sliding window to the tokens that
the next step still sees, one less than the window; full windows are given here.
"""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterator
from pathlib import Path

from planner.models import UnknownModel, get_model

OUT = Path(__file__).parent.parent / "tests" / "models" / "truth.csv"
Fact = tuple[str, str, str, str]


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


def whole(text: str) -> int:
    return int(float(text))


def parameters(folder: Path) -> Iterator[Fact]:
    for row in rows(folder / "parameter_truth.csv"):
        name, method = row["hf_id"], row["method"]
        if not row["total_params"]:
            continue
        if method.startswith("hub safetensors total only"):
            yield name, "hub_total", str(whole(row["total_params"])), "total of the hub's weights"
            continue
        vision = whole(row["vision_params"] or "0")
        yield name, "total_params", str(whole(row["total_params"]) - vision), method
        if row["active_params_per_token"]:
            active = str(whole(row["active_params_per_token"]))
            yield name, "active_params", active, row["active_method"]
        if row["hub_total"] and row["agreement"] == "exact":
            yield name, "hub_total", str(whole(row["hub_total"])), "total of the hub's weights"


def caches(folder: Path) -> Iterator[Fact]:
    for row in rows(folder / "kv_truth.csv"):
        if not row["source"].startswith("computed") or "NOT the engine value" in row["detail"]:
            continue
        name, source = row["hf_id"], row["source"].removeprefix("computed: ")
        if row["kv_elements_per_token"]:
            yield name, "kv_elements_per_token", row["kv_elements_per_token"], source
        if row["state_elements_per_sequence"]:
            yield name, "state_elements", str(whole(row["state_elements_per_sequence"])), source
        kept = row["window_length_kept"]
        if row["window_bytes_when_full_16bit"] and kept.replace(".", "").isdigit():
            length = whole(kept)
            full = length + 1 if length & (length + 1) == 0 or length == 2046 else length
            elements = whole(row["window_bytes_when_full_16bit"]) // 2 * full // length
            yield name, "window_elements", str(elements), source


def in_catalogue(name: str) -> bool:
    try:
        get_model(name, local=False)
    except UnknownModel:
        return False
    return True


def main(folder: Path) -> None:
    facts = sorted({*parameters(folder), *caches(folder)})
    kept = [fact for fact in facts if in_catalogue(fact[0])]
    OUT.parent.mkdir(parents=True, exist_ok=True)
    with OUT.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(("model", "fact", "value", "source"))
        writer.writerows(kept)
    missing = sorted({fact[0] for fact in facts} - {fact[0] for fact in kept})
    print(len(kept), "facts; not in the catalogue:", missing)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
