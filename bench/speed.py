"""Speed as ratios within one run: cold command against an import, warm plan per call.

Run with `make bench`. Nothing here asserts a time; machines differ.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from itertools import count

from planner import Scenario, plan

ROUNDS = 9
QUESTION = [
    "meta-llama/Llama-3.1-70B-Instruct",
    "--gpu",
    "h100-sxm5",
    "--tp",
    "4",
    "--context",
    "8192",
    "--json",
]


def cold(arguments: list[str]) -> float:
    start = time.perf_counter()
    subprocess.run([sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - start


def warm(call: Callable[[], object], repeats: int = 300) -> float:
    call()
    start = time.perf_counter()
    for _ in range(repeats):
        call()
    return (time.perf_counter() - start) / repeats


def cold_ratio() -> None:
    program = "from planner.cli import script; script()"
    pairs = [
        (cold(["-c", program, "plan", *QUESTION]), cold(["-c", "import numpy, pydantic"]))
        for _ in range(ROUNDS)
    ]
    plans, imports = (statistics.median(times) for times in zip(*pairs, strict=True))
    print(f"cold `planner plan --json`           {plans * 1e3:7.0f} ms")
    print(f"cold `import numpy, pydantic`        {imports * 1e3:7.0f} ms")
    print(f"ratio (at most 2 wanted)             {plans / imports:7.2f}")


def warm_plans() -> None:
    one = Scenario(model=QUESTION[0], gpu="h100-sxm5", tp=4, batch=64, context=8192)
    mixture = Scenario(
        model="deepseek-ai/DeepSeek-V3", gpu="h200-sxm", tp=8, batch=64, context=8192
    )
    batches = count(65)
    new = one.model_copy

    def fresh(advice: bool) -> float:
        return warm(lambda: plan(new(update={"batch": [next(batches)]}), advice=advice))

    many = one.model_copy(update={"batch": list(range(1, 1025))})
    scalar = warm(lambda: plan(one))
    print(f"plan, one point, dense               {scalar * 1e3:7.2f} ms (under 1 wanted)")
    print(f"plan, a new batch each time          {fresh(False) * 1e3:7.2f} ms (under 1 wanted)")
    print(f"the same with its levers             {fresh(True) * 1e3:7.2f} ms")
    print(f"plan, one point, mixture of experts  {warm(lambda: plan(mixture)) * 1e3:7.2f} ms")
    print(
        f"plan, 1,024 points, per point        {warm(lambda: plan(many), 20) / 1024 * 1e6:7.2f} µs"
    )


if __name__ == "__main__":
    cold_ratio()
    warm_plans()
