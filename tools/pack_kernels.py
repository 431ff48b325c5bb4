"""Pack tables of single-kernel times as the calibration keeps them.

`pack_kernels.py KERNELS_DIR MORE_DIR`: the first sample, and the second, which supersedes its
mixtures of experts and linear attention and adds prompts of latent attention and DeepEP.

Each time becomes the items it is made of, with the FLOPs and bytes that `planner` counts for them:
weights, caches and states move once, activations do not. Rows that say little about decoding are
left out (caches and matrices of a few KB, shapes no model has) and each set of one kernel, format,
engine and accelerator is thinned evenly.
"""

from __future__ import annotations

import csv
import gzip
import io
import math
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from planner.calibration.table import EDITION
from planner.fitting.committed import FITTING
from planner.fitting.kernel_rows import COLUMNS
from planner.hw import get_accelerator
from planner.precision import get_format
from planner.step.parallel import Collective

GPUS = {
    "a100_sxm": "a100-sxm4-80gb",
    "h100_sxm": "h100-sxm5",
    "h200_sxm": "h200-sxm",
    "b200_sxm": "b200-sxm",
}
FORMATS = {
    "bfloat16": "bf16",
    "half": "bf16",
    "int4_wo": "int4_g128",
    "int8_wo": "int8_weight",
    "sq": "int8",
    "w4a16_mxfp4": "mxfp4",
    "w4a8_mxfp4_mxfp8": "mxfp4",
}
PER_SET = 48
BLACKWELL = ("b200_sxm", "gb200")
"""Where engines run other kernels by default than those of Hopper (SGLang: FlashInfer's)."""

Line = dict[str, object]
Sample = tuple[tuple[str, ...], list[Line], float]
Make = Callable[[dict[str, str]], "list[Line] | None"]


def item(
    kind: str,
    name: str,
    flops: float,
    moved: float,
    launches: float,
    visits: float = 0.0,
    compute: str | None = None,
) -> Line:
    return {
        "kind": kind,
        "format": name,
        "compute": compute or get_format(name).compute,
        "flops": flops,
        "bytes": moved,
        "launches": launches,
        "visits": visits,
    }


def gemm(r: dict[str, str]) -> list[Line] | None:
    m, n, k = (int(r[c]) for c in "mnk")
    name = FORMATS.get(r["dtype"], r["dtype"])
    weights = n * k * get_format(name).bytes
    if min(n, k) < 512 or m > 8192 or max(n, k) > 32768 or weights < 2e6:
        return None
    l2 = get_accelerator(gpu(r)).l2_bytes or 0
    if r["gpu"] == "l40s" and weights < 2 * l2:
        return None
    return [item("gemm", name, 2.0 * m * n * k, weights, 1)]


def moe(r: dict[str, str]) -> list[Line] | None:
    tokens, hidden, inter, topk, experts, tp, ep = (
        int(r[c])
        for c in (
            "num_tokens",
            "hidden_size",
            "inter_size",
            "topk",
            "num_experts",
            "moe_tp_size",
            "moe_ep_size",
        )
    )
    if r["distribution"] != "balanced" or tp > 8 or ep > 16 or tokens > 16384:
        return None
    if r["gpu"] in BLACKWELL and (
        r["moe_dtype"] == "w4a16_mxfp4" or r["kernel_source"] == "sglang_fused_moe_triton"
    ):
        return None
    if r["kernel_source"].endswith(("situ_as_silu", "nongated")):
        return None
    name = FORMATS.get(r["moe_dtype"], r["moe_dtype"])
    pairs = tokens * topk / ep
    hit = min(experts / ep, pairs)
    if pairs < 1 or inter / tp < 128:
        return None
    each = 3.0 * hidden * inter / tp
    return [item("experts", name, 2 * pairs * each, hit * each * get_format(name).bytes, 2, hit)]


def attention_decode(r: dict[str, str]) -> list[Line] | None:
    batch, heads, kv, dim = (
        int(r[c]) for c in ("batch_size", "num_heads", "num_key_value_heads", "head_dim")
    )
    length = int(r["isl"]) + int(r["step"])
    window = float(r["window_size"] or 0)
    if length < 128 or batch > 1024 or heads / kv > 24:
        return None
    attended = min(length, window or math.inf)
    name = FORMATS.get(r["kv_cache_dtype"], r["kv_cache_dtype"])
    cache = 2.0 * batch * attended * kv * dim * get_format(name).bytes
    return [
        item("attention", name, 4.0 * batch * attended * heads * dim, cache, 1, batch * kv, "bf16")
    ]


def attention_prefill(r: dict[str, str]) -> list[Line] | None:
    batch, length, heads, kv, dim = (
        int(r[c]) for c in ("batch_size", "isl", "num_heads", "num_key_value_heads", "head_dim")
    )
    window = float(r["window_size"] or 0) or math.inf
    if length < 256 or batch > 16 or dim == 512:
        return None
    name = FORMATS.get(r["kv_cache_dtype"], r["kv_cache_dtype"])
    if r["engine"] == "sglang" and r["attn_dtype"] == "bfloat16" and name == "fp8":
        return None
    attended = min(length / 2, window)
    cache = 2.0 * batch * attended * kv * dim * get_format(name).bytes
    return [
        item(
            "attention prompt",
            name,
            4.0 * batch * length * attended * heads * dim,
            cache,
            1,
            batch * kv,
            "bf16",
        )
    ]


KV_RANK, ROPE, NOPE, VALUE, Q_RANK, HIDDEN = 512, 64, 128, 128, 1536, 7168


def mla_decode(r: dict[str, str]) -> list[Line] | None:
    batch, heads = int(r["batch_size"]), int(r["num_heads"])
    length = int(r["isl"]) + int(r["step"])
    if length < 128 or heads < 8 or r["gpu"] in ("l40s", "a100_sxm"):
        return None
    name = FORMATS.get(r["kv_cache_dtype"], r["kv_cache_dtype"])
    latent = KV_RANK + ROPE
    flops, cache = 2.0 * heads * (latent + KV_RANK), latent * get_format(name).bytes
    tokens = batch * length
    attention = item("latent", name, tokens * flops, tokens * cache, 1, batch, "bf16")
    if r["scope"] == "kernel":
        return [attention]
    weights = FORMATS.get(r["gemm_type"], r["gemm_type"])
    values = (
        HIDDEN * (Q_RANK + latent)
        + Q_RANK * heads * (NOPE + ROPE)
        + KV_RANK * heads * (NOPE + VALUE)
        + heads * VALUE * HIDDEN
    )
    moved = values * get_format(weights).bytes
    return [attention, item("gemm", weights, 2.0 * batch * values, moved, 4)]


def collective(r: dict[str, str]) -> list[Line] | None:
    if r["impl"].endswith("eager") or r["dtype"] == "int8":
        return None
    ranks, size = int(r["gpus"]), 2.0 * int(r["message_elements"])
    if size < 4096 or size > 256e6 or (r["impl"] == "NCCL" and r["op"] == "all_reduce"):
        return None
    op = {"alltoall": "all_to_all"}.get(r["op"], r["op"])
    wire = float(Collective(op, 1, ranks, size).wire_bytes(1.0))
    return [
        {
            "kind": op,
            "format": "",
            "compute": "",
            "flops": 0.0,
            "bytes": wire,
            "launches": 1,
            "visits": math.log2(ranks),
        }
    ]


def mla_prefill(r: dict[str, str]) -> list[Line] | None:
    batch, length, heads = (int(r[c]) for c in ("batch_size", "isl", "num_heads"))
    if r["op"] != "mla_context" or length < 256 or batch > 16 or heads < 8 or int(r["step"] or 0):
        return None
    name = FORMATS.get(r["kv_cache_dtype"], r["kv_cache_dtype"])
    tokens = float(batch * length)
    flops = 2.0 * heads * (NOPE + ROPE + VALUE) * tokens * length / 2
    cache = tokens * (KV_RANK + ROPE) * get_format(name).bytes
    return [item("latent prompt", name, flops, cache, 1, batch, "bf16")]


def deepep(r: dict[str, str]) -> list[Line] | None:
    if r["op"] != "ll" or r["node_num"] != "1":
        return None
    ranks, tokens, hidden, topk = (
        8,
        *(int(r[c]) for c in ("num_token", "hidden_size", "num_topk")),
    )
    wire = tokens * min(topk, ranks) * hidden * (ranks - 1) / ranks * (1.0 + 2.0)
    return [
        {
            "kind": "all_to_all",
            "format": "",
            "compute": "",
            "flops": 0.0,
            "bytes": wire,
            "launches": 2,
            "visits": 2 * math.log2(ranks),
        }
    ]


FIRST = {
    "gemm": gemm,
    "attention_decode": attention_decode,
    "attention_prefill": attention_prefill,
    "mla_decode": mla_decode,
    "collectives": collective,
}
MORE = {"moe": moe, "mla_prefill": mla_prefill, "deepep": deepep}


def gpu(r: dict[str, str]) -> str:
    return GPUS.get(r["gpu"], r["gpu"])


def samples(source: Path, tables: Mapping[str, Make]) -> Iterator[Sample]:
    for table, make in tables.items():
        with (source / f"{table}.csv").open(encoding="utf-8", newline="") as file:
            for r in csv.DictReader(file):
                items = make(r)
                if items:
                    engine = "" if r["engine"] == "nccl" else r["engine"]
                    key = (
                        table,
                        *(str(i["format"]) for i in items),
                        gpu(r),
                        engine,
                        r["engine_version"],
                        str(items[0]["kind"]),
                    )
                    yield key, items, seconds(r)


def seconds(r: dict[str, str]) -> float:
    if "latency_ms" in r:
        return float(r["latency_ms"]) / 1e3
    return (float(r["dispatch_avg_t_us"]) + float(r["combine_avg_t_us"])) / 1e6


SHAPE = (
    "op",
    "phase",
    "batch_size",
    "seq_len",
    "d_conv",
    "num_k_heads",
    "head_k_dim",
    "num_v_heads",
    "head_v_dim",
)
PARTS = {"gdn": 2, "kda": 2}
"""Kernels that a mixer's core runs as, the convolution among them; Mamba-2 tables have no scan."""


def states(source: Path) -> Iterator[Sample]:
    """Recurrent mixers with their convolution: one mixer's work on its state, in both phases."""
    parts: dict[tuple[str, ...], dict[str, float]] = defaultdict(dict)
    with (source / "linear_attention.csv").open(encoding="utf-8", newline="") as file:
        for r in csv.DictReader(file):
            if r["op"] in PARTS and r["phase"] in ("context", "generation"):
                key = (gpu(r), r["engine"], r["engine_version"], *(r[c] for c in SHAPE))
                parts[key][r["kernel_source"]] = float(r["latency_ms"])
    for (accelerator, engine, version, op, phase, *shape), times in sorted(parts.items()):
        batch, length, taps, k_heads, k_dim, v_heads, v_dim = (int(n) for n in shape)
        prompt = phase == "context"
        if len(times) != PARTS[op] or (prompt and length < 256):
            continue
        tokens = batch * (length if prompt else 1)
        state = float(v_heads * k_dim * v_dim)
        channels = 2 * k_heads * k_dim + v_heads * v_dim
        flops = tokens * (7.0 * state + 2.0 * taps * channels)
        kind = "scan prompt" if prompt else "scan"
        line = item(kind, "fp32", flops, 2.0 * batch * state * 4, 1, compute="fp32")
        key = ("scan", "fp32", accelerator, engine, version, kind)
        yield key, [line], sum(times.values()) / 1e3


ENOUGH = PER_SET // 2
"""Samples of a version that supersede those of older ones [-]."""


def superseded(sets: Mapping[tuple[str, ...], list[Sample]]) -> list[tuple[str, ...]]:
    """Return the sets of mixtures of experts that a newer version of the engine makes old."""
    versions: dict[tuple[str, ...], list[tuple[bool, str, tuple[str, ...]]]] = defaultdict(list)
    for key, members in sets.items():
        *alike, version, _ = key
        if key[0] == "moe":
            versions[tuple(alike)].append((len(members) >= ENOUGH, version, key))
    return [key for each in versions.values() for _, _, key in sorted(each)[:-1]]


def main(first: Path, more: Path) -> None:
    sets: dict[tuple[str, ...], list[Sample]] = defaultdict(list)
    for sample in (*samples(first, FIRST), *samples(more, MORE), *states(more)):
        sets[sample[0]].append(sample)
    for older in superseded(sets):
        del sets[older]
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS, lineterminator="\n")
    writer.writeheader()
    number = 0
    for key in sorted(sets):
        rows = sorted(sets[key], key=lambda s: (s[1][0]["bytes"], s[1][0]["flops"], s[2]))
        spread = (
            rows
            if len(rows) <= PER_SET
            else [rows[round(i * (len(rows) - 1) / (PER_SET - 1))] for i in range(PER_SET)]
        )
        *_, accelerator, engine, version = key[:-1]
        for _, items, seconds in spread:
            number += 1
            for line in items:
                shown = {k: f"{v:.5g}" if isinstance(v, float) else v for k, v in line.items()}
                known = {"sample": number, "gpu": accelerator, "engine": engine}
                writer.writerow(known | shown | {"version": version, "seconds": f"{seconds:.5g}"})
    target = Path(str(FITTING.joinpath(f"kernels-{EDITION}.csv.gz")))
    target.write_bytes(gzip.compress(text.getvalue().encode(), mtime=0))
    print(f"{target.name}: {number} samples of {len(sets)} sets, {target.stat().st_size} bytes")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
