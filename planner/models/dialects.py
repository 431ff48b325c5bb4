"""The dialects of quantization_config: one reader a method, each gives formats by role."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from planner.models.modules import RoleFormats, by_name, everywhere, strings
from planner.models.reader import ConfigError, Reader
from planner.precision import Format, custom_format, get_format

Config = Mapping[str, Any]

_ALGORITHMS = {
    "FP8": "fp8",
    "FP8_PB_WO": "fp8_block",
    "FP8_PER_CHANNEL_PER_TOKEN": "fp8",
    "NVFP4": "nvfp4",
    "W4A16_NVFP4": "nvfp4_weight",
    "NVFP4_AWQ": "nvfp4",
    "MXFP4": "mxfp4",
    "MXFP8": "mxfp8",
    "W4A8_MXFP4_FP8": "mxfp4",
    "W4A16_AWQ": "awq",
    "W4A8_AWQ": "awq",
    "INT8": "int8",
    "W8A8_SQ_PER_CHANNEL": "int8",
    "W8A16": "int8_weight",
}
"""Names of NVIDIA ModelOpt for a format."""


def grouped_format(bits: float, group: Any, zero: bool, names: Mapping[str, str]) -> Format:
    """Return an integer format of `bits` with a 16-bit scale per `group` values.

    `zero` adds a zero point of the same bits; `names` maps "bits/group" to the table's own.
    """
    size = group if isinstance(group, int) and group > 0 else 0
    if f"{bits:g}/{size}" in names:
        return get_format(names[f"{bits:g}/{size}"])
    return custom_format(bits + ((16 + (bits if zero else 0)) / size if size else 0))


def _bits(config: Config, *names: str) -> float:
    for name in names:
        value = config.get(name)
        if isinstance(value, (int, float)) and not isinstance(value, bool) and 1 <= value <= 16:
            return float(value)
    raise ConfigError(f"quantization_config.{names[0]}: missing; bits per value, 1 to 16")


def _fp8(reader: Reader, config: Config) -> RoleFormats:
    block = config.get("weight_block_size")
    return everywhere(reader, config, get_format("fp8_block" if block else "fp8"))


def _integers(name: str) -> Callable[[Reader, Config], RoleFormats]:
    """Read AWQ, GPTQ and their kin: bits, group_size, and zero points stored either way."""

    def read(reader: Reader, config: Config) -> RoleFormats:
        bits = _bits(config, "bits", "w_bit")
        fmt = grouped_format(
            bits, config.get("group_size", config.get("q_group_size")), True, {"4/128": name}
        )
        return everywhere(reader, config, fmt)

    return read


def _exl(reader: Reader, config: Config) -> RoleFormats:
    """EXL2 and EXL3: a fractional average of bits, scales included, and the head's own."""
    formats = everywhere(reader, config, custom_format(_bits(config, "bits"), "fp16"))
    if config.get("head_bits") is not None:
        formats["head"] = custom_format(_bits(config, "head_bits"), "fp16")
    return formats


def _hqq(reader: Reader, config: Config) -> RoleFormats:
    inner = config.get("quant_config")
    weights = inner.get("weight_quant_params") if isinstance(inner, Mapping) else None
    if not isinstance(weights, Mapping):
        raise ConfigError("quantization_config.quant_config.weight_quant_params: missing")
    fmt = custom_format(_bits(weights, "nbits") + _pair(weights.get("group_size")))
    return everywhere(reader, config, fmt)


def _pair(group: Any) -> float:
    """Bits per value of a 16-bit scale and a 16-bit offset for every `group` values."""
    return 32 / group if isinstance(group, int) and group > 0 else 0.0


def _mlx(reader: Reader, config: Config) -> RoleFormats:
    """MLX quantises embedding and head too."""
    fmt = custom_format(_bits(config, "bits") + _pair(config.get("group_size", 64)))
    return {**everywhere(reader, config, fmt), "head": fmt, "embedding": fmt}


def _bitsandbytes(reader: Reader, config: Config) -> RoleFormats:
    """NF4 keeps an fp32 scale per 64 values, in 8 bits when they are quantised again."""
    if config.get("load_in_8bit"):
        return everywhere(reader, config, custom_format(8))
    scale = 8 / 64 if config.get("bnb_4bit_use_double_quant") else 32 / 64
    return everywhere(reader, config, custom_format(4 + scale))


def _fixed(name: str) -> Callable[[Reader, Config], RoleFormats]:
    return lambda reader, config: everywhere(reader, config, get_format(name))


def _mxfp4(reader: Reader, config: Config) -> RoleFormats:
    """gpt-oss: the experts only."""
    del reader, config
    return {"experts": get_format("mxfp4")}


def _group_format(group: Config, outer: str) -> Format:
    """Return the format of one entry of config_groups."""
    weights = group.get("weights")
    if not isinstance(weights, Mapping):
        raise ConfigError("quantization_config.config_groups: a group without weights")
    bits, size = _bits(weights, "num_bits"), weights.get("group_size")
    active = isinstance(group.get("input_activations"), Mapping)
    layout = str(group.get("format") or outer)
    if weights.get("type") == "float":
        if bits == 8:
            block = weights.get("strategy") == "block"
            mx = layout.startswith("mx")
            name = "mxfp8" if mx else "fp8_block" if block else "fp8" if active else "fp8_weight"
        else:
            nv = size == 16 and not layout.startswith("mx")
            names = ("nvfp4", "nvfp4_weight") if nv else ("mxfp4_w4a4", "mxfp4")
            name = names[0] if active else names[1]
        return get_format(name)
    if bits == 8 and active:
        return get_format("int8")
    zero = weights.get("symmetric") is False
    named = {} if zero else {"4/128": "int4_g128", "4/32": "int4", "8/128": "int8_weight"}
    return grouped_format(bits, size, zero, named)


def _groups(config: Config) -> list[tuple[Format, Config]]:
    """Return config_groups with the format of each."""
    groups = config.get("config_groups")
    if not isinstance(groups, Mapping) or not groups:
        raise ConfigError("quantization_config.config_groups: missing or empty")
    if not all(isinstance(group, Mapping) for group in groups.values()):
        raise ConfigError("quantization_config.config_groups: expected objects")
    outer = str(config.get("format", ""))
    return [(_group_format(group, outer), group) for group in groups.values()]


def _targets(config: Config) -> dict[str, Format]:
    """Return the format of each module that config_groups names."""
    groups = _groups(config) if config.get("config_groups") else []
    return {name: fmt for fmt, group in groups for name in strings(group.get("targets"))}


def _compressed(reader: Reader, config: Config) -> RoleFormats:
    """compressed-tensors: config_groups of targets; "Linear" is every linear layer."""
    groups = _groups(config)
    for fmt, group in groups:
        if "Linear" in (strings(group.get("targets")) or ["Linear"]):
            return everywhere(reader, config, fmt)
    trimmed = any("_trimmed" in group for _, group in groups)
    return by_name(reader, _targets(config), trimmed)


def _modelopt(reader: Reader, config: Config) -> RoleFormats:
    """ModelOpt: one quant_algo, or MIXED_PRECISION with a format per module."""
    algorithm = str(config.get("quant_algo")).upper()
    layers = config.get("quantized_layers")
    if isinstance(layers, Mapping) and layers:
        named = _targets(config) | {
            name: get_format(_ALGORITHMS.get(str(entry.get("quant_algo")).upper(), "fp8"))
            for name, entry in layers.items()
            if isinstance(entry, Mapping)
        }
        cut = config.get("_trimmed")
        return by_name(reader, named, isinstance(cut, Mapping) and "quantized_layers" in cut)
    if algorithm in _ALGORITHMS:
        return everywhere(reader, config, get_format(_ALGORITHMS[algorithm]))
    if "config_groups" in config:
        return _compressed(reader, config)
    raise ConfigError(
        f"quantization_config.quant_algo: {algorithm!r}; accepted: " + ", ".join(_ALGORITHMS)
    )


def _quark(reader: Reader, config: Config) -> RoleFormats:
    """AMD Quark: the dtype of weights, and of inputs where they are as narrow."""
    dtype, inputs = (_quark_dtype(config, name) for name in ("weight", "input_tensors"))
    known = {"fp8_e4m3": "fp8", "fp4": "mxfp4", "int8": "int8", "int4": "int4_g128", "uint4": "awq"}
    if dtype not in known:
        raise ConfigError(
            f"quantization_config.global_quant_config.weight.dtype: {dtype!r};"
            f" accepted: {', '.join(known)}"
        )
    name = "mxfp4_w4a4" if dtype == inputs == "fp4" else known[dtype]
    return everywhere(reader, config, get_format(name))


def _quark_dtype(config: Config, name: str) -> str:
    whole = config.get("global_quant_config")
    tensors = whole.get(name) if isinstance(whole, Mapping) else None
    return str(tensors.get("dtype")) if isinstance(tensors, Mapping) else ""


METHODS: dict[str, Callable[[Reader, Config], RoleFormats]] = {
    "fp8": _fp8,
    "fbgemm_fp8": _fixed("fp8"),
    "awq": _integers("awq"),
    "gptq": _integers("gptq"),
    "gptq_marlin": _integers("gptq"),
    "awq_marlin": _integers("awq"),
    "intel/auto-round": _integers("gptq"),
    "auto-round": _integers("gptq"),
    "auto_round": _integers("gptq"),
    "exl2": _exl,
    "exl3": _exl,
    "hqq": _hqq,
    "mlx": _mlx,
    "bitsandbytes": _bitsandbytes,
    "bitnet": _fixed("ternary"),
    "mxfp4": _mxfp4,
    "compressed-tensors": _compressed,
    "modelopt": _modelopt,
    "quark": _quark,
}
