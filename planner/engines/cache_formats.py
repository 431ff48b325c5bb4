"""Cache formats as engines' command lines name them."""

from __future__ import annotations

import re

from planner.models.spec import ModelSpec
from planner.precision import UnknownFormat, get_format

_PER_HEAD = re.compile(r"(?:int|fp)(\d)_per_token_head$")
_SCALE_BITS = 32
"""An fp32 scale for each head and token [bit]."""
_WIDTH = 128
"""Width of a head where no part states one (assumption) [-]."""


def cache_format(spec: ModelSpec, name: str) -> str:
    """Return a cache format by the name the table of formats has for it.

    `int8_per_token_head` has a scale for each head and token; a pair is that of keys and values
    ("q8_0/fp16"). Raises UnknownFormat.
    """
    if per_head := _PER_HEAD.match(name.strip().lower()):
        widths = [p.cached_head_width or 0 for g in spec.groups for p in g.block.mixers]
        return f"{int(per_head[1]) + _SCALE_BITS / (max(widths, default=0) or _WIDTH):g}bit"
    keys, slash, values = name.partition("/")
    if not slash:
        return get_format(name, "kv").id
    try:
        bits = (get_format(keys, "kv").bits + get_format(values, "kv").bits) / 2
    except UnknownFormat as error:
        raise UnknownFormat(f"{error}, or a pair of keys/values") from None
    return f"{bits:g}bit"
