"""Importing a Hugging Face config.json: the family of its `model_type` builds the spec."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from planner.models.decoder import EXPERTS, HIDDEN, LAYERS, Importer, Moe, Traits, decoder
from planner.models.reader import ConfigError, Reader, first_key
from planner.models.spec import ModelSpec

FAMILIES = (
    "llama",
    "gemma",
    "classic",
    "moe",
    "latent",
    "mllama",
    "nemotron",
    "qwen_delta",
    "sparse_latent",
    "kimi_linear",
    "minimax_hybrid",
    "deepseek_v4",
    "gemma_edge",
    "windowed_moe",
    "step3",
    "longcat",
    "rwkv",
    "mamba",
    "mamba_hybrids",
    "lfm2",
)
"""Modules of `planner.models.families`; each declares MODEL_TYPES, one importer a type."""

LARGEST_FILE = 10_000_000
"""Size of the largest config read [byte]."""

CACHE_FIELDS = re.compile(
    r"window|layer_types|layers_block_type|hybrid|pattern|mamba|ssm|linear_|conv|state|sparse|index_"
)
"""Names of fields that change what a layer keeps of a sequence."""

_NESTED = ("text_config", "llm_config", "language_config", "thinker_config")


@cache
def importers() -> dict[str, Importer]:
    """Return the importer of every known model_type."""
    table: dict[str, Importer] = {}
    for family in FAMILIES:
        table.update(family_types(family))
    return table


def family_types(family: str) -> dict[str, Importer]:
    """Return the importers of one of FAMILIES by model_type."""
    importers: dict[str, Importer] = import_module(f"planner.models.families.{family}").MODEL_TYPES
    return importers


def import_config(
    config: Mapping[str, Any], model_id: str = "", source: str = "", family: str = ""
) -> ModelSpec:
    """Return the ModelSpec of a parsed config.json.

    An unknown `model_type` with sufficient fields is imported as a plain decoder, with a note;
    raises ConfigError naming the missing field otherwise. `family`, one of FAMILIES, spares
    loading the others where it is known.
    """
    spec, _ = read_config(config, model_id, source, family)
    return spec


def read_config(
    config: Mapping[str, Any], model_id: str = "", source: str = "", family: str = ""
) -> tuple[ModelSpec, dict[str, Any]]:
    """Like `import_config`; also return the fields of the config that were used."""
    root = Reader(config)
    table = family_types(family) if family else importers()
    text = _text_reader(_text_reader(root, table), table)
    named = root.text("model_type"), text.text("model_type")
    importer = next((table[name] for name in named if name in table), read_assumed)
    spec = importer(text)
    spec = replace(
        spec,
        id=model_id,
        model_type=next(filter(None, named), "unknown"),
        source=source,
        notes=spec.notes + tuple(root.notes),
    )
    return spec, root.used


def _text_reader(reader: Reader, table: Mapping[str, Importer]) -> Reader:
    """Return a reader of the nested object that describes the text decoder, if there is one."""
    name = first_key(reader.config, _NESTED)
    inner = reader.config[name] if name else None
    if not isinstance(inner, Mapping):
        return reader
    sized = first_key(inner, HIDDEN + LAYERS) or first_key(inner, _NESTED)
    known = not first_key(reader.config, HIDDEN) and str(inner.get("model_type")) in table
    return (reader.nested(name or "") or reader) if sized or known else reader


def read_assumed(reader: Reader) -> ModelSpec:
    """Read a config of unknown model_type as a plain decoder, and note what was assumed."""
    name = reader.text("model_type")
    kind = f"model_type {name!r} is unknown" if name else "there is no model_type"
    traits, reading = assumed_traits(reader)
    try:
        spec = decoder(traits)(reader)
    except ConfigError as error:
        raise ConfigError(f"{error} ({kind})") from error
    unread = _unread(reader)
    reading += f"; not read: {', '.join(unread)}" if unread else ""
    reader.note("assumed_architecture", f"{kind}: read as {reading}")
    return spec


def _unread(reader: Reader) -> list[str]:
    """Return fields that were not read and may say that layers keep less cache, or a state."""
    config = reader.config
    plain: list[Any] = [None, False, "full_attention", "attention"]
    if config.get("use_sliding_window") is False:
        plain.append(config.get("sliding_window"))
    return [
        name
        for name, value in config.items()
        if name not in reader.used
        and CACHE_FIELDS.search(name)
        and not all(item in plain for item in (value if isinstance(value, list) else [value]))
    ]


def assumed_traits(reader: Reader) -> tuple[Traits, str]:
    """Return traits for an unknown model_type, from the fields it has, and them in words."""
    latent, moe = reader.has("kv_lora_rank"), reader.has(*EXPERTS)
    traits = Traits(
        qkv_bias=first_key(reader.config, ("attention_bias", "qkv_bias", "use_bias")) or False,
        mlp_bias="mlp_bias",
        latent=latent,
        moe=Moe(shared_width=("shared_expert_intermediate_size",)) if moe else None,
    )
    attention = "latent attention (MLA)" if latent else "grouped-query attention"
    mlp = "a mixture of gated experts" if moe else "a gated MLP"
    return traits, f"a pre-norm decoder with {attention} and {mlp}"


def import_file(path: Path | str) -> ModelSpec:
    """Return the ModelSpec of a config.json (any name) or of a directory holding one.

    A hf_quant_config.json beside it says how weights are stored where the config does not. Raises
    ConfigError, naming file and problem, for what is missing, malformed, too large or unusable.
    """
    path = Path(path)
    file = path / "config.json" if path.is_dir() else path
    config = load_json(file)
    beside = file.with_name("hf_quant_config.json")
    if file.name == "config.json" and "quantization_config" not in config and beside.is_file():
        stored = load_json(beside).get("quantization")
        if isinstance(stored, Mapping):
            config["quantization_config"] = {"quant_method": "modelopt", **stored}
    name = file.stem if file.stem != "config" else file.resolve().parent.name
    try:
        return import_config(config, name, str(path))
    except ConfigError as error:
        raise ConfigError(f"{path}: {error}") from error


def load_json(file: Path) -> dict[str, Any]:
    """Return the JSON object in a file of at most LARGEST_FILE bytes; raises ConfigError."""
    try:
        size = file.stat().st_size
        if size > LARGEST_FILE:
            raise ConfigError(f"{file}: {size} bytes; a config has at most {LARGEST_FILE}")
        config = json.loads(file.read_text(encoding="utf-8"), parse_constant=_no_constant)
    except RecursionError:
        raise ConfigError(f"{file}: nested too deeply") from None
    except OSError as error:
        raise ConfigError(f"{file}: {error.strerror}") from error
    except ConfigError:
        raise
    except ValueError as error:
        raise ConfigError(f"{file}: not valid JSON: {error}") from error
    if not isinstance(config, dict):
        raise ConfigError(f"{file}: expected a JSON object, got {type(config).__name__}")
    return config


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")
