"""Readers of llama.cpp's own benchmarks: llama-bench and llama-batched-bench."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from planner.benchmarks.results import Run, positive, whole
from planner.hw import get_accelerator
from planner.precision import UnknownFormat, get_format

Entry = Mapping[str, Any]

ENGINE = "llama.cpp"


def llama_bench(entry: Entry) -> Iterator[Run | str]:
    """Read one test of llama-bench: pure generation; prompts and mixed tests are left out."""
    generated, prompt = _count(entry, "n_gen"), _count(entry, "n_prompt")
    if not generated or prompt:
        yield "tests of prompts, alone or with generation, are left out"
        return
    if str(entry.get("n_gpu_layers", "99")) == "0" and _gpu(entry):
        yield "a test without layers on the GPU is left out"
        return
    depth = _count(entry, "n_depth")
    size, params = entry.get("model_size"), entry.get("model_n_params")
    stated = weight_format(str(entry.get("model_type") or ""))
    if stated and size and params:
        bits = 8 * positive(size, "model_size") / positive(params, "model_n_params")
        stated_bits = get_format(stated).bits if _is_format(stated) else bits
        if abs(bits / stated_bits - 1) > CONTRADICTION:
            yield f"weights named {stated} take {bits:.3g} bits a parameter: the size is believed"
            stated = ""
    known = {
        "gpu": _gpu(entry),
        "engine_version": str(entry.get("build_number") or entry.get("build_commit") or ""),
        "backend": str(entry.get("backends") or ""),
        "weight_format": stated,
        "weight_gb": f"{positive(size, 'model_size') / 1e9:.4g}" if size else "",
        "kv_dtype": _cache(entry),
        "flash_attention": "1" if str(entry.get("flash_attn")).lower() in {"1", "true"} else "0",
        "date": str(entry.get("test_time") or "")[:10],
    }
    yield _generation(1, depth, generated, positive(entry.get("avg_ts"), "avg_ts"), known)


CONTRADICTION = 0.25
"""Deviation of a file's bits a parameter from its format's beyond which the name is wrong [-]."""


def _is_format(name: str) -> bool:
    try:
        get_format(name)
    except UnknownFormat:
        return False
    return True


def batched_bench(entry: Entry) -> Iterator[Run | str]:
    """Read one line of llama-batched-bench: generation of `pl` sequences at once."""
    sequences = positive(entry.get("pl"), "pl")
    prompt, generated = _count(entry, "pp"), _count(entry, "tg")
    if not generated:
        yield "tests that generate nothing are left out"
        return
    speed = positive(entry.get("speed_tg"), "speed_tg")
    known = {"flash_attention": "0" if str(entry.get("flash_attn")) in {"0", "False"} else "1"}
    yield _generation(sequences, prompt, generated, speed, known)


def _generation(
    batch: float, before: int, generated: int, tokens_per_s: float, known: Mapping[str, str]
) -> Run:
    """Return the run that generates after `before` tokens, all sequences' tokens/s together."""
    inputs = {
        "engine": ENGINE,
        "tp": "1",
        "batch": whole(batch),
        "context": f"{before + generated / 2:g}",
        "isl": str(before),
        "osl": str(generated),
        "metric": "decode_tokens_per_s",
    }
    return Run("decode", inputs | dict(known), {"value": tokens_per_s})


def _count(entry: Entry, name: str) -> int:
    value = entry.get(name) or 0
    return 0 if str(value) == "0" else round(positive(value, name))


def _gpu(entry: Entry) -> str:
    """Return the id of the GPU a test names, or nothing where it is not in the catalogue."""
    name = str(entry.get("gpu_info") or "").split(",")[0].split("(")[0].strip()
    try:
        return get_accelerator(name, allow_files=False).id if name else ""
    except ValueError:
        return ""


def _cache(entry: Entry) -> str:
    """Return the cache's format where keys and values have the same."""
    keys, values = (str(entry.get(f"type_{which}") or "") for which in "kv")
    return keys if keys == values else ""


_TYPE = re.compile(r"\b(I?Q\d_(?:\d|K|NL|XXS|XS|S|M)|MXFP4|BF16|F16|F32)\b(?: - (\w+))?")
_SIZES = {"Small": "_s", "Medium": "_m", "Large": "_l"}


def weight_format(model_type: str) -> str:
    """Return the format in a name such as "llama 8B Q4_K - Medium", blank where none is known."""
    match = _TYPE.search(model_type)
    if not match:
        return ""
    name = match[1].lower() + _SIZES.get(match[2] or "", "")
    try:
        return get_format({"f16": "fp16", "f32": "fp32"}.get(name, name)).id
    except UnknownFormat:
        return match[1].lower()
