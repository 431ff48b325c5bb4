"""Image, video and audio encoders beside a decoder: their parameters, by formulas that are data.

Engines load them with the decoder, so they take memory that its cache does not get. A formula for
each type of encoder and for what joins it to each type of model stands in facts/encoders.json. Of
an encoder of another type the size is bounded from the fields it states.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from planner.models.decoder import HIDDEN
from planner.models.defaults import class_defaults, inner_type
from planner.models.formulas import MissingField, NoCount, evaluate, names
from planner.models.reader import ConfigError, ConfigReader
from planner.models.spec import Note

_FILE = Path(__file__).parent / "facts" / "encoders.json"
_ENCODER = re.compile(r"^(vision|visual|audio|image|video|speech|vit|vq)(_\w+)?_(config|tower)$")
_AUDIO = re.compile(r"audio|speech|asr|sound")
_FLAG = re.compile(r"^use_|_bias$|^vision_use_|^qkv_bias$|_use_layernorm$")
_LARGEST = 10**9
_ALIASES: Mapping[str, tuple[str, ...]] = {
    "hidden_size": (*HIDDEN, "vt_hidden_size"),
    "num_hidden_layers": ("vt_num_hidden_layers", "depth", "num_layers"),
    "depth": ("num_hidden_layers",),
    "intermediate_size": ("vt_intermediate_size",),
    "num_attention_heads": ("vt_num_attention_heads", "num_heads"),
    "num_heads": ("num_attention_heads",),
    "num_channels": ("in_channels", "in_chans"),
    "in_channels": ("in_chans", "num_channels"),
    "pos_emb_height": ("init_pos_emb_height",),
    "pos_emb_width": ("init_pos_emb_width",),
}
"""Other names of the fields that formulas name."""

WIDTH = (*HIDDEN, "embed_dim", "width", "hidden_dim", "vt_hidden_size")
DEPTH = (
    "vt_num_hidden_layers",
    "num_hidden_layers",
    "depth",
    "encoder_layers",
    "num_layers",
    "n_layers",
    "layers",
)
INNER = ("intermediate_size", "mlp_dim", "encoder_ffn_dim", "ffn_dim")


@dataclass(frozen=True, slots=True)
class Encoders:
    """Parameters beside the decoder, joins to it included [-]."""

    vision: int = 0
    audio: int = 0
    low: int = 0
    """At least so many of both: differs from their sum where a size is bounded, not known."""
    high: int = 0

    @property
    def range(self) -> tuple[int, int] | None:
        """Least and most of both, where they differ [-]."""
        return None if self.low == self.high else (self.low, self.high)

    def __add__(self, other: Encoders) -> Encoders:
        return Encoders(
            self.vision + other.vision,
            self.audio + other.audio,
            self.low + other.low,
            self.high + other.high,
        )


class _Fields(Mapping[str, Any]):
    """The fields of a config as the names of a formula; objects in it are fields with fields."""

    def __init__(self, reader: ConfigReader, more: Mapping[str, Any] | None = None) -> None:
        self._reader = reader
        self._more = more or {}

    def __getitem__(self, name: str) -> Any:
        if name in self._more:
            return self._more[name]
        if name.endswith("_config") and isinstance(self._reader.config.get(name), Mapping):
            return _Fields(_inside(self._reader, name))
        value = self._reader.raw(name, *_ALIASES.get(name, ()))
        if value is None and not self._reader.stated(name):
            raise KeyError(name)
        _check(self._reader.path, name, value)
        return value

    def __iter__(self) -> Iterator[str]:
        return iter(self._reader.config)

    def __len__(self) -> int:
        return len(self._reader.config)


def _check(path: str, name: str, value: Any) -> None:
    """Raise ConfigError unless `value` is a size, a flag, a text, or a short list of sizes."""
    if _FLAG.search(name):
        if value not in (0, 1, None):
            raise ConfigError(f"{path}{name}: {str(value)[:40]!r} is not true or false")
        return
    least = -4096 if name == "vision_feature_layer" else 0
    values = value if isinstance(value, list) else [value]
    if isinstance(value, Mapping):
        raise ConfigError(f"{path}{name}: {str(value)[:40]!r} is no size")
    for item in values[:4097]:
        if not isinstance(item, (int, float)) or isinstance(item, bool):
            continue
        whole = "ratio" in name or (math.isfinite(item) and item == int(item))
        if not whole or not least <= item <= _LARGEST:
            raise ConfigError(f"{path}{name}: {item!r} is no size; accepted: up to {_LARGEST}")
    if len(values) > 4096:
        raise ConfigError(f"{path}{name}: {len(values)} entries; accepted: up to 4096")


@cache
def _table() -> dict[str, Any]:
    table: dict[str, Any] = json.loads(_FILE.read_text(encoding="utf-8"))
    return table


def count_encoders(text: ConfigReader) -> Encoders:
    """Return the encoders of the config around `text`, the reader of the text decoder.

    Notes what is counted and what is not known. Raises ConfigError naming a field of no use.
    """
    holder = text.outer or text
    model_type = holder.text("model_type")
    if text.outer is not None:
        holder.class_defaults = class_defaults(model_type)
    joins = _table()["joins"].get(model_type)
    counted = Encoders()
    if joins is not None:
        for path, formula in joins.items():
            counted += _known(holder, text, path, formula)
    else:
        for name, value in holder.config.items():
            if _ENCODER.match(name) and value:
                if not isinstance(value, Mapping):
                    raise ConfigError(f"{holder.path}{name}: {str(value)[:40]!r} is no JSON object")
                counted += _unknown(holder, text, name)
    _note(holder, counted)
    return counted


def _known(holder: ConfigReader, text: ConfigReader, path: str, formula: str) -> Encoders:
    """Return the encoder under `path` (empty: none of its own) with what joins it to the model."""
    reader = holder
    for name in filter(None, path.split(".")):
        value = reader.config.get(name)
        if value is not None and not isinstance(value, Mapping):
            raise ConfigError(f"{reader.path}{name}: {str(value)[:40]!r} is no JSON object")
        if value is None:
            if not reader.stated(name) and text is not holder:
                reader.note(
                    "encoder_missing", f"{reader.path}{name} is missing: no encoder is counted"
                )
            return Encoders()
        reader = _inside(reader, name)
    more = {"text": _Fields(text), "outer": _Fields(holder)}
    tower, low, high = _tower(reader) if path else (0, 0, 0)
    try:
        join = _count(formula, holder, {**more, "tower": tower})
    except MissingField:
        return _joined(reader, text, path, (tower, low, high))
    return _as(path, tower + join, low + join, high + join)


def _count(formula: str, reader: ConfigReader, more: Mapping[str, Any]) -> int:
    """Return the value of a formula; raises ConfigError naming the field that spoils it."""
    fields = _Fields(reader, more)
    try:
        return evaluate(formula, fields)
    except NoCount as error:
        for name in names(formula):
            value: Any = reader.config
            for key in name.split("."):
                value = value.get(key) if isinstance(value, Mapping) else None
            if value is not None and not _is_size(name, value):
                raise ConfigError(
                    f"{reader.path}{name}: {str(value)[:40]!r} is no size of an encoder"
                ) from None
        where = reader.path.rstrip(".") or next(iter(more), "config")
        raise ConfigError(f"{where}: the sizes of its encoder do not fit: {error}") from None


def _is_size(name: str, value: Any) -> bool:
    """Return whether a value may stand in a formula: a flag, a size, sizes, kinds, or fields."""
    if name.endswith(("_config", "_types")):
        return bool(value)
    values = value if isinstance(value, list) else [value]
    return bool(values) and all(
        isinstance(item, (bool, int, float)) and item <= 10**7 for item in values
    )


def _as(path: str, params: int, low: int, high: int) -> Encoders:
    if _AUDIO.search(path):
        return Encoders(0, params, low, high)
    return Encoders(params, 0, low, high)


def _inside(reader: ConfigReader, name: str) -> ConfigReader:
    """Return a reader of an object in the config, with the defaults of its type."""
    inner = reader.nested(name)
    if inner is None:
        raise ConfigError(f"{reader.path}{name}: expected a JSON object")
    inner.class_defaults = class_defaults(_kind(inner, name))
    return inner


def _kind(reader: ConfigReader, name: str) -> str:
    """Return the type of the encoder config `name`: as stated, or as the class around it has it.

    Published files may leave it out, repeat the model's own type, or name a relative.
    """
    around = str(reader.outer.config.get("model_type") or "") if reader.outer else ""
    implied = inner_type(around, name)
    stated = reader.config.get("model_type")
    if isinstance(stated, str):
        reader.text("model_type")
        if stated in _table()["towers"] and not (implied and implied.startswith(around)):
            return stated
    return implied or (stated if isinstance(stated, str) else "")


def _tower(reader: ConfigReader) -> tuple[int, int, int]:
    """Return the parameters of an encoder, and at least and at most how many."""
    name = reader.path.rstrip(".").rpartition(".")[2]
    formula = _table()["towers"].get(_kind(reader, name))
    if formula is None:
        return _bounded(reader)
    try:
        params = _count(formula, reader, {})
    except MissingField:
        return _bounded(reader)
    return params, params, params


def _bounded(reader: ConfigReader) -> tuple[int, int, int]:
    """Return the size of a transformer of the stated width and depth, and bounds around it.

    At least attention and two MLP matrices without biases; at most a third one, and as many again
    for embeddings, patches and norms as a tenth of that and 20,000 positions.
    """
    if not (reader.has(*WIDTH) and reader.has(*DEPTH)):
        reader.note(
            "encoder_unsized",
            f"{reader.path.rstrip('.')} states no width and depth that are read, so its encoder is"
            " not counted: engines load more than the bytes of the decoder",
        )
        return 0, 0, 0
    width, depth = reader.size(*WIDTH), reader.size(*DEPTH)
    inner = reader.size(*INNER, default=int(width * reader.number("mlp_ratio", default=4)))
    low = depth * (4 * width * width + 2 * width * inner)
    high = depth * (4 * width * width + 3 * width * inner)
    return low, low, int(1.1 * high) + 20_000 * width


def _unknown(holder: ConfigReader, text: ConfigReader, name: str) -> Encoders:
    """Return an encoder beside a model type whose join to it is not known, between bounds."""
    reader = _inside(holder, name)
    sizes = _tower(reader)
    return _joined(reader, text, name, sizes) if sizes[0] else Encoders()


def _joined(
    reader: ConfigReader, text: ConfigReader, path: str, sizes: tuple[int, int, int]
) -> Encoders:
    """Return an encoder of `sizes` (about, at least, at most) with a join that is not known.

    At least none; at most 24 matrices from the encoder's width, or four of it, to the model's.
    """
    params, low, high = sizes
    width = reader.size(*WIDTH) if reader.has(*WIDTH) else 0
    model = text.size(*HIDDEN) if text.has(*HIDDEN) else width
    joined = 4 * width * (4 * width + model)
    most = 24 * width * max(4 * width, model)
    return _as(path, params + joined, low, high + most)


def encoder_note(what: str, params: int) -> Note:
    """Return what a reader must know of `params` of a vision or audio encoder."""
    return Note(
        f"{what}_encoder",
        f"{params:,} parameters of the {what} encoder and its projection are loaded beside the"
        " decoder; they are not in total_params and do no work in a decode step",
    )


def _note(holder: ConfigReader, counted: Encoders) -> None:
    for what, params in (("vision", counted.vision), ("audio", counted.audio)):
        if params:
            holder.notes.append(encoder_note(what, params))
    if counted.low != counted.high:
        holder.note(
            "encoder_bounds",
            f"not all of the encoder is known: between {counted.low:,} and {counted.high:,}"
            " parameters by the widths and depths that are stated",
        )
