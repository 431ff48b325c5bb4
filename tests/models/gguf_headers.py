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


def llama_tensors() -> Tensors:
    """Llama-3-8B as llama.cpp's Q4_K_M stores it: more bits for v and down in half the layers."""
    tensors: Tensors = [
        ("token_embd.weight", (128256, 4096), Q4_K),
        ("output_norm.weight", (4096,), F32),
        ("output.weight", (128256, 4096), Q6_K),
        ("rope_freqs.weight", (64,), F32),
    ]
    for layer in range(32):
        more = Q6_K if layer % 2 else Q4_K
        block = f"blk.{layer}"
        tensors += attention(block, 4096, 4096, 1024, Q4_K, more)
        tensors += [(f"{block}.ffn_norm.weight", (4096,), F32)]
        tensors += mlp(block, 4096, 14336, Q4_K, down=more)
    return tensors


LLAMA_KEYS = {
    "block_count": 32,
    "context_length": 8192,
    "embedding_length": 4096,
    "feed_forward_length": 14336,
    "attention.head_count": 32,
    "attention.head_count_kv": 8,
    "vocab_size": 128256,
    "rope.dimension_count": 128,
}


def sizes(layers: int, hidden: int, width: Any, heads: int, kv_heads: Any, **more: Any) -> Any:
    return {
        "block_count": layers,
        "context_length": 131072,
        "embedding_length": hidden,
        "feed_forward_length": width,
        "attention.head_count": heads,
        "attention.head_count_kv": kv_heads,
        **more,
    }


def ssm(kernel: int, inner: int, state: int, rank: int, groups: int | None = None) -> Any:
    keys = {
        "ssm.conv_kernel": kernel,
        "ssm.inner_size": inner,
        "ssm.state_size": state,
        "ssm.time_step_rank": rank,
    }
    return keys if groups is None else {**keys, "ssm.group_count": groups}
