"""Methods that store weights narrow for one library: bitsandbytes, HQQ, torchao, quanto, AQLM…"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from planner.models.modules import RoleFormats, everywhere, overridden
from planner.models.reader import ConfigError, ConfigReader
from planner.models.stored import bits_of, scale_and_offset
from planner.precision import Format, custom_format, get_format

Config = Mapping[str, Any]

_OWN = "weights are counted in the model's own type, which is the most they can be"


def _bitsandbytes(reader: ConfigReader, config: Config) -> RoleFormats:
    """NF4 keeps an fp32 scale per 64 values, in 8 bits when they are quantised again."""
    if config.get("load_in_8bit"):
        return everywhere(reader, config, custom_format(8))
    if not config.get("load_in_4bit") and not config.get("bnb_4bit_quant_type"):
        reader.note(
            "assumed_quantization",
            f"quantization_config: neither load_in_4bit nor load_in_8bit is true; {_OWN}",
        )
        return {}
    scale = 8 / 64 if config.get("bnb_4bit_use_double_quant") else 32 / 64
    return everywhere(reader, config, custom_format(4 + scale))


def _hqq(reader: ConfigReader, config: Config) -> RoleFormats:
    """HQQ: one `weight_quant_params`, or one a kind of module."""
    inner = config.get("quant_config", config.get("dynamic_config"))
    if not isinstance(inner, Mapping):
        raise ConfigError("quantization_config.quant_config.weight_quant_params: missing")
    weights = inner.get("weight_quant_params")
    if isinstance(weights, Mapping):
        return everywhere(reader, config, _hqq_format(weights))
    named: dict[str, Format | None] = {
        module: _hqq_format(own["weight_quant_params"])
        for module, own in inner.items()
        if isinstance(own, Mapping) and isinstance(own.get("weight_quant_params"), Mapping)
    }
    if not named:
        raise ConfigError("quantization_config.quant_config.weight_quant_params: missing")
    return overridden(reader, {}, named)


def _hqq_format(weights: Config) -> Format:
    return custom_format(bits_of(weights, "nbits") + scale_and_offset(weights.get("group_size")))


_TORCHAO: tuple[tuple[str, float | str, float, int], ...] = (
    (r"int8dynamicactivationint4weight", 4, 16, 32),
    (r"int8dynamicactivationint8weight", "int8", 0, 0),
    (r"float8dynamicactivationint4weight", 4, 16, 128),
    (r"float8(dynamic|static)activationfloat8weight", "fp8", 0, 0),
    (r"int4weightonly", 4, 32, 128),
    (r"int8weightonly", 8, 0, 0),
    (r"float8weightonly", "fp8_weight", 0, 0),
    (r"nvfp4", "nvfp4", 0, 0),
    (r"mxfp4|mxdynamicactivationmxweight", "mxfp4_w4a4", 0, 0),
)
"""torchao's configs: what their names hold (letters and digits, in lower case); a format or bits a
value; bits of scale and zero point a group; the usual size of a group."""


def _torchao_format(name: object, group: int) -> Format | None:
    key = re.sub(r"[^a-z0-9]", "", str(name).lower())
    for pattern, stored, extra, usual in _TORCHAO:
        if re.search(pattern, key):
            if isinstance(stored, str):
                return get_format(stored)
            return custom_format(stored + (extra / (group or usual) if extra else 0))
    return None


def _torchao(reader: ConfigReader, config: Config) -> RoleFormats:
    """torchao: `quant_type` is a name, or an object that names its class and its fields."""
    stated = config.get("quant_type")
    entry = stated.get("default", stated) if isinstance(stated, Mapping) else stated
    name, fields = entry, config.get("quant_type_kwargs") or {}
    if isinstance(entry, Mapping):
        name, fields = entry.get("_type"), entry.get("_data") or {}
    group = fields.get("group_size") if isinstance(fields, Mapping) else None
    fmt = _torchao_format(name, group if isinstance(group, int) and group > 0 else 0)
    if fmt is None:
        reader.note(
            "unknown_quantization", f"quantization_config.quant_type: {name!r} is unknown; {_OWN}"
        )
        return {}
    formats = everywhere(reader, config, fmt)
    if config.get("include_input_output_embeddings"):
        formats |= {"embedding": fmt, "head": fmt}
    return formats


def _quanto(reader: ConfigReader, config: Config) -> RoleFormats:
    """quanto: four and two bits with a scale and a shift per 128 values, eight with one a row."""
    weights = str(config.get("weights")).lower()
    known = {
        "int2": custom_format(2 + 32 / 128),
        "int4": custom_format(4 + 32 / 128),
        "int8": custom_format(8),
        "float8": get_format("fp8_weight"),
    }
    if weights not in known:
        raise ConfigError(f"quantization_config.weights: {weights!r}; accepted: {', '.join(known)}")
    return everywhere(reader, config, known[weights])


def _aqlm(reader: ConfigReader, config: Config) -> RoleFormats:
    """AQLM: groups of values as codes into codebooks (Egiazarian et al., 2024)."""
    codes = _size(config, "num_codebooks") * _size(config, "nbits_per_codebook")
    group = _size(config, "in_group_size") * _size(config, "out_group_size")
    entries = _size(config, "num_codebooks") * 2 ** _size(config, "nbits_per_codebook")
    reader.note(
        "codebooks",
        f"quantization_config: each matrix also holds codebooks of {2 * entries * group:,} bytes,"
        " which are not counted: this is the least the weights take",
    )
    return everywhere(reader, config, custom_format(codes / group, "fp16"))


def _size(config: Config, name: str) -> int:
    value = config.get(name)
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= 64:
        raise ConfigError(f"quantization_config.{name}: {value!r}; accepted: 1 to 64")
    return value


def _fp_quant(reader: ConfigReader, config: Config) -> RoleFormats:
    """FP-Quant: MXFP4 or NVFP4 in weights and activations; it may keep 16-bit masters as well."""
    name = str(config.get("forward_dtype", "nvfp4")).lower()
    known = {"mxfp4": "mxfp4_w4a4", "nvfp4": "nvfp4"}
    if name not in known:
        raise ConfigError(f"quantization_config.forward_dtype: {name!r}; accepted: mxfp4, nvfp4")
    fmt = get_format(known[name])
    if config.get("store_master_weights"):
        fmt = custom_format(fmt.bits + 16, fmt.compute)
    return everywhere(reader, config, fmt)


def _higgs(reader: ConfigReader, config: Config) -> RoleFormats:
    """HIGGS: bits as stated and a 16-bit scale per group (Malinovskii et al., 2024)."""
    group = config.get("group_size", 256)
    scale = 16 / group if isinstance(group, int) and group > 0 else 0.0
    return everywhere(reader, config, custom_format(bits_of(config, "bits") + scale, "fp16"))


def _eight(reader: ConfigReader, config: Config) -> RoleFormats:
    return everywhere(reader, config, custom_format(8, "fp16"))


WEIGHT_ONLY: dict[str, Callable[[ConfigReader, Config], RoleFormats]] = {
    "bitsandbytes": _bitsandbytes,
    "hqq": _hqq,
    "torchao": _torchao,
    "quanto": _quanto,
    "aqlm": _aqlm,
    "fp_quant": _fp_quant,
    "higgs": _higgs,
    "eetq": _eight,
}
"""Readers by quant_method."""
