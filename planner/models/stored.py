"""Stored bits per value of integers with scales, as configs state them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from planner.models.reader import ConfigError
from planner.precision import Format, custom_format, get_format

Config = Mapping[str, Any]


def grouped_format(bits: float, group: Any, zero: bool, names: Mapping[str, str]) -> Format:
    """Return an integer format of `bits` with a 16-bit scale per `group` values.

    `zero` adds a zero point of the same bits; `names` maps "bits/group" to the table's own.
    """
    size = group if isinstance(group, int) and group > 0 else 0
    if f"{bits:g}/{size}" in names:
        return get_format(names[f"{bits:g}/{size}"])
    return custom_format(bits + ((16 + (bits if zero else 0)) / size if size else 0))


def bits_of(config: Config, *names: str) -> float:
    """Return the first of `names` that holds bits per value [bit]; raises ConfigError."""
    for name in names:
        value = config.get(name)
        if isinstance(value, (int, float)) and not isinstance(value, bool) and 1 <= value <= 16:
            return float(value)
    raise ConfigError(f"quantization_config.{names[0]}: missing; bits per value, 1 to 16")


def scale_and_offset(group: Any) -> float:
    """Bits per value of a 16-bit scale and a 16-bit offset for every `group` values."""
    return 32 / group if isinstance(group, int) and group > 0 else 0.0
