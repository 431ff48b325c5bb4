"""Class defaults: what a field that a config.json leaves out means to the reference library."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

_FILE = Path(__file__).parent / "facts" / "class_defaults.json"

ESSENTIAL = frozenset(
    {
        "hidden_size",
        "n_embd",
        "n_embed",
        "d_model",
        "num_hidden_layers",
        "n_layer",
        "n_layers",
        "num_layers",
        "num_attention_heads",
        "n_head",
        "n_heads",
        "intermediate_size",
        "ffn_dim",
        "n_inner",
        "vocab_size",
    }
)
"""Sizes that every published file states: a flat file without them is not complete, so they are
asked for. A nested text_config is stored as what differs from its class, so there they count."""


WHOLE_INSIDE = frozenset({"blip-2", "instructblip", "instructblipvideo"})
"""Types whose text_config makes a whole language model with a head of its own to tie."""


NEVER_TIED = frozenset(
    {
        "cosmos3_edge",
        "inkling2",
        "inkling2_loop",
        "inkling_mm_model",
        "molmo2",
        "muse_spark",
        "nemotron_h_omni",
        "omniasr",
        "qwen2_audio",
        "qwen3_omni_moe",
        "vibevoice_asr",
        "voxtral",
    }
)
"""Types with a text_config whose class in transformers 5.24.0 names no weights to tie."""


@cache
def _table() -> dict[str, Any]:
    table: dict[str, Any] = json.loads(_FILE.read_text(encoding="utf-8"))
    return table


def class_defaults(model_type: str) -> Mapping[str, Any]:
    """Return the defaults of a type's configuration class; none of an unknown type."""
    fields: Mapping[str, Any] = _table()["types"].get(model_type, {})
    return fields


def flat_defaults(model_type: str) -> dict[str, Any]:
    """Return the defaults that count in a file without nesting."""
    return {k: v for k, v in class_defaults(model_type).items() if k not in ESSENTIAL}


def inner_type(model_type: str, name: str) -> str:
    """Return the type of the config that `model_type` holds under `name`; empty where unknown."""
    inner: Mapping[str, str] = class_defaults(model_type).get("_sub", {})
    return inner.get(name, "")


def ties_inside(model_type: str) -> bool:
    """Return whether a config around a text_config leaves tying to it; false of known classes
    that have a text_config but no such field."""
    fields = class_defaults(model_type)
    known = "_sub" in fields and model_type not in WHOLE_INSIDE
    return not known or "tie_word_embeddings" in fields


def source() -> str:
    """Return where the defaults were read."""
    return str(_table()["source"])


def encodes_only(model_type: str) -> bool:
    """Return whether the type is an encoder, which generates nothing token by token."""
    return model_type in _table()["encoders"]


def encodes_and_decodes(model_type: str) -> bool:
    """Return whether the type is an encoder with a decoder that attends to it."""
    return model_type in _table()["encoder_decoders"]
