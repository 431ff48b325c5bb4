"""Which layers attend to a sliding window, as each family's config says it."""

from __future__ import annotations

import math
from collections.abc import Callable

from planner.models.reader import ConfigError, ConfigReader

Windows = Callable[[ConfigReader, int], list[float]]
"""Reads the window of each of so many layers; infinity attends to everything [token]."""

_SLIDING = ("sliding", "local", "chunked", "window")


SIZES = ("sliding_window", "sliding_window_size", "window_size", "attention_window_size")
"""Names of a window's size."""
PERIODS = (
    "sliding_window_pattern",
    "_sliding_window_pattern",
    "layer_switch",
    "global_attn_every_n_layers",
)
"""Fields that say of how many layers one attends to everything."""


def slides(kind: object) -> bool:
    """Return whether a kind of layer, as `layer_types` names it, attends to a window."""
    return isinstance(kind, str) and any(word in kind for word in _SLIDING)


def full(reader: ConfigReader, layers: int) -> list[float]:
    """Every layer attends to everything."""
    del reader
    return [math.inf] * layers


def window_size(reader: ConfigReader, default: float = math.inf) -> float:
    """Return `sliding_window`: null or zero is none, missing is `default` [token]."""
    if not reader.has(*SIZES):
        return math.inf if any(reader.stated(name) for name in SIZES) else default
    return reader.size(*SIZES, zero=True) or math.inf


def uniform(default: float = math.inf) -> Windows:
    """Every layer has the window; `default` where the file lacks the key."""

    def read(reader: ConfigReader, layers: int) -> list[float]:
        return [window_size(reader, default)] * layers

    return read


def switched(reader: ConfigReader, layers: int) -> list[float]:
    """Qwen: a window counts only under `use_sliding_window`, from layer max_window_layers on."""
    if not reader.flag("use_sliding_window"):
        return [math.inf] * layers
    kinds = reader.pattern(layers, "layer_types")
    first = reader.size("max_window_layers", default=28, zero=True)
    sliding = [slides(kind) for kind in kinds] if kinds else [i >= first for i in range(layers)]
    window = window_size(reader, 4096)
    return [window if near else math.inf for near in sliding]


def patterned(period: int | None, window: float, first: bool = False) -> Windows:
    """Layers alternate: `layer_types` wins, then `sliding_window_pattern`, then `period`.

    Of every `period` layers the last is full, or the `first`; a pattern may be a text such as
    "LLLG".
    """

    def read(reader: ConfigReader, layers: int) -> list[float]:
        kinds = reader.pattern(layers, "layer_types")
        size = window_size(reader, window)
        if kinds:
            return [size if slides(kind) else math.inf for kind in kinds]
        stated = reader.raw(*PERIODS)
        pattern = period if stated is None else stated
        if isinstance(pattern, str) and pattern and set(pattern) <= set("LG"):
            sliding = [pattern[i % len(pattern)] == "L" for i in range(layers)]
        elif isinstance(pattern, int) and pattern >= 1:
            sliding = [(i if first else i + 1) % pattern != 0 for i in range(layers)]
        elif pattern is None:
            sliding = [False] * layers
        else:
            raise ConfigError(
                f"{reader.path}sliding_window_pattern: {pattern!r}; accepted: a period or L and G"
            )
        return [size if near else math.inf for near in sliding]

    return read
