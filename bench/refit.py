"""The local refit against the number of rows, each of a deployment of its own, and its exponent.

    python bench/refit.py [ROWS…]

Every size is a process of its own; its time is processor time of the refit, with models loaded.
"""

from __future__ import annotations

import itertools
import math
import subprocess
import sys
import time

from planner.calibration import shipped
from planner.fitting.own import refit
from planner.runs.predict import predict
from planner.runs.rows import INPUTS, Row

MODELS = (
    "Qwen/Qwen3-8B",
    "Qwen/Qwen3-14B",
    "Qwen/Qwen3-32B",
    "meta-llama/Llama-3.1-8B-Instruct",
    "meta-llama/Llama-3.1-70B-Instruct",
    "openai/gpt-oss-20b",
    "openai/gpt-oss-120b",
    "google/gemma-3-27b-it",
)
GPUS = ("h100-sxm5", "h200-sxm", "b200-sxm", "a100-sxm-80gb", "mi300x")
ENGINES = ("vllm", "sglang")
SPLITS = (1, 2, 4, 8)
FORMATS = ("bf16", "fp8")
CLIENTS = (8, 32, 128)


def rows(count: int) -> list[Row]:
    """Runs that took a tenth longer or shorter than predicted, no two on the same deployment."""
    found: list[Row] = []
    for number, each in enumerate(itertools.product(SPLITS, MODELS, FORMATS, GPUS, ENGINES)):
        if len(found) == count:
            break
        tp, model, weights, gpu, engine = each
        inputs = dict.fromkeys(INPUTS["serving"], "") | {
            "row": str(number),
            "model": model,
            "gpu": gpu,
            "engine": engine,
            "tp": str(tp),
            "gpus": str(tp),
            "weight_format": weights,
            "isl": "1024",
            "osl": "256",
            "concurrency": str(CLIENTS[number % len(CLIENTS)]),
            "pp": "1",
            "attention_dp": "1",
        }
        found.append(Row("serving", inputs, {"ttft_ms": 100.0, "tpot_ms": 10.0}, {}))
    values = [prediction.values for prediction in predict(found, shipped())]
    off = (0.9, 1.0, 1.1, 1.05, 0.95, 1.02, 0.98)
    return [
        Row(
            row.kind,
            row.inputs,
            {name: value[name] * off[i % len(off)] for name in row.measured},
            row.remarks,
        )
        for i, (row, value) in enumerate(zip(found, values, strict=True))
        if all(0 < value.get(name, 0.0) < math.inf for name in row.measured)
    ]


def measure(count: int) -> None:
    given = rows(count)
    began = time.process_time()
    fit = refit(given, shipped())
    print(fit.rows, time.process_time() - began)


def main() -> None:
    sizes = [int(size) for size in sys.argv[1:]] or [125, 250, 500]
    points: list[tuple[int, float]] = []
    for size in sizes:
        command = [sys.executable, __file__, "--one", str(size)]
        text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        count, seconds = text.split()
        points.append((int(count), float(seconds)))
        print(f"{count} rows of as many deployments: {float(seconds):.1f} s")
    (few, first), (many, last) = points[0], points[-1]
    if many > few:
        print(f"exponent {math.log(last / first) / math.log(many / few):.2f}")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--one"]:
        measure(int(sys.argv[2]))
    else:
        main()
