"""ERNIE-4.5-VL: text and image tokens have experts of their own; text decodes through the first."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from planner.models.decoder import Importer, Moe, Traits, decoder_blocks, read_decoder, read_shape
from planner.models.reader import ConfigError, ConfigReader
from planner.models.spec import ModelSpec

_TRAITS = Traits(
    qkv_bias="use_bias",
    out_bias="use_bias",
    mlp_bias="use_bias",
    tied=True,
    moe=Moe(("moe_intermediate_size",), correction=True, shared_bias="use_bias"),
)


def read_ernie_vl(reader: ConfigReader) -> ModelSpec:
    """Read an ERNIE-4.5-VL's decoder; its experts for images count with the image encoder."""
    pairs = ("moe_intermediate_size", "moe_num_experts")
    chosen = {name: _text(reader, name) for name in pairs if reader.has(name)}
    view = ConfigReader({**reader.config, **chosen}, reader.path, reader.outer)
    view.class_defaults, view.used = reader.class_defaults, reader.used
    shape = read_shape(view)
    sparse = None
    if view.pattern(shape.layers, "mlp_layer_types") is None:
        sparse = [index >= _first(view) for index in range(shape.layers)]
    blocks = decoder_blocks(view, shape, _TRAITS, sparse)
    spec = read_decoder(view, shape, replace(_TRAITS, moe=None), blocks)
    reader.used.update({name: reader.config[name] for name in pairs if name in reader.config})
    return spec


def _text(reader: ConfigReader, name: str) -> Any:
    """Return the text's of a pair of sizes, for text and for images."""
    value = reader.raw(name)
    if isinstance(value, list):
        if not value:
            raise ConfigError(f"{reader.path}{name}: empty; accepted: a size for text, for images")
        return value[0]
    return value


def _first(reader: ConfigReader) -> int:
    start = reader.raw("moe_layer_start_index")
    if isinstance(start, list) and start:
        return reader.check_size("moe_layer_start_index", start[0], zero=True)
    return reader.size("moe_layer_start_index", default=1, zero=True)


MODEL_TYPES: dict[str, Importer] = {"ernie4_5_vl_moe_text": read_ernie_vl}
