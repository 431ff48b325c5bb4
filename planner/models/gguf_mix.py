"""The quantisation of a .gguf file: the format of each role by the types of its tensors."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace

from planner.models.gguf_header import Header, Tensor
from planner.models.spec import Quantization
from planner.precision import Format, UnknownFormat, custom_format, get_format

BLOCK_NAME = re.compile(r"^blk\.(\d+)\.(.+?)(?:\.weight)?$")
"""Name of a tensor of a block: the block's index, and the tensor's short name."""
_ROLES: tuple[tuple[str, str], ...] = (
    (r"indexer\.", "indexer"),
    (r"ffn_(gate|up|down|gate_up)_exps(\.bias)?$", "experts"),
    (r"ffn_latent_(down|up)$|ffn_(gate|up|down)_shexp$", "shared_experts"),
    (r"ffn_gate_inp$", "router"),
    (r"ssm_(in|x|dt|out|f_a|f_b|g_a|g_b)$|shortconv\.(in|out)_proj$", "mixer"),
    (r"time_mix_(key|value|receptance|gate|output)$", "mixer"),
    (r"attn_(q|k|v|qkv|output|gate|q_a|q_b|kv_a_mqa|kv_b|k_b|v_b)$", "attention"),
    (r"ffn_(gate|up|down)$|channel_mix_(key|value|receptance)$", "mlp"),
    (r"ssm_(ba|alpha|beta)$|inp_gate$|proj$|laurel_[lr]$|time_mix_\w+[12]$", "other"),
)
_DELTA = ("qwen3next", "qwen35", "qwen35moe", "kimi-linear")
"""Architectures whose recurrent layers name their projections like attention's."""
_WHOLE = {
    "token_embd.weight": "embedding",
    "position_embd.weight": "embedding",
    "per_layer_token_embd.weight": "embedding",
    "output.weight": "head",
    "per_layer_model_proj.weight": "other",
    "altup_proj.weight": "other",
    "altup_unembd_proj.weight": "other",
}
_MOST = 0.95
"""Part of a role's parameters that names its format [-]."""


def read_mix(tensors: Iterable[Tensor], header: Header, architecture: str) -> Quantization:
    """Return the format of each role: its tensors' own if they agree, else their mean bits."""
    recurrent = {
        index
        for index, block in tensors_by_block(header).items()
        if architecture in _DELTA and any(name.startswith("ssm_") for name in block)
    }
    by_role: dict[str, Counter[str]] = {}
    sizes: dict[str, int] = {}
    for tensor in tensors:
        role = role_of(tensor, recurrent)
        by_role.setdefault(role, Counter())[tensor.type] += tensor.elements
        sizes[role] = sizes.get(role, 0) + tensor.bytes
    formats = {role: _format(types, sizes[role]) for role, types in by_role.items()}
    vectors = formats.pop("vector", None)
    return Quantization(_label(header, by_role), formats, vectors=vectors.id if vectors else None)


def role_of(tensor: Tensor, recurrent: Iterable[int] = ()) -> str:
    """Return the role of a tensor, or `vector` for what is no matrix.

    `recurrent` are the blocks whose attention-like names belong to a recurrent mixer.
    """
    if tensor.name in _WHOLE:
        return _WHOLE[tensor.name]
    match = BLOCK_NAME.match(tensor.name)
    if len(tensor.shape) < 2 or match is None:
        return "vector"
    role = next((role for pattern, role in _ROLES if re.match(pattern, match[2])), "vector")
    return "mixer" if role == "attention" and int(match[1]) in recurrent else role


def tensors_by_block(header: Header) -> dict[int, dict[str, Tensor]]:
    """Return the tensors of each block by their short names."""
    blocks: dict[int, dict[str, Tensor]] = {}
    for tensor in header.tensors.values():
        match = BLOCK_NAME.match(tensor.name)
        if match:
            blocks.setdefault(int(match[1]), {})[match[2]] = tensor
    return dict(sorted(blocks.items()))


def _format(types: Counter[str], size: int) -> Format:
    """Return the format of so many elements of each type, `size` bytes in all.

    A type of nearly all of them gives its name to the mean.
    """
    kind, elements = types.most_common(1)[0]
    main = _named(kind)
    bits = 8 * size / types.total()
    if main is None or elements < _MOST * types.total():
        return custom_format(bits, main.compute if main else "fp16")
    return main if len(types) == 1 else replace(main, bits=bits)


def _named(kind: str) -> Format | None:
    try:
        return get_format({"f32": "fp32"}.get(kind, kind))
    except UnknownFormat:
        return None


def _label(header: Header, by_role: Mapping[str, Counter[str]]) -> str:
    """Return the name of the mix: that of the file type, else the type of most matrices."""
    from gguf import LlamaFileType

    value = header.metadata.get("general.file_type")
    known = {int(kind): kind.name for kind in LlamaFileType}
    if isinstance(value, int) and value in known:
        return known[value].lower().removeprefix("mostly_").removeprefix("all_")
    totals: Counter[str] = Counter()
    for role, types in by_role.items():
        if role != "vector":
            totals.update(types)
    return totals.most_common(1)[0][0] if totals else "none"
