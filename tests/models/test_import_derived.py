"""tools/import_derived.py adds to the table, and takes nothing twice."""

from __future__ import annotations

from typing import Any

from planner.models.huggingface import import_config
from tests.scripts import script

TOOL = script("import_derived")
CONFIG: dict[str, Any] = {
    "model_type": "llama",
    "hidden_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "intermediate_size": 128,
    "vocab_size": 1000,
    "tie_word_embeddings": True,
    "attention_dropout": 0.0,
}
ENTRY = {"model_type": "llama", "class": "LlamaForCausalLM", "total_params": 138_048}
"""1000·64 embedding, 64 last norm, 2 · (64·64·2 + 64·32·2 attention, 3·64·128 MLP, 128 norms)."""


def test_a_config_is_added_once_with_the_fields_that_are_read() -> None:
    table = TOOL.on_record()
    (row,) = set(TOOL.added(table, [ENTRY | {"config": CONFIG}])) - set(table)
    numbers = [number for name, number, *_ in table if name == "llama"]
    assert row[:4] == ("llama", max(numbers) + 1, 138_048, 0)
    assert "attention_dropout" not in row[4]
    again = CONFIG | {"attention_dropout": 0.1}
    assert TOOL.added([*table, row], [ENTRY | {"config": again}]) == sorted([*table, row])


def test_the_count_by_hand_is_the_importers() -> None:
    assert import_config(CONFIG).total_params == ENTRY["total_params"]
