"""llama.cpp's mixes: which block format each matrix of a file called Q4_K_M, say, is stored in.

The rules are those of ``llama_tensor_get_type`` (llama.cpp, src/llama-quant.cpp, 2025) without an
importance matrix: the value projection, the down projection and the head get more bits, some of
them in a part of the layers; a matrix whose rows are no multiple of 256 takes a format of 32-value
blocks instead.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from planner.models.attention import Attention
from planner.models.parts import LayerGroup, Part
from planner.precision import Format, get_format


@dataclass(frozen=True, slots=True)
class Mix:
    """Formats of a mix; a pair is (format in some layers, which layers)."""

    base: str
    value: str | None = None
    down: str | None = None
    out: str | None = None
    where: str = "all"
    """Layers in which value and down projections differ: all, more (about half), eighth."""
    grouped_value: str | None = None
    """Value projection where four or more heads share it."""
    head: str = "q6_k"


MIXES: Mapping[str, Mix] = {
    "q2_k": Mix("q2_k", value="q3_k", grouped_value="q4_k", down="q3_k", out="q3_k"),
    "q3_k_s": Mix("q3_k"),
    "q3_k_m": Mix("q3_k", value="q4_k", down="q4_k", out="q4_k"),
    "q3_k_l": Mix("q3_k", value="q5_k", down="q5_k", out="q5_k"),
    "q4_0": Mix("q4_0"),
    "q4_1": Mix("q4_1"),
    "q5_0": Mix("q5_0"),
    "q5_1": Mix("q5_1"),
    "q4_k_s": Mix("q4_k", value="q5_k", down="q5_k", where="eighth"),
    "q4_k_m": Mix("q4_k", value="q6_k", down="q6_k", where="more"),
    "q5_k_s": Mix("q5_k"),
    "q5_k_m": Mix("q5_k", value="q6_k", down="q6_k", where="more"),
    "q6_k": Mix("q6_k"),
    "iq4_xs": Mix("iq4_xs", down="q5_k", where="eighth", grouped_value="q5_k"),
    "iq4_nl": Mix("iq4_nl", down="q5_k", where="eighth", grouped_value="q5_k"),
}

_NARROW = {
    "q2_k": "iq4_nl",
    "q3_k": "iq4_nl",
    "iq4_xs": "iq4_nl",
    "q4_k": "q5_0",
    "q5_k": "q5_1",
    "q6_k": "q8_0",
}
"""Format of 32-value blocks that stands in where rows are no multiple of 256."""


def mix_formats(
    groups: Sequence[LayerGroup], hidden: int, tied_embeddings: bool, name: str
) -> dict[str, Format] | None:
    """Return the mean format of each role of a model in a mix; None for a name that is no mix.

    Bits are the mean over a role's matrices in all layers [bit]; `hidden` is the model's width [-].
    """
    mix = MIXES.get(name.lower())
    if mix is None:
        return None
    sums: dict[str, list[float]] = {}
    layers = sum(group.count for group in groups)
    for group in groups:
        for part in group.block.parts:
            for role, rows, values, kind in _matrices(part):
                bits = _bits(mix, kind, rows, layers, _sharing(part))
                total = sums.setdefault(role, [0.0, 0.0])
                total[0] += group.copies * values * bits
                total[1] += group.copies * values
    head = get_format(_fit(mix.head, hidden)).bits
    base = get_format(_fit(mix.base, hidden)).bits
    means = {role: _mean(bits / values) for role, (bits, values) in sums.items() if values}
    return means | {"head": _mean(head), "embedding": _mean(head if tied_embeddings else base)}


def _mean(bits: float) -> Format:
    return Format(f"{bits:.4g}bit", bits, "fp16", f"{bits:.4g} bits per value, a mix of blocks")


def _sharing(part: Part) -> float:
    return part.heads / part.kv_heads if isinstance(part, Attention) else 1.0


def _matrices(part: Part) -> Iterator[tuple[str, int, float, str]]:
    """Yield role, row length, values and kind (value, out, down or other) of a part's matrices."""
    value = part.kv_heads * part.value_dim if isinstance(part, Attention) and part.own_kv else 0
    for linear in part.linears():
        if not linear.stored or linear.role == "router":
            continue
        kind = "other"
        if linear.kernel.endswith("_down"):
            kind = "down"
        elif linear.kernel == "o_proj":
            kind = "out"
        elif linear.kernel == "qkv_proj" and linear.outputs == value and value:
            kind, value = "value", 0
        yield linear.role, linear.inputs, linear.inputs * linear.outputs, kind
    if routed := part.routed():
        down = routed.experts * routed.params / (routed.ups + 1)
        yield "experts", routed.inputs, down * routed.ups, "other"
        yield "experts", routed.width, down, "down"


def _bits(mix: Mix, kind: str, rows: int, layers: int, sharing: float) -> float:
    base = get_format(_fit(mix.base, rows)).bits
    special, where = None, "all"
    if kind == "value":
        grouped = mix.grouped_value if sharing >= 4 else None
        special, where = (grouped, "all") if grouped else (mix.value, mix.where)
    elif kind == "down":
        special, where = mix.down, mix.where
    elif kind == "out":
        special = mix.out
    if special is None:
        return base
    share = _share(where, layers)
    return share * get_format(_fit(special, rows)).bits + (1 - share) * base


def _share(where: str, layers: int) -> float:
    """Share of the layers a rule means: `more` is the first and last eighth and every third."""
    if where == "all":
        return 1.0
    eighth = layers // 8
    if where == "eighth":
        return eighth / layers
    more = sum(i < eighth or i >= 7 * layers // 8 or (i - eighth) % 3 == 2 for i in range(layers))
    return more / layers


def _fit(name: str, rows: int) -> str:
    return name if rows % 256 == 0 else _NARROW.get(name, name)
