"""Speed of searches: of a node, of all accelerators, and of a mixture of experts in two rounds.

Run with `make bench`. Times are those of a process of its own each, so that nothing is kept from
another; CPU time is what a machine with nothing else to do would take. Nothing asserts a time.
"""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

LLAMA = "meta-llama/Llama-3.1-70B-Instruct"
LOAD = {"isl": 4000, "osl": 500, "ttft_ms": 2000.0, "tpot_ms": 40.0}
SEARCHES: dict[str, dict[str, Any]] = {
    "8 H200, Llama-3.1-70B FP8": {"model": LLAMA, "weights": "fp8", "gpu": ["h200-sxm"], "gpus": 8},
    "all accelerators, Llama-3.1-70B": {"model": LLAMA, "concurrency_in_all": 100},
    "all accelerators in two rounds, gpt-oss-120b": {
        "model": "openai/gpt-oss-120b",
        "concurrency_in_all": 100,
    },
}
CHILD = """
import json, sys, time
from planner.models import get_model
from planner.plans.question import Question
from planner.plans.recommend import recommend
from planner.plans.request import RecommendationRequest
from planner.plans.search import search

request = RecommendationRequest(**json.loads(sys.argv[1]))
question = Question.of(request, get_model(request.model))
wall, cpu = time.perf_counter(), time.process_time()
searched = search(question)
wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
again = time.process_time()
search(question)
again = time.process_time() - again
whole = time.process_time()
recommend(request)
whole = time.process_time() - whole
replicas = len(searched.meeting) + len(searched.missing)
print(json.dumps([searched.evaluated, replicas, wall, cpu, again, whole]))
"""
COLD = ["recommend", LLAMA, "--context", "8192", "--tpot-ms", "50", "--all", "--json"]
PROGRAM = "from planner.cli import script; script()"


def searches() -> None:
    """Print the time of every search."""
    for name, fields in SEARCHES.items():
        arguments = [sys.executable, "-c", CHILD, json.dumps(LOAD | fields)]
        text = subprocess.run(arguments, check=True, capture_output=True, text=True).stdout
        options, replicas, wall_s, cpu_s, again_s, whole_s = json.loads(text)
        print(
            f"search of {name}: {options:,} options, {replicas:,} replicas sized; {wall_s:.2f} s, "
            f"CPU {cpu_s:.2f} s, again {again_s:.2f} s; with winners confirmed {whole_s:.2f} s"
        )


def cold_batches() -> None:
    """Print the time of the batch on every accelerator, from a cold start."""
    import resource

    def children_s() -> float:
        usage = resource.getrusage(resource.RUSAGE_CHILDREN)
        return usage.ru_utime + usage.ru_stime

    before = children_s()
    command = [sys.executable, "-c", PROGRAM, *COLD]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    print(f"cold `planner recommend --all`: CPU {children_s() - before:.2f} s")


if __name__ == "__main__":
    searches()
    cold_batches()
