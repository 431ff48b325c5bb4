"""A fleet's day of a million requests over three pools: time, and memory as the trace grows.

Run with `make bench`. The trace is made up: a day's wave of requests with lengths drawn at random,
as a CSV file in Azure's form. Nothing asserts a time.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from datetime import datetime, timedelta
from pathlib import Path

import numpy as np

POOL = {"model": "openai/gpt-oss-120b", "gpu": "h100-sxm5", "tp": 2, "engine": "vllm"}
POOLS = [
    {**POOL, "isl_up_to": 500},
    {**POOL, "engine": "sglang", "isl_up_to": 2000},
    {**POOL, "gpu": "h200-sxm"},
]
CHILD = """
import json, resource, sys, time
from planner.plans.fleet import fleet
from planner.plans.fleet_request import FleetRequest

pools, trace = json.loads(sys.argv[1]), sys.argv[2]
start = time.perf_counter(), time.process_time()
result = fleet(FleetRequest(pools=pools, trace=trace, ttft_ms=3000, tpot_ms=50))
wall, cpu = time.perf_counter() - start[0], time.process_time() - start[1]
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(json.dumps([result.requests, wall, cpu, peak, [line.gpus_mean for line in result.lines]]))
"""


def write_day(path: Path, count: int) -> None:
    """Write `count` requests over a day, four times as many at noon as at midnight."""
    rng = np.random.default_rng(1)
    grid = np.linspace(0.0, 1.0, 1441)
    share = np.cumsum(1.0 - 0.6 * np.cos(2 * np.pi * grid))
    at = np.sort(np.interp(rng.random(count), share / share[-1], grid)) * 86_400
    isl, osl = (np.ceil(rng.lognormal(mean, 1.0, count)) for mean in (6.5, 5.0))
    day = datetime(2026, 12, 1)
    with path.open("w", encoding="utf-8") as file:
        file.write("TIMESTAMP,ContextTokens,GeneratedTokens\n")
        for s, inputs, outputs in zip(at.tolist(), isl.tolist(), osl.tolist(), strict=True):
            moment = (day + timedelta(seconds=s)).isoformat(sep=" ")
            file.write(f"{moment},{inputs:.0f},{outputs:.0f}\n")


def main() -> None:
    """Print time and memory for a tenth of a million, a million, and two million requests."""
    with tempfile.TemporaryDirectory() as folder:
        for count in (100_000, 1_000_000, 2_000_000):
            path = Path(folder) / "day.csv"
            # In a process of its own: a child's peak memory starts at its parent's.
            command = [sys.executable, __file__, str(path), str(count)]
            subprocess.run(command, check=True)
            arguments = [sys.executable, "-c", CHILD, json.dumps(POOLS), str(path)]
            text = subprocess.run(arguments, check=True, capture_output=True, text=True).stdout
            requests, wall_s, cpu_s, peak_kib, (perfect, auto, static) = json.loads(text)
            print(
                f"fleet of three pools, {requests:,.0f} requests: {wall_s:.1f} s, CPU {cpu_s:.1f} "
                f"s, {peak_kib / 1024:.0f} MiB; mean GPUs {perfect:.2f} perfect, {auto:.2f} "
                f"autoscaled, {static:.2f} static"
            )


if __name__ == "__main__":
    if len(sys.argv) > 1:
        write_day(Path(sys.argv[1]), int(sys.argv[2]))
    else:
        main()
