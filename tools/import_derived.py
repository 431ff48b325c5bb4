"""Add parameters counted on built networks to tests/models/derived_truth.csv.gz.

    python tools/import_derived.py FILE.jsonl …

Each line of a FILE is an object with model_type, class, total_params and config: a configuration as
its class saved it, built on the meta device by the reference library. What is in the table stays;
a config that it has already is not taken twice. Kept of a config are the fields that this project's
importer reads, or all but the plainly harmless where it refuses it.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import math
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from planner.models.huggingface import read_config
from planner.models.reader import ConfigError

OUT = Path(__file__).parent.parent / "tests" / "models" / "derived_truth.csv.gz"
UNREAD = {
    "architectures",
    "attention_dropout",
    "chunk_size_feed_forward",
    "dtype",
    "hidden_act",
    "id2label",
    "initializer_range",
    "label2id",
    "layer_norm_eps",
    "output_attentions",
    "output_hidden_states",
    "problem_type",
    "return_dict",
    "rms_norm_eps",
    "rope_parameters",
    "rope_theta",
    "transformers_version",
    "use_cache",
}
"""Fields that no importer reads and that say nothing of a network's sizes."""
TEXT_ONLY = ("CausalLM", "LMHead")
"""Classes without the encoders that their config may describe; Fuyu's has them."""


def plain(value: Any) -> Any:
    """Return a config without unread fields, and without numbers that JSON does not know."""
    if isinstance(value, dict):
        if set(value) == {"__float__"}:
            return None
        return {name: plain(inner) for name, inner in value.items() if name not in UNREAD}
    if isinstance(value, list):
        return [plain(inner) for inner in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def reduced(config: dict[str, Any]) -> dict[str, Any]:
    """Return the fields that are read, if they import to the same network."""
    try:
        spec, used = read_config(config)
        plain: dict[str, Any] = json.loads(json.dumps(used))
        again, _ = read_config(plain)
    except ConfigError:
        return config
    facts = ("total_params", "encoder_params", "kv_elements_per_token", "params_range")
    same = all(getattr(spec, fact) == getattr(again, fact) for fact in facts)
    return plain if same else config


Row = tuple[str, int, int, int, str]
HEAD = ("model_type", "variant", "total_params", "text_only", "config")


def on_record() -> list[Row]:
    """Return the rows of the table."""
    with gzip.open(OUT, "rt", encoding="utf-8", newline="") as lines:
        _, *table = csv.reader(lines)
    return [
        (name, int(n), int(total), int(alone), config) for name, n, total, alone, config in table
    ]


def added(table: list[Row], entries: Iterable[dict[str, Any]]) -> list[Row]:
    """Return the table with the entries that it has not, each under its type's next number."""
    rows = list(table)
    for entry in entries:
        model_type, config = entry["model_type"], plain(entry["config"])
        text = json.dumps(reduced(config), separators=(",", ":"))
        numbers = [row[1] for row in rows if row[0] == model_type]
        if any((row[0], row[4]) == (model_type, text) for row in rows):
            continue
        alone = any(word in entry["class"] for word in TEXT_ONLY)
        text_only = alone and "text_config" in config and model_type != "fuyu"
        number = max(numbers, default=0) + 1  # 0 is a class as it is by default
        rows.append((model_type, number, entry["total_params"], int(text_only), text))
    return sorted(rows)


def main(paths: list[Path]) -> None:
    """Write the table."""
    lines = [line for path in paths for line in path.read_text(encoding="utf-8").splitlines()]
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    table.writerow(HEAD)
    table.writerows(added(on_record(), map(json.loads, lines)))
    OUT.write_bytes(gzip.compress(text.getvalue().encode(), 9, mtime=0))
    print(OUT.stat().st_size, "bytes")


if __name__ == "__main__":
    main([Path(name) for name in sys.argv[1:]])
