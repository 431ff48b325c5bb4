"""The dialects of quantization_config: one reader a method, each gives formats by role."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from planner.models.modules import RoleFormats, by_name, everywhere, overridden, strings
from planner.models.reader import ConfigError, ConfigReader
from planner.models.stored import bits_of, grouped_format, scale_and_offset
from planner.models.weight_only import WEIGHT_ONLY
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
    "W4A8_NVFP4_FP8": "nvfp4_w4a8",
    "NVFP4_SVDQUANT": "nvfp4",
    "W4A16_AWQ": "awq",
    "W4A8_AWQ": "awq",
    "INT8": "int8",
    "W8A8_SQ_PER_CHANNEL": "int8",
    "W8A16": "int8_weight",
}
"""Names of NVIDIA ModelOpt for a format."""


def _fp8(reader: ConfigReader, config: Config) -> RoleFormats:
    block = config.get("weight_block_size")
    return everywhere(reader, config, get_format("fp8_block" if block else "fp8"))


def _integers(name: str) -> Callable[[ConfigReader, Config], RoleFormats]:
    """Read AWQ, GPTQ and their kin: bits, group_size, and zero points stored either way.

    auto-round lists modules of other bits in `extra_config`, GPTQModel in `dynamic` (a name after
    "-:" is left as it is).
    """

    def read(reader: ConfigReader, config: Config) -> RoleFormats:
        fmt = _integer(config, config, name)
        formats = {} if fmt is None else everywhere(reader, config, fmt)
        named: dict[str, Format | None] = {}
        for field in ("extra_config", "dynamic"):
            entries = config.get(field)
            for module, own in entries.items() if isinstance(entries, Mapping) else ():
                if module.startswith("-:"):
                    named["re:" + module[2:]] = None
                elif isinstance(own, Mapping):
                    key = "re:" + module.removeprefix("+:") if field == "dynamic" else module
                    named[key] = _integer(own, config, name)
        return overridden(reader, formats, named) if named else formats

    return read


def _integer(own: Config, around: Config, name: str) -> Format | None:
    """Return the format of `own` bits, where it lacks fields those of `around`; None is 16 bits."""
    both = {**around, **own}
    bits = bits_of(both, "bits", "w_bit")
    if bits >= 16:
        return None
    group = both.get("group_size", both.get("q_group_size"))
    return grouped_format(bits, group, True, {"4/128": name})


def _exl(reader: ConfigReader, config: Config) -> RoleFormats:
    """EXL2 and EXL3: a fractional average of bits, scales included, and the head's own."""
    formats = everywhere(reader, config, custom_format(bits_of(config, "bits"), "fp16"))
    if config.get("head_bits") is not None:
        formats["head"] = custom_format(bits_of(config, "head_bits"), "fp16")
    return formats


def _mlx(reader: ConfigReader, config: Config) -> RoleFormats:
    """MLX quantises embedding and head too; entries named after modules differ from the rest."""
    fmt = _affine(config)
    formats = {**everywhere(reader, config, fmt), "head": fmt, "embedding": fmt}
    named = {
        module: _affine({**config, **own}) if isinstance(own, Mapping) else None
        for module, own in config.items()
        if "." in module and (isinstance(own, Mapping) or own is False)
    }
    return overridden(reader, formats, named) if named else formats


def _affine(config: Config) -> Format:
    return custom_format(bits_of(config, "bits") + scale_and_offset(config.get("group_size", 64)))


def _bare(reader: ConfigReader, config: Config) -> RoleFormats:
    """Bits without a method: taken as linears alone, which is the most they take."""
    bits = bits_of(config, "bits", "w_bit", "num_bits")
    fmt = grouped_format(bits, config.get("group_size", 128), True, {"4/128": "gptq"})
    reader.note(
        "assumed_quantization",
        f"quantization_config: no quant_method; read as {bits:g}-bit weights of linear layers with"
        " a scale per 128 values unless group_size says otherwise. Embedding and head are counted"
        " in the model's own type, which is the most they can be",
    )
    return everywhere(reader, config, fmt)


def _fixed(name: str) -> Callable[[ConfigReader, Config], RoleFormats]:
    return lambda reader, config: everywhere(reader, config, get_format(name))


def _mxfp4(reader: ConfigReader, config: Config) -> RoleFormats:
    """gpt-oss: the experts only."""
    del reader, config
    return {"experts": get_format("mxfp4")}


def _group_format(group: Config, outer: str) -> Format:
    """Return the format of one entry of config_groups."""
    weights = group.get("weights")
    if not isinstance(weights, Mapping):
        raise ConfigError("quantization_config.config_groups: a group without weights")
    bits, size = bits_of(weights, "num_bits"), weights.get("group_size")
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


def _compressed(reader: ConfigReader, config: Config) -> RoleFormats:
    """compressed-tensors: config_groups of targets; "Linear" is every linear layer.

    A 2:4 sparsity stores half the values and a bit a value that says which.
    """
    sparsity = config.get("sparsity_config")
    if isinstance(sparsity, Mapping) and not config.get("config_groups"):
        formats = everywhere(reader, {**sparsity, **config}, get_format("bf16"))
    else:
        formats = _targeted(reader, config)
    layouts = {str(config.get("format")), str((sparsity or {}).get("format"))}
    if layouts & {"sparse-24-bitmask", "sparse-24", "marlin-24"}:
        return {role: custom_format(fmt.bits / 2 + 1, fmt.compute) for role, fmt in formats.items()}
    if "sparse-bitmask" in layouts:
        reader.note(
            "assumed_quantization",
            "quantization_config.sparsity_config: zeros are left out of the file without a pattern;"
            " all values are counted, which is the most they can be",
        )
    return formats


def _targeted(reader: ConfigReader, config: Config) -> RoleFormats:
    groups = _groups(config)
    for fmt, group in groups:
        if "Linear" in (strings(group.get("targets")) or ["Linear"]):
            return everywhere(reader, config, fmt)
    trimmed = any("_trimmed" in group for _, group in groups)
    return by_name(reader, _targets(config), trimmed)


def _modelopt(reader: ConfigReader, config: Config) -> RoleFormats:
    """ModelOpt: one quant_algo, or MIXED_PRECISION with a format per module."""
    algorithm = str(config.get("quant_algo")).upper()
    layers = config.get("quantized_layers")
    if isinstance(layers, Mapping) and layers:
        named = _targets(config) | {
            name: get_format(_algorithm(entry, name))
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


def _algorithm(entry: Config, module: str) -> str:
    name = str(entry.get("quant_algo")).upper()
    if name not in _ALGORITHMS:
        raise ConfigError(
            f"quantization_config.quantized_layers.{module}.quant_algo: {name!r}; accepted: "
            + ", ".join(_ALGORITHMS)
        )
    return _ALGORITHMS[name]


def _quark(reader: ConfigReader, config: Config) -> RoleFormats:
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


METHODS: dict[str, Callable[[ConfigReader, Config], RoleFormats]] = {
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
    "mlx": _mlx,
    "": _bare,
    "bitnet": _fixed("ternary"),
    "mxfp4": _mxfp4,
    "compressed-tensors": _compressed,
    "modelopt": _modelopt,
    "quark": _quark,
    **WEIGHT_ONLY,
}
