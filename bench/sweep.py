"""Tables: points per second as arrays and as Parquet, growth of time, memory, two processes.

Run with `make bench`; `--full` goes on to 10⁹ points. Rates are per second of one core's time, so
that neighbours on the machine count least, except those of two processes. Nothing here asserts.
"""

from __future__ import annotations

import argparse
import json
import math
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from planner.plans.table.blocks import blocks
from planner.plans.table.files import write_table
from planner.plans.table.request import TableRequest
from planner.step.buffers import Buffers

MODELS = [
    "meta-llama/Llama-3.1-70B-Instruct",
    "meta-llama/Llama-3.1-8B-Instruct",
    "Qwen/Qwen3-32B",
    "Qwen/Qwen3-235B-A22B",
    "deepseek-ai/DeepSeek-V3",
]
GPUS = ["h100-sxm5", "h200-sxm", "b200-sxm", "mi300x", "l40s"]
TPS = [2, 4, 8]
SIZES = (10**5, 10**6, 10**7, 10**8)
FULL = 10**9
PIECE = 500_000
"""Rows of a part where two processes share them: many more parts than processes [-]."""
TURNS = 4
SPINS = 50_000_000


def request(points: int) -> TableRequest:
    """A table of about `points` rows: as many members as there are, with a grid each."""
    members = len(MODELS) * len(GPUS) * len(TPS)
    contexts = max(10, min(1000, round(math.sqrt(points / members))))
    batches = max(1, round(points / members / contexts))
    return TableRequest(
        model=MODELS,
        gpu=GPUS,
        tp=TPS,
        engine=["vllm"],
        batch=list(range(1, batches + 1)),
        context=[128 * (i + 1) for i in range(contexts)],
    )


def as_arrays(points: int) -> None:
    """Evaluate a table in this process and print what it took, as JSON."""
    start, cpu = time.perf_counter(), time.process_time()
    rows = sum(block.rows for block in blocks(request(points), Buffers()))
    print(
        json.dumps(
            {
                "rows": rows,
                "wall_s": time.perf_counter() - start,
                "cpu_s": time.process_time() - cpu,
                "peak_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
            }
        )
    )


def measured(points: int) -> dict[str, float]:
    """The same in a process of its own, whose memory is its alone."""
    run = subprocess.run(
        [sys.executable, __file__, "--arrays", str(points)],
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    result: dict[str, float] = json.loads(run.stdout)
    return result


def growth(sizes: tuple[int, ...]) -> list[dict[str, float]]:
    rows = [measured(points) for points in sizes]
    for row in rows:
        print(
            f"{row['rows']:.3g} points as arrays: {row['cpu_s']:.2f} s of a core, "
            f"{row['rows'] / row['cpu_s'] / 1e6:.1f} million points/s, "
            f"{row['peak_bytes'] / 1e6:.0f} MB at most"
        )
    slope = _slope([math.log(r["rows"]) for r in rows], [math.log(r["cpu_s"]) for r in rows])
    print(f"exponent of time in points, {sizes[0]:.0e} to {sizes[-1]:.0e}: {slope:.3f}")
    return rows


def _slope(xs: list[float], ys: list[float]) -> float:
    x0, y0 = sum(xs) / len(xs), sum(ys) / len(ys)
    return sum((x - x0) * (y - y0) for x, y in zip(xs, ys, strict=True)) / sum(
        (x - x0) ** 2 for x in xs
    )


def spin(turns: int) -> int:
    """Work that needs a core and nothing else."""
    return sum(range(turns))


def as_parquet(points: int) -> None:
    folder = Path(tempfile.mkdtemp())
    try:
        times = []
        for turn in range(TURNS):
            cpu = time.process_time()
            done = write_table(request(points), folder / f"{turn}")
            times.append(time.process_time() - cpu)
            shutil.rmtree(folder / f"{turn}")
        seconds = min(times)
        print(
            f"Parquet of {done.rows:.3g} rows: {done.rows / seconds / 1e6:.2f} million rows/s of a "
            f"core, {done.bytes / done.rows:.1f} bytes a row"
        )
        walls: dict[int, list[float]] = {workers: [] for workers in (1, 2)}
        alone: dict[int, list[float]] = {workers: [] for workers in (1, 2)}
        for turn in range(TURNS):  # by turns, and the best of each: neighbours come and go
            for workers in walls:
                with ProcessPoolExecutor(workers) as pool:
                    list(pool.map(time.sleep, [0.2] * workers))  # all have started
                    start = time.perf_counter()
                    write_table(
                        request(points),
                        folder / f"{turn} {workers}",
                        pool,
                        part_rows=PIECE,
                        in_flight=8,
                        shares_disk=True,
                    )
                    walls[workers].append(time.perf_counter() - start)
                    start = time.perf_counter()
                    list(pool.map(spin, [SPINS] * workers))
                    alone[workers].append(time.perf_counter() - start)
                shutil.rmtree(folder / f"{turn} {workers}")
        print(
            f"two processes over one, elapsed: {min(walls[1]) / min(walls[2]):.2f}, where two "
            f"loops at once give this machine {2 * min(alone[1]) / min(alone[2]):.2f}"
        )
    finally:
        shutil.rmtree(folder)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--full", action="store_true", help="10⁹ points: a minute")
    parser.add_argument("--arrays", type=int, help="evaluate so many points and print JSON")
    given = parser.parse_args()
    if given.arrays:
        as_arrays(given.arrays)
        return
    growth((*SIZES, FULL) if given.full else SIZES)
    as_parquet(10**7)


if __name__ == "__main__":
    main()
