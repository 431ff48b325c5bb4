"""Speed as ratios and times within one run: cold command, warm plans, array sweeps.

Run with `make bench`. Nothing here asserts a time; machines differ. A time is the least of many
short rounds, which neighbours on the machine disturb least; CPU times are those of whole processes.
"""

from __future__ import annotations

import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from itertools import count

import numpy as np

from planner import Scenario, plan
from planner.deployment import Deployment, deployment_of
from planner.plans.columns import grid_columns
from planner.step.buffers import Buffers

ROUNDS = 9
IMPORT = ["-c", "import numpy, pydantic"]
PROGRAM = "from planner.cli import script; script()"
LLAMA = "meta-llama/Llama-3.1-70B-Instruct"
DEEPSEEK = "deepseek-ai/DeepSeek-V3"
COMMANDS = {
    "plan, dense": ["plan", LLAMA, "--gpu", "h100-sxm5", "--tp", "4", "--json"],
    "plan, mixture of experts": ["plan", DEEPSEEK, "--gpu", "h200-sxm", "--tp", "8", "--json"],
    "--help": ["--help"],
    "models list": ["models", "list"],
}


def cpu_s(arguments: list[str]) -> float:
    """CPU time of one Python process."""

    def children() -> float:
        usage = resource.getrusage(resource.RUSAGE_CHILDREN)
        return usage.ru_utime + usage.ru_stime

    before = children()
    subprocess.run([sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL)
    return children() - before


def least_s(call: Callable[[], object], calls: int = 20, rounds: int = 100) -> float:
    """Time of one call, in the quickest of many rounds."""
    call()
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        for _ in range(calls):
            call()
        times.append((time.perf_counter() - start) / calls)
    return min(times)


def cold_commands() -> None:
    for name, arguments in COMMANDS.items():
        pairs = [(cpu_s(["-c", PROGRAM, *arguments]), cpu_s(IMPORT)) for _ in range(ROUNDS)]
        ratio = statistics.median(a / b for a, b in pairs)
        print(f"cold `planner {name}`, CPU time over `import numpy, pydantic`: {ratio:.2f}")


def warm_plans() -> None:
    for name, model, gpu, tp in (
        ("dense", LLAMA, "h100-sxm5", 4),
        ("mixture of experts", DEEPSEEK, "h200-sxm", 8),
    ):
        scenario = Scenario(model=model, gpu=gpu, tp=tp, batch=64, context=8192)
        batches, contexts = count(1), count(8193)

        def with_new(
            field: str, values: Callable[[], int], scenario: Scenario = scenario
        ) -> Callable[[], object]:
            return lambda: plan(scenario.model_copy(update={field: [values()]}))

        same = least_s(lambda scenario=scenario: plan(scenario))
        batch = least_s(with_new("batch", batches.__next__))
        context = least_s(with_new("context", contexts.__next__))
        print(
            f"plan of a known deployment, {name}: {same * 1e6:.0f} µs, "
            f"at a new batch {batch * 1e6:.0f} µs, at a new context {context * 1e6:.0f} µs"
        )


def array_sweeps() -> None:
    batches, contexts = np.arange(1.0, 201.0), 500.0 * np.arange(1.0, 201.0)
    for model, gpu, tp in ((LLAMA, "h100-sxm5", 4), (DEEPSEEK, "h200-sxm", 8)):
        deployment = deployment_of(Scenario(model=model, gpu=gpu, tp=tp))
        buffers = Buffers()

        def block(one: Deployment = deployment, into: Buffers = buffers) -> object:
            return grid_columns(one, 1, batches, contexts, into)

        seconds = least_s(block, calls=1)
        rate = batches.size * contexts.size / seconds
        print(f"sweep of 40,000 points as arrays, {model}: {rate / 1e6:.1f} million points/s")


if __name__ == "__main__":
    cold_commands()
    warm_plans()
    array_sweeps()
