"""Builders of GGUF headers: full-size models, written by gguf's own writer, without tensor data."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from gguf import GGML_QUANT_SIZES, GGMLQuantizationType, GGUFWriter

Q4_K, Q6_K, Q8_0 = (GGMLQuantizationType[name] for name in ("Q4_K", "Q6_K", "Q8_0"))
F32, BF16, MXFP4 = (GGMLQuantizationType[name] for name in ("F32", "BF16", "MXFP4"))
Q4_0 = GGMLQuantizationType.Q4_0

Tensors = list[tuple[str, tuple[int, ...], GGMLQuantizationType]]
"""Name, shape (outputs first) and type."""


def size(shape: Iterable[int], kind: GGMLQuantizationType) -> int:
    block, block_bytes = GGML_QUANT_SIZES[kind]
    return int(np.prod(tuple(shape), dtype=np.int64)) // block * block_bytes


def write(
    path: Path, architecture: str, keys: Mapping[str, Any], tensors: Tensors, **general: int
) -> Path:
    writer = GGUFWriter(path, architecture)
    for name, value in general.items():
        writer.add_uint32(name.replace("__", "."), value)
    for key, value in keys.items():
        name = f"{architecture}.{key}"
        if isinstance(value, list):
            writer.add_array(name, value)
        else:
            writer.add_uint32(name, value)
    writer.add_array("tokenizer.ggml.tokens", [f"t{number}" for number in range(5000)])
    for name, shape, kind in tensors:
        writer.add_tensor_info(name, shape, np.dtype(np.float32), size(shape, kind), kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_ti_data_to_file()
    writer.close()
    return path


def total_bytes(tensors: Tensors) -> int:
    return sum(size(shape, kind) for _, shape, kind in tensors)


def attention(
    block: str,
    hidden: int,
    q: int,
    kv: int,
    kind: GGMLQuantizationType,
    v_kind: GGMLQuantizationType | None = None,
) -> Tensors:
    return [
        (f"{block}.attn_norm.weight", (hidden,), F32),
        (f"{block}.attn_q.weight", (q, hidden), kind),
        (f"{block}.attn_k.weight", (kv, hidden), kind),
        (f"{block}.attn_v.weight", (kv, hidden), v_kind or kind),
        (f"{block}.attn_output.weight", (hidden, q), kind),
    ]


def mlp(
    block: str,
    hidden: int,
    width: int,
    kind: GGMLQuantizationType,
    suffix: str = "",
    down: GGMLQuantizationType | None = None,
) -> Tensors:
    return [
        (f"{block}.ffn_gate{suffix}.weight", (width, hidden), kind),
        (f"{block}.ffn_up{suffix}.weight", (width, hidden), kind),
        (f"{block}.ffn_down{suffix}.weight", (hidden, width), down or kind),
    ]


def experts(block: str, hidden: int, width: int, count: int, kind: GGMLQuantizationType) -> Tensors:
    return [
        (f"{block}.ffn_gate_inp.weight", (count, hidden), F32),
        (f"{block}.ffn_gate_exps.weight", (count, width, hidden), kind),
        (f"{block}.ffn_up_exps.weight", (count, width, hidden), kind),
        (f"{block}.ffn_down_exps.weight", (count, hidden, width), kind),
    ]
