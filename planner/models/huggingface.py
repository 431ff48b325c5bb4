"""Importing a Hugging Face config.json: the family of its `model_type` builds the spec."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from planner.models.assumed import read_assumed
from planner.models.decoder import HIDDEN, LAYERS, Importer
from planner.models.defaults import class_defaults, flat_defaults, inner_type
from planner.models.encoders import count_encoders
from planner.models.files import indexed_bytes, load_json, stored_elsewhere
from planner.models.reader import ConfigError, ConfigReader, first_key
from planner.models.refusals import refuse
from planner.models.spec import ModelSpec, Note
from planner.precision import get_format

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
    "lfm3",
    "delta_hybrids",
    "qwen_indexed",
    "looped",
    "jetmoe",
    "ernie_vl",
    "gated_latent",
    "inkling",
)
"""Modules of `planner.models.families`; each declares MODEL_TYPES, one importer a type."""

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
    config: Mapping[str, Any],
    model_id: str = "",
    source: str = "",
    family: str = "",
    whole: bool = False,
) -> ModelSpec:
    """Return the ModelSpec of a parsed config.json.

    An unknown `model_type` with sufficient fields is imported as a plain decoder between bounds,
    with a note; raises ConfigError naming the missing field, or one that says it is none,
    otherwise. `family`, one of FAMILIES, spares loading the others where it is known. A `whole`
    config leaves no field to its class's default.
    """
    spec, _ = read_config(config, model_id, source, family, whole)
    return spec


def read_config(
    config: Mapping[str, Any],
    model_id: str = "",
    source: str = "",
    family: str = "",
    whole: bool = False,
) -> tuple[ModelSpec, dict[str, Any]]:
    """Like `import_config`; also return the fields of the config that were used."""
    root = ConfigReader(config)
    root.whole = whole
    table = family_types(family) if family else importers()
    text = _text_reader(_text_reader(root, table), table)
    named = text.text("model_type"), root.text("model_type")
    refuse(root, text)
    importer = next((table[name] for name in named if name in table), read_assumed)
    spec = importer(text)
    encoders = count_encoders(text)
    _note_parts(root)
    _note_defaults(root)
    spec = replace(
        spec,
        id=model_id,
        model_type=root.text("model_type") or named[0] or "unknown",
        source=source,
        vision_params=encoders.vision,
        audio_params=encoders.audio,
        encoder_range=encoders.range,
        notes=spec.notes + tuple(root.notes),
    )
    return spec, root.used


def _text_reader(reader: ConfigReader, table: Mapping[str, Importer]) -> ConfigReader:
    """Return a reader of the nested object that describes the text decoder, if there is one."""
    name = first_key(reader.config, _NESTED)
    inner = reader.config[name] if name else None
    if name is None or inner is None:
        return _with_defaults(reader)
    if not isinstance(inner, Mapping):
        raise ConfigError(f"{reader.path}{name}: {str(inner)[:40]!r} is no JSON object")
    sized = first_key(inner, HIDDEN + LAYERS) or first_key(inner, _NESTED)
    sized = sized or inner_type(reader.text("model_type"), name)
    known = not first_key(reader.config, HIDDEN) and str(inner.get("model_type")) in table
    nested = reader.nested(name) if sized or known else None
    return _with_defaults(reader if nested is None else nested, name)


def _with_defaults(reader: ConfigReader, name: str = "") -> ConfigReader:
    """Give `reader` the class defaults of its type, which its outer object may imply."""
    own = reader.text("model_type")
    if reader.outer is None:
        reader.class_defaults = flat_defaults(own)
    else:
        implied = inner_type(reader.outer.text("model_type"), name)
        reader.class_defaults = class_defaults(own or implied)
    return reader


def _note_parts(root: ConfigReader) -> None:
    """Note the networks beside decoder and encoders, such as those that make speech of text."""
    beside = [
        name
        for name, value in root.config.items()
        if name.endswith("_config")
        and name not in root.used
        and isinstance(value, Mapping)
        and "model_type" in value
    ]
    if beside:
        root.note(
            "parts_left_out",
            f"{', '.join(sorted(beside))}: not counted; no token of text is decoded with it",
        )


def _note_defaults(root: ConfigReader) -> None:
    if root.assumed:
        fields = ", ".join(f"{name} {value}" for name, value in sorted(root.assumed.items()))
        root.note("class_defaults", f"not in the file, so the default of its class: {fields}")


def import_file(path: Path | str) -> ModelSpec:
    """Return the ModelSpec of a config.json (any name) or of a directory holding one.

    A hf_quant_config.json beside it says how weights are stored where the config does not, and an
    index of safetensors how many bytes they take. Raises ConfigError, naming file and problem, for
    what is missing, malformed, too large or unusable.
    """
    path = Path(path)
    file = path / "config.json" if path.is_dir() else path
    config = load_json(file)
    if "quantization_config" not in config and (stored := stored_elsewhere(file)):
        config["quantization_config"] = stored
    name = file.stem if file.stem != "config" else file.resolve().parent.name
    try:
        return with_total(import_config(config, name, str(path)), indexed_bytes(file))
    except ConfigError as error:
        raise ConfigError(f"{path}: {error}") from error


def with_total(spec: ModelSpec, total: int | None) -> ModelSpec:
    """Return `spec` with the bytes its files hold by their index, where that is known [byte].

    Files may hold prediction layers and a copy of a tied head besides; what neither explains is
    kept apart and counts as weights, with a note.
    """
    if total is None:
        return spec
    beside = {0.0, spec.mtp_bytes()}
    if spec.tied_embeddings:
        head = spec.lm_head_params * get_format(spec.dtype).bytes
        beside |= {extra + head for extra in beside}
    counted = spec.weights_bytes() + spec.encoder_bytes
    unread = min((total - counted - extra for extra in beside), key=abs)
    if abs(unread) <= 1e-3 * total:
        return spec
    note = Note(
        "index_total",
        f"the index of safetensors says {total:,} bytes, the config {round(total - unread):,}:"
        f" the difference of {round(unread):+,} bytes counts as weights",
    )
    return replace(spec, unread_bytes=unread, notes=(*spec.notes, note))
