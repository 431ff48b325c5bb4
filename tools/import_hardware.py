"""Build the dated hardware data files of `planner/hw/data` from a folder of research tables.

Usage: python tools/import_hardware.py SOURCE_FOLDER OUTPUT_FOLDER

SOURCE_FOLDER holds `hw/accelerators.csv`, `hw/interconnect.csv`, `hw/prices.csv` and
`measured/achieved.csv`. Figures are converted to SI (FLOP/s, bytes/s, bytes, s), sources are kept
once in a table, and remarks are replaced by those of `hardware_remarks.json` beside this script.
An edition is never edited: a correction is a new EDITION.
"""

from __future__ import annotations

import csv
import json
import re
import sys
from decimal import Decimal
from pathlib import Path
from typing import Any

EDITION = "2026-11-29"
GIB = 1 << 30
REMARKS = Path(__file__).with_name("hardware_remarks.json")
PEAKS = {"fp32_vector": "fp32"} | {
    f: f for f in ("tf32", "fp16", "bf16", "fp8", "int8", "fp6", "fp4", "int4")
}
DECIMAL_UNITS = ("GB as printed", "GB SRAM")
CPU_IDS = {"epyc-9654", "epyc-9755", "xeon-6980p", "xeon-6972p", "grace-cpu"}
EDGE_IDS = {"dgx-spark-gb10", "ryzen-ai-max-395"}
KIND_BY_VENDOR = {
    "Apple": "apple",
    "Google": "tpu",
    "AWS": "asic",
    "Huawei": "asic",
    "Groq": "asic",
    "Cerebras": "asic",
    "Tenstorrent": "asic",
}
ROOFLINE = "roofline text, elementwise add fp32 / 8192^3 fp16 GEMM"
# GB/s, TFLOP/s and ridge point of the roofline text's measured table. The ridge is kept as printed
# because it was worked out before the other two were rounded (24 / 0.247 is 97, not 99).
ROOFLINE_MEASURED = {
    "t4": (247, 24, 99),
    "l4": (233, 58, 247),
    "a10": (476, 76, 159),
    "l40s": (653, 191, 292),
    "a100-sxm4-80gb": (1803, 241, 134),
    "h100-sxm5": (3080, 776, 252),
    "h200-sxm": (4359, 780, 179),
}
METRICS = {  # printed metric -> (our metric, factor to SI)
    "matmul_tflops": ("matmul_flops_per_s", 1e12),
    "weight_read_bandwidth_gb_s_max": ("weight_read_bytes_per_s", 1e9),
    "attention_kv_read_bandwidth_gb_s_max": ("kv_read_max_bytes_per_s", 1e9),
    "attention_kv_read_bandwidth_gb_s_median": ("kv_read_median_bytes_per_s", 1e9),
    "end_to_end_decode_bandwidth_gb_s": ("decode_bytes_per_s", 1e9),
    "mla_kernel_bandwidth_gb_s": ("mla_kernel_bytes_per_s", 1e9),
    "mla_kernel_tflops": ("mla_kernel_flops_per_s", 1e12),
    "sparse_mla_kernel_tflops": ("sparse_mla_kernel_flops_per_s", 1e12),
    "device_copy_bandwidth_gb_s": ("device_copy_bytes_per_s", 1e9),
    "memory_write_bandwidth_gb_s": ("memory_write_bytes_per_s", 1e9),
}
METRIC_ORDER = [
    "stream_bytes_per_s",
    "ridge_flop_per_byte",
    *dict.fromkeys(m for m, _ in METRICS.values()),
]
SYSTEM_IDS = {
    "a100_sxm": "a100-sxm4-80gb",
    "h100_sxm": "h100-sxm5",
    "h200_sxm": "h200-sxm",
    "b200_sxm": "b200-sxm",
    "b300_sxm": "b300-sxm",
    "b60": "arc-pro-b60",
    "rtx_pro_6000_server": "rtx-pro-6000-server",
    "l40s": "l40s",
    "gb200": "gb200",
    "gb300": "gb300",
}


PRICED = {  # printed name -> the ids it may stand for
    "B200-180GB": ["b200-sxm"],
    "B300": ["b300-sxm"],
    "H100-SXM5-80GB": ["h100-sxm5"],
    "H100-PCIe-80GB": ["h100-pcie"],
    "H100-NVL-94GB": ["h100-nvl"],
    "H200-SXM-141GB": ["h200-sxm"],
    "H100-80GB": ["h100-sxm5", "h100-pcie"],
    "H100 (form factor mixed)": ["h100-sxm5", "h100-pcie", "h100-nvl"],
    "A100-80GB": ["a100-sxm4-80gb", "a100-pcie-80gb"],
    "A100-40GB": ["a100-sxm4-40gb", "a100-pcie-40gb"],
    "V100-16GB": ["v100-sxm2-16gb", "v100-pcie-16gb"],
    "TPU v4": ["tpu-v4"],
    "TPU v5e": ["tpu-v5e"],
    "TPU v6e": ["tpu-v6e"],
}
PRICE_KINDS = (  # the first word found in instance and notes decides
    ("spot", "spot"),
    ("serverless", "serverless"),
    ("managed endpoint", "managed"),
    ("cost assumption", "assumption"),
    ("author labels these estimates", "estimate"),
    ("not on demand", "reserved"),
    ("community", "community"),
    ("marketplace", "marketplace"),
    ("average of listings", "listing_average"),
)


class Sources:
    """Table of source strings; rows refer to them by index."""

    def __init__(self) -> None:
        self.table: list[str] = []

    def index(self, text: str) -> int:
        text = re.sub(r"repository index ids? ", "public source passage ", text.strip())
        text = text.replace("search excerpt, ", "excerpt, ").replace("search excerpt", "excerpt")
        text = re.sub(
            r"allreduce_summary.csv \(derived from (.*) measured tables\)", r"derived from \1", text
        )
        if text not in self.table:
            self.table.append(text)
        return self.table.index(text)


def read(folder: Path, name: str) -> list[dict[str, str]]:
    with (folder / name).open(newline="", encoding="utf-8") as handle:
        return list(csv.DictReader(handle))


def si(text: str, factor: float) -> int | float | None:
    """Exact decimal scaling, an integer where it is one; None for a blank."""
    if not text.strip():
        return None
    value = Decimal(text) * Decimal(factor)
    return int(value) if value == value.to_integral_value() else float(value)


def memory_bytes(row: dict[str, str]) -> int | None:
    """Bytes: binary unless the unit column says decimal (SRAM parts, B100, Grace)."""
    decimal = row["memory_unit"].startswith(DECIMAL_UNITS) or row["memory_unit"] == "GB"
    value = si(row["memory_gb"], 10**9 if decimal else GIB)
    return None if value is None else round(value)


def kind(row: dict[str, str]) -> str:
    if row["id"] in CPU_IDS:
        return "cpu"
    if row["id"].startswith("jetson") or row["id"] in EDGE_IDS:
        return "edge"
    if row["architecture"] == "Gaudi":
        return "asic"
    return KIND_BY_VENDOR.get(row["vendor"], "gpu")


def accumulate_remark(text: str) -> str | None:
    if text.startswith("fp32-acc"):
        formats = "fp16, bf16 and fp8" if "fp8:" in text else "fp16 and bf16"
        return f"{formats} peaks are with fp32 accumulation; fp16 accumulation doubles them"
    if text.startswith("GPU fp16 rate"):
        return "fp16 taken equal to fp32; some lists double it"
    return None


def accelerator(row: dict[str, str], sources: Sources, remarks: dict[str, Any]) -> dict[str, Any]:
    ident = row["id"]
    out: dict[str, Any] = {
        "id": ident,
        "name": row["name"],
        "vendor": row["vendor"],
        "architecture": row["architecture"],
        "kind": kind(row),
        "year": si(row["year"], 1),
        "memory_bytes": memory_bytes(row),
        "memory_type": row["memory_type"],
        "bandwidth_bytes_per_s": si(row["memory_bandwidth_gb_s"], 1e9),
        "peaks": {ours: si(row[c], 1e12) for c, ours in PEAKS.items() if row[c]},
        "l2_bytes": si(row["l2_cache_mb"], 1 << 20),
        "sm_count": si(row["sm_or_cu_count"], 1),
        "tdp_w": si(row["tdp_w"], 1),
        "form_factor": row["form_factor"],
        "link": [row["scale_up_link"], si(row["scale_up_gb_s_per_dir"], 1e9)],
        "domain_size": si(row["max_scale_up_domain"], 1),
        "pcie": row["pcie_gen"] or None,
        "status": row["status"].split(" ")[0],
        "confidence": row["confidence"],
        "cross_check": row["cross_check"],
        "sources": [sources.index(s) for s in row["sources"].split(" | ")],
    }
    notes = [*remarks["notes"].get(ident, ())]
    if extra := accumulate_remark(row["fp16_accumulate_note"]):
        notes.append(extra)
    if notes:
        out["notes"] = notes
    for key in ("runs_in", "unread", "pair_bytes_per_s"):
        if ident in remarks[key]:
            out[key] = remarks[key][ident]
    also = [
        [figure, value, sources.index(source)]
        for who, figure, value, source in remarks["also_published"]
        if who == ident
    ]
    if also:
        out["also_published"] = also
    return {key: value for key, value in out.items() if value is not None}


def measured_note(row: dict[str, str]) -> str:
    """Engine, version and shape of a measured row, without the arithmetic."""
    note = row["note"]
    note = re.sub(r" latency_ms=\S+| (gemm_perf|generation_attention):|;? derived.*$", "", note)
    note = re.sub(r"theory \S+ efficiency \S+ ", "", note).replace(" kernel=", " ")
    note = re.sub(r"median over (\d+) points.*", r"median of \1 points", note)
    note = re.sub(r"trt_flow_/|torch_flow|_L\d+/\S+", "", note)
    if row["gpu_inferred"] == "1":
        note += "; exact variant inferred"
    return re.sub(r"\s+", " ", note).strip(" ;,")


def measured(rows: list[dict[str, str]], sources: Sources) -> dict[str, list[list[Any]]]:
    """Measured figures by accelerator; of one metric and format the first listed is used."""
    out: dict[str, list[list[Any]]] = {}
    for ident, (gb_s, tflops, ridge) in ROOFLINE_MEASURED.items():
        note = "card printed as 80GB, form factor not stated" if "80gb" in ident else ""
        source = sources.index(ROOFLINE)
        out[ident] = [
            ["stream_bytes_per_s", "fp32", int(gb_s * 10**9), source, note],
            ["matmul_flops_per_s", "fp16", int(tflops * 10**12), source, note],
            ["ridge_flop_per_byte", "fp16", ridge, source, note],
        ]
    found: dict[str, list[list[Any]]] = {}
    for row in rows:
        if row["metric"] not in METRICS:
            continue
        metric, factor = METRICS[row["metric"]]
        entry = [metric, row["dtype"], si(row["value"], factor), sources.index(row["source"])]
        found.setdefault(row["gpu"], []).append([*entry, measured_note(row)])
    for ident, entries in found.items():
        # Search for the best shape (MAMF) first, then the highest value.
        entries.sort(key=lambda e: ("MAMF" not in sources.table[e[3]], -e[2]))
        out.setdefault(ident, []).extend(entries)
    for entries in out.values():
        entries.sort(key=lambda e: METRIC_ORDER.index(e[0]))
    return out


def main(source: Path, target: Path) -> None:
    remarks = json.loads(REMARKS.read_text(encoding="utf-8"))
    build_accelerators(source, target, remarks)
    build_links(source, target)
    build_prices(source, target)


def build_accelerators(source: Path, target: Path, remarks: dict[str, Any]) -> None:
    sources = Sources()
    rows = [accelerator(r, sources, remarks) for r in read(source, "hw/accelerators.csv")]
    by_gpu = measured(read(source, "measured/achieved.csv"), sources)
    for row in rows:
        if row["id"] in by_gpu:
            row["measured"] = by_gpu[row["id"]]
    tables = {"accelerators": rows, "aliases": remarks["aliases"], "sources": sources.table}
    write(target, "accelerators", tables)


def build_links(source: Path, target: Path) -> None:
    sources = Sources()
    names = ("specs", "transfers", "all_reduces", "bus_bandwidths", "assumptions")
    tables: dict[str, list[dict[str, Any]]] = {name: [] for name in names}
    for row in read(source, "hw/interconnect.csv"):
        where = {"source": sources.index(row["source"])}
        kind = row["kind"]
        if kind == "modelling constant":
            tables["assumptions"].extend(r | where for r in assumptions(row))
        elif kind.startswith("collective measured: "):
            tables["all_reduces"].append(all_reduce(row) | where)
        elif kind.startswith("collective measured"):
            tables["bus_bandwidths"].extend(r | where for r in bus_bandwidths(row))
        elif row["measured_gb_s"]:
            tables["transfers"].append(transfer(row["link"], row["parts"], row["measured_gb_s"]))
            tables["transfers"][-1] |= where
        else:
            tables["specs"].append(spec(row) | where)
    achieved = read(source, "measured/achieved.csv")
    tables["expert_exchanges"] = [
        expert_exchange(row) | {"source": sources.index(row["source"])}
        for row in achieved
        if re.search(r"_(dispatch|combine)_", row["metric"])
    ]
    for row in achieved:
        if row["metric"] == "link_unidirectional_gb_s":
            found = transfer("NVLink 4", row["gpu"], row["value"])
            tables["transfers"].append(found | {"source": sources.index(row["source"])})
    write(target, "links", {**tables, "sources": sources.table})


def transfer(link: str, system: str, gb_s: str) -> dict[str, Any]:
    return {"link": link, "system": system, "bytes_per_s": si(gb_s, 1e9)}


def micro(text: str) -> float | None:
    """Seconds of the first number of microseconds in a text."""
    match = re.search(r"([\d.]+) us", text)
    return float(Decimal(match[1]).scaleb(-6)) if match else None


def groups(pattern: str, text: str) -> tuple[str, ...]:
    match = re.search(pattern, text)
    if match is None:
        raise SystemExit(f"cannot read {text!r}")
    return match.groups()


def spec(row: dict[str, str]) -> dict[str, Any]:
    kind, parts = row["kind"], row["parts"]
    per = "link" if "per-link" in kind else "port" if "port" in parts else "accelerator"
    role = "scale_out" if kind == "scale-out" else "scale_up"
    if row["link"].startswith(("PCIe", "NVLink-C2C")):
        role = "host"
    return {
        "name": row["link"],
        "vendor": row["vendor"].strip("-"),
        "parts": parts.strip("-"),
        "bytes_per_s": si(row["spec_gb_s_per_direction"], 1e9),
        "per": "host" if row["link"] == "DCN" else per,
        "role": role,
        "domain": row["domain_or_gpus"],
        "latency_s": micro(row["latency"]),
    }


def all_reduce(row: dict[str, str]) -> dict[str, Any]:
    system, gpus = row["parts"].split(" x")
    _, name, version = row["kind"].removeprefix("collective measured: ").split(" ")
    launch = "cuda_graph" if name.endswith("graph") else "eager" if "eager" in name else None
    name = re.sub(r"_(CustomAllReduce|custom)_(eager|graph)$", "", name)
    small, medium = groups(r"64 KiB ([^,]*), 1 MiB (.*)", row["notes"])
    return {
        "gpu": SYSTEM_IDS[system],
        "gpus": int(gpus),
        "library": name.replace("TRTLLM", "TensorRT-LLM").replace("_MNNVL_", " MNNVL "),
        "version": version,
        "launch": launch,
        "busbw_bytes_per_s": si(row["measured_gb_s"], 1e9),
        "latency_s": micro(row["latency"].strip()),
        "latency_64kib_s": micro(small),
        "latency_1mib_s": micro(medium),
    }


def bus_bandwidths(row: dict[str, str]) -> list[dict[str, Any]]:
    sizes = {"32 KiB": 1 << 15, "1 MiB": 1 << 20, "8 GiB": 1 << 33}
    size = next((v for k, v in sizes.items() if row["kind"].endswith(k)), None)
    gpu = {"H200": "h200-sxm", "B200": "b200-sxm", "MI300X": "mi300x"}[row["parts"].split(" ")[0]]
    counts = [int(n) for n in row["domain_or_gpus"].split(" / ")]
    values = row["measured_gb_s"].split(" / ")
    return [
        {
            "gpu": gpu,
            "gpus": gpus,
            "nodes": max(1, gpus // 8),
            "message_bytes": size,
            "busbw_bytes_per_s": si(value, 1e9),
        }
        for gpus, value in zip(counts, values, strict=True)
    ]


def assumptions(row: dict[str, str]) -> list[dict[str, Any]]:
    printed = row["spec_gb_s_per_direction"]
    scopes = re.findall(r"[\d.]+ us (intra|inter)", row["latency"]) or [""]
    times = re.findall(r"[\d.]+ us", row["latency"]) or [""]
    return [
        {
            "name": f"{row['link']} ({scope}-node)" if scope else row["link"],
            "parts": row["parts"],
            "bytes_per_s": si(printed.removesuffix(" per link"), 1e9),
            "latency_s": micro(time),
            "per": "link" if "per link" in printed else "accelerator",
        }
        for scope, time in zip(scopes, times, strict=True)
    ]


def expert_exchange(row: dict[str, str]) -> dict[str, Any]:
    mode, phase, unit, ranks = groups(
        r"(lowlatency|normal)_(dispatch|combine)_(us|gb_s)_ep(\d+)", row["metric"]
    )
    rate = re.search(r"(\d+) GB/s", row["note"])
    return {
        "gpu": row["gpu"],
        "gpus": int(ranks),
        "mode": mode.replace("lowlatency", "low_latency"),
        "phase": phase,
        "format": row["dtype"],
        "link": "NVLink" if "NVLink" in row["note"] else "RDMA",
        "bytes_per_s": si(rate[1] if rate else row["value"], 1e9),
        "time_s": float(Decimal(row["value"]).scaleb(-6)) if unit == "us" else None,
    }


def build_prices(source: Path, target: Path) -> None:
    sources = Sources()
    known = {row["id"] for row in read(source, "hw/accelerators.csv")}
    rows = []
    for row in read(source, "hw/prices.csv"):
        text = f"{row['instance']} {row['notes']}".lower()
        names = [row["gpu"]] if row["gpu"] in PRICED else row["gpu"].split(" / ")
        ids = [i for n in names for i in PRICED.get(n, [n.lower()])]
        if unknown := set(ids) - known:
            raise SystemExit(f"prices: no catalogue id for {unknown}")
        provider = row["provider"]
        rows.append(
            {
                "gpus": ids,
                "provider": "not named" if provider.startswith("(not named") else provider,
                "instance": row["instance"],
                "kind": next((kind for word, kind in PRICE_KINDS if word in text), "on_demand"),
                "usd_per_gpu_hour": float(row["price_usd_per_gpu_hour"]),
                "date": row["date"] or None,
                "source": sources.index(row["source"]),
            }
        )
    write(target, "prices", {"prices": rows, "sources": sources.table})


def write(target: Path, name: str, tables: dict[str, Any]) -> None:
    """One row per line, so that a change of the data reads as a change of lines."""
    parts = [f'"edition": "{EDITION}"']
    for key, value in tables.items():
        if isinstance(value, list):
            lines = ",\n".join(json.dumps(row, ensure_ascii=False) for row in value)
            parts.append(f'"{key}": [\n{lines}\n]')
        else:
            parts.append(f'"{key}": {json.dumps(value, ensure_ascii=False)}')
    text = "{\n" + ",\n".join(parts) + "\n}\n"
    json.loads(text)
    (target / f"{name}-{EDITION}.json").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
