"""Importing a Hugging Face config.json: the family of its `model_type` builds the spec."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

from planner.models.reader import Reader
from planner.models.spec import ModelSpec

Importer = Callable[[Reader], ModelSpec]

FAMILIES = ("llama",)
"""Modules of `planner.models.families`; each declares MODEL_TYPES, one importer a type."""

_NESTED = ("text_config", "llm_config", "language_config")


def importers() -> dict[str, Importer]:
    """Return the importer of every known model_type."""
    table: dict[str, Importer] = {}
    for family in FAMILIES:
        table.update(import_module(f"planner.models.families.{family}").MODEL_TYPES)
    return table


def import_config(config: Mapping[str, Any], model_id: str = "", source: str = "") -> ModelSpec:
    """Return the ModelSpec of a parsed config.json.

    An unknown `model_type` with sufficient fields is imported as a plain decoder, with a note;
    raises ConfigError naming the missing field otherwise.
    """
    spec, _ = read_config(config, model_id, source)
    return spec


def read_config(config: Mapping[str, Any], model_id: str = "",
                source: str = "") -> tuple[ModelSpec, dict[str, Any]]:  # fmt: skip
    """Like `import_config`; also return the fields of the config that were used."""
    raise NotImplementedError
