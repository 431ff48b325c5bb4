"""Configs of every type of the reference library against the parameters of the built network.

derived_truth.csv.gz: classes of transformers 5.24.0 built on the meta device and their parameters
counted; variant 0 is a class's own defaults, others are random sizes, biases, ties, windows and
experts. Configs are cut to the fields an importer reads; `text_only` says that the class leaves out
the encoders its config describes. tools/import_derived.py writes the file.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from planner.models import ConfigError, ModelSpec
from planner.models.huggingface import import_config

Row = dict[str, str]

FILE = Path(__file__).with_name("derived_truth.csv.gz")
ROWS: dict[str, list[Row]] = defaultdict(list)
for entry in csv.DictReader(io.StringIO(gzip.decompress(FILE.read_bytes()).decode())):
    ROWS[entry["model_type"]].append(entry)

QUIRKS = {
    "longcat_flash": "the library allocates weights for identity experts; checkpoints have none",
    "ovis2": "the library sizes the head by the outer object, which the variants leave at default",
    "qwen2_5_omni": "the total holds a talker and a vocoder, which no text is decoded with",
}
"""Types whose built network is not what their checkpoints hold, on some variants."""

REFUSED = {
    "zamba": "attention_hidden_size",
    "zamba2": "tie_word_embeddings",
    "helium": "head_dim",
    "deepseek_v2": "num_experts_per_tok",
    "step3p7": "num_key_value_heads",
    "cosmos3_edge": "num_key_value_heads",
    "gemma3n_text": "num_kv_shared_layers",
    "gemma4_unified_assistant": "num_kv_shared_layers",
    "inkling2_loop_text": "loop_layer_index_end",
}
"""Types that are read, some of whose variants are refused: sizes that cannot be run."""


def right(spec: ModelSpec, row: Row) -> bool:
    """Whether the spec has the parameters of the built network, or bounds that hold them."""
    total = int(row["total_params"])
    counted = spec.total_params + (0 if row["text_only"] == "1" else spec.encoder_params)
    buffers = sum(g.copies * part.buffers() for g in spec.groups for part in g.block.parts)
    if total in (counted, counted - buffers):
        return True
    low, high = spec.params_range or (spec.total_params, spec.total_params)
    least, most = spec.encoder_range or (spec.encoder_params, spec.encoder_params)
    bounded = (spec.params_range or spec.encoder_range) is not None
    return bounded and low + least <= total <= high + most


@pytest.mark.parametrize("model_type", ROWS)
def test_right_or_refused_or_bounded(model_type: str) -> None:
    wrong = []
    for row in ROWS[model_type]:
        config = json.loads(row["config"])
        if message := refusal(config):
            assert_names_a_field(message, config)
        elif not right(import_config(config), row):
            wrong.append(row["variant"])
    assert bool(wrong) == (model_type in QUIRKS), wrong


def refusal(config: dict[str, Any]) -> str:
    """Return why a config is refused; nothing of one that is read."""
    try:
        import_config(config)
    except ConfigError as error:
        return str(error)
    return ""


def assert_names_a_field(message: str, config: dict[str, Any]) -> None:
    """Check that a refusal is one line that begins with fields of the config."""
    assert "\n" not in message
    named = message.partition(":")[0].replace("model.", "").split(".")[-1]
    alternatives = [name.strip() for name in named.replace(" or ", ",").split(",")]
    assert all(name.replace("_", "").replace("[", "").isalnum() for name in alternatives), message
    assert config


def test_types_that_are_read_are_refused_by_name() -> None:
    """Of known types, only variants that cannot be run, and networks listed as unread."""
    from planner.models.defaults import encodes_and_decodes, encodes_only
    from planner.models.refusals import UNREAD

    for model_type, rows in ROWS.items():
        if model_type in UNREAD or encodes_only(model_type) or encodes_and_decodes(model_type):
            continue
        for row in rows:
            config = json.loads(row["config"])
            if config.get("is_encoder_decoder"):
                continue
            message = refusal(config)
            assert not message or REFUSED.get(model_type, "?") in message, (model_type, message)


def test_covers_the_field() -> None:
    exact = refused = bounded = 0
    for rows in ROWS.values():
        for row in rows:
            try:
                spec = import_config(json.loads(row["config"]))
            except ConfigError:
                refused += 1
                continue
            if spec.params_range:
                bounded += 1
            exact += right(spec, row)
    assert len(ROWS) > 250
    assert exact > 0.75 * (exact + refused + bounded)
    assert refused < 0.25 * (exact + refused + bounded)
