"""The catalogue of published models: an index of ids, one data file a family."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from planner.errors import InvalidInput
from planner.models.encoders import encoder_note
from planner.models.huggingface import import_config, import_file
from planner.models.reader import ConfigError
from planner.models.spec import ModelSpec, Note

_DATA = Path(__file__).parent / "data"
NEAREST = 3
"""Ids that the refusal of an unknown one names [-]."""

_UNCHECKED = (
    "the fields of this model were recalled from memory and nobody has checked them against a"
    " published copy"
)


class UnknownModel(InvalidInput):
    """A model that is neither in the catalogue nor a file."""


@cache
def _index() -> dict[str, Any]:
    index: dict[str, Any] = json.loads((_DATA / "index.json").read_text(encoding="utf-8"))
    return index


@cache
def _entries(family: str) -> dict[str, dict[str, Any]]:
    entries = json.loads((_DATA / f"{family}.json").read_text(encoding="utf-8"))
    return {entry["id"]: entry for entry in entries["models"]}


@cache
def _names() -> dict[str, tuple[str, ...]]:
    """Return, in lower case, what each id, alias and name without organisation may mean."""
    names: dict[str, tuple[str, ...]] = {}
    for model_id in (*_index()["models"], *_index()["aliases"]):
        names[model_id.lower()] = (model_id,)
    for model_id in (*_index()["models"], *_index()["aliases"]):
        short = model_id.rpartition("/")[2].lower()
        if short not in names or "/" not in names[short][0] or short != names[short][0].lower():
            names[short] = (*names.get(short, ()), model_id)
    return names


def edition() -> str:
    """Return the edition of the catalogue, a date."""
    return str(_index()["edition"])


def get_model(name: str | Mapping[str, Any], *, local: bool = True) -> ModelSpec:
    """Return a model by catalogue id, by path, or from an inline config.json object.

    An id matches in any case, and without its organisation where that is unique. A path ends in
    .json or .gguf, or is a directory with a config.json; `local=False` refuses paths, for callers
    that are not on this machine. Raises UnknownModel or ConfigError, each one line; of an object
    the fields are told as they stand in a scenario (`model.hidden_size`).
    """
    if isinstance(name, Mapping):
        return _inline(name)
    if not isinstance(name, str) or not name.strip():
        raise UnknownModel("model: expected a catalogue id, a path or a config object")
    name = name.strip()
    known = catalogued(name)
    if known is not None:
        return known
    matches = _names().get(name.lower(), ())
    if matches:
        raise UnknownModel(f"model: {name!r} is ambiguous; accepted: {', '.join(matches)}")
    if local and (name.lower().endswith((".json", ".gguf")) or Path(name).is_dir()):
        return _import_path(name)
    nearest = ", ".join(_nearest(name))
    raise UnknownModel(f"model: unknown model {name!r}; nearest: {nearest}")


def catalogued(name: str) -> ModelSpec | None:
    """Return the model of a catalogue id in any case; None where there is none, or several."""
    matches = _names().get(name.lower(), ())
    networks = {_index()["aliases"].get(match, match) for match in matches}
    return _catalogued(matches[0]) if len(networks) == 1 else None


def _inline(config: Mapping[str, Any]) -> ModelSpec:
    try:
        return import_config(config, str(config.get("_name_or_path") or "inline"), "inline config")
    except ConfigError as error:
        raise ConfigError(f"model.{error}") from error


def _import_path(name: str) -> ModelSpec:
    if name.lower().endswith(".gguf"):
        from planner.models.gguf import import_gguf

        return import_gguf(name)
    return import_file(name)


@cache
def _catalogued(model_id: str) -> ModelSpec:
    """Return the spec of an id or alias as the index spells it."""
    alias_of = _index()["aliases"].get(model_id)
    known = alias_of or model_id
    entry = _entries(_index()["models"][known])[known]
    source = entry["source"]
    if alias_of:
        source = f"same network as {known}: {source}"
    spec = import_config(entry["config"], model_id, source, entry["family"])
    notes = tuple(Note("catalogue", text) for text in entry.get("notes", ()))
    if entry.get("unchecked"):
        notes = (Note("unchecked_source", _UNCHECKED), *notes)
    if "vision_params" in entry:
        vision = int(entry["vision_params"])
        notes = (encoder_note("vision", vision), *notes)
        spec = replace(spec, vision_params=vision)
    return replace(spec, notes=spec.notes + notes, unchecked=bool(entry.get("unchecked")))


def _nearest(name: str) -> list[str]:
    """Return the ids most like `name`, by id or by name without organisation."""
    lowered = name.lower()
    short = lowered.rpartition("/")[2]
    names = _names()
    from difflib import get_close_matches  # only a refusal needs it

    nearest: dict[str, None] = {}
    for cutoff in (0.6, 0.3, 0.0):  # the higher, the sooner most names are passed over
        close = get_close_matches(short, [n for n in names if "/" not in n], n=6, cutoff=cutoff)
        close += get_close_matches(lowered, list(names), n=50, cutoff=cutoff)
        nearest |= dict.fromkeys(model_id for match in close for model_id in names[match][:1])
        if len(nearest) >= NEAREST:
            break
    return list(nearest)[:NEAREST]


def list_models(
    family: str | None = None, kind: str | None = None, text: str | None = None
) -> list[ModelSpec]:
    """Return the models of the catalogue, by model_type, kind or words in the id or an alias."""
    words = (text or "").lower().split()
    specs = []
    for model_id in _index()["models"]:
        names = " ".join((model_id, *aliases(model_id))).lower()
        if not all(word in names for word in words):
            continue
        spec = _catalogued(model_id)
        if family in (None, spec.model_type) and kind in (None, spec.kind):
            specs.append(spec)
    return specs


def aliases(model_id: str) -> list[str]:
    """Return the other ids of the same network, shapes and format."""
    known = _index()["aliases"].get(model_id, model_id)
    same = [known, *(alias for alias, of in _index()["aliases"].items() if of == known)]
    return [name for name in same if name != model_id] if known in _index()["models"] else []


def describe(spec: ModelSpec) -> dict[str, Any]:
    """Return the facts of a model as plain values: parameters, bytes per token, notes.

    `kv_bytes_per_token` is at 16 bits, `state_bytes_per_sequence` in the format a plan keeps states
    in, `weights_bytes` as stored and without encoders.
    """
    return {
        "id": spec.id,
        "model_type": spec.model_type,
        "kind": spec.kind,
        "total_params": spec.total_params,
        "active_params": spec.active_params,
        "embedding_params": spec.embedding_params,
        "mtp_params": spec.mtp_params,
        "params_range": spec.params_range,
        "vision_params": spec.vision_params,
        "audio_params": spec.audio_params,
        "encoder_range": spec.encoder_range,
        "kv_bytes_per_token": _whole(2 * spec.kv_elements_per_token),
        "window_bytes_when_full": _whole(2 * spec.window_elements),
        "state_bytes_per_sequence": _whole(spec.formats().state.bytes * spec.state_elements),
        "state_format": spec.formats().state.id,
        "weights_bytes": round(spec.weights_bytes()),
        "layers": spec.layers,
        "quantization": spec.quantization.id,
        "kv_format": spec.formats().kv.id,
        "max_context": spec.max_context,
        "source": spec.source,
        "checked": not spec.unchecked,
        "aliases": aliases(spec.id),
        "notes": [{"code": note.code, "text": note.text} for note in spec.notes],
    }


def _whole(value: float) -> int | float:
    return int(value) if float(value).is_integer() else value
