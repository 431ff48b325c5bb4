"""Files beside a config.json: how weights are stored, how many bytes they take, what else it is."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from planner.models.reader import ConfigError

LARGEST_FILE = 10_000_000
"""Size of the largest config read [byte]."""

LARGEST_INDEX = 200_000_000
"""Size of the largest index of safetensors read [byte]."""

_INDEX = "model.safetensors.index.json"
_OTHERS = {
    "params.json": "Mistral's own params.json",
    "adapter_config.json": "an adapter; give its base model",
    "model_index.json": "a diffusers pipeline, which generates no tokens",
    "hf_quant_config.json": "hf_quant_config.json, which names no network",
    _INDEX: "an index of safetensors",
}
"""What a directory without config.json may hold instead."""


def load_json(file: Path, largest: int = LARGEST_FILE) -> dict[str, Any]:
    """Return the JSON object in a file of at most `largest` bytes; raises ConfigError.

    Infinity counts as a number, since published files have it (`time_step_limit`).
    """
    try:
        size = file.stat().st_size
        if size > largest:
            raise ConfigError(f"{file}: {size} bytes; a config has at most {largest}")
        config = json.loads(file.read_text(encoding="utf-8"), parse_constant=_constant)
    except RecursionError:
        raise ConfigError(f"{file}: nested too deeply") from None
    except OSError as error:
        raise ConfigError(f"{file}: {error.strerror}{_instead(file)}") from error
    except ConfigError:
        raise
    except ValueError as error:
        raise ConfigError(f"{file}: not valid JSON: {error}") from error
    if not isinstance(config, dict):
        raise ConfigError(f"{file}: expected a JSON object, got {type(config).__name__}")
    return config


def _constant(name: str) -> float:
    if name == "Infinity":
        return float("inf")
    raise ValueError(f"{name} is not JSON")


def _instead(file: Path) -> str:
    """Return what lies where a config.json is missing."""
    for name, what in _OTHERS.items():
        if file.name == "config.json" and file.with_name(name).is_file():
            return f"; its directory holds {what}"
    return ""


def stored_elsewhere(file: Path) -> dict[str, Any] | None:
    """Return the quantization_config that a hf_quant_config.json beside `file` stands for."""
    beside = file.with_name("hf_quant_config.json")
    if file.name != "config.json" or not beside.is_file():
        return None
    stored = load_json(beside).get("quantization")
    return {"quant_method": "modelopt", **stored} if isinstance(stored, Mapping) else None


def indexed_bytes(file: Path) -> int | None:
    """Return the bytes of all tensors by the index of safetensors beside `file`, if there is one.

    Raises ConfigError where it states no total.
    """
    index = file.with_name(_INDEX)
    if file.name != "config.json" or not index.is_file():
        return None
    metadata = load_json(index, LARGEST_INDEX).get("metadata")
    total = metadata.get("total_size") if isinstance(metadata, Mapping) else None
    if isinstance(total, bool) or not isinstance(total, (int, float)) or not 0 < total < 1e15:
        raise ConfigError(f"{index}: metadata.total_size: {total!r}; a number of bytes is needed")
    return int(total)
