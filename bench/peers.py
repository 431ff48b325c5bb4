"""The same questions put to other planners: how long an answer takes, and what it says.

    python bench/peers.py [--venv DIRECTORY]

Each peer is installed from PyPI, at the version pinned here, into an environment of its own that is
thrown away unless it has a name. The question is the time of a token of Llama 3.1 8B in 16 bits on
one H100 SXM, 64 sequences of 8,192 tokens; a peer that does not take a batch or a context answers
what it takes. All of them answer less than `plan` does, and `ANSWERS` says what; a difference in
time is a difference in what is computed as well. Not run by `make bench`: it downloads packages.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

PEERS = {
    "llm-flops": "llm-flops==0.0.1",
    "servcalc": "servcalc==0.1.0",
    "ridgepoint": "ridgepoint==0.1.2",
    "vllm-sr-sim": "vllm-sr-sim==0.1.0.dev20260713123629",
    "aiconfigurator": "aiconfigurator==0.12.0",
}
ANSWERS = {
    "planner": "kernels, bound, interval, memory, limits, notes, editions",
    "llm-flops": "FLOPs, one roofline time with fixed shares of the peaks; no kernels, no interval",
    "servcalc": "one GPU, dense models; a prior range; no parallelism, no limits by context",
    "ridgepoint": "capacity, and the speed of one stream; no batch can be asked",
    "vllm-sr-sim": "a line W + H·n for a step; no bound, no interval, no memory of a shard",
    "aiconfigurator": "measured kernels of some NVIDIA parts; no interval, no intensity, no limits",
}
CALLS = 20
"""Warm calls of each at most [-]."""
BUDGET_S = 10.0
"""Time after which no further call is begun [s]."""
CONFIG = {
    "model_type": "llama",
    "hidden_size": 4096,
    "num_hidden_layers": 32,
    "vocab_size": 128256,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "intermediate_size": 14336,
    "max_position_embeddings": 131072,
    "torch_dtype": "bfloat16",
    "tie_word_embeddings": False,
}

Question = Callable[[], float]
"""Returns the time of a token [s]."""


def ours() -> Question:
    from itertools import count

    from planner import Scenario, plan

    contexts = count(8192)  # a new one each time: a plan that was asked before is remembered
    base = Scenario(
        model="meta-llama/Llama-3.1-8B-Instruct", gpu="h100-sxm5", engine="vllm", batch=64
    )

    def ask() -> float:
        scenario = base.model_copy(update={"context": [next(contexts)]})
        return plan(scenario).points[0].tpot_s.p50

    return ask


def llm_flops() -> Question:
    import llmflops

    def ask() -> float:
        answer = llmflops.estimate(
            "meta-llama/Llama-3-8B",
            batch_size=64,
            sequence_length=8192,
            precision="bf16",
            gpu="H100",
        )
        return float(answer.to_dict()["details"]["performance"]["decode_latency_per_token_s"])

    return ask


def servcalc() -> Question:
    from servcalc import Workload, estimate

    load = Workload(prompt_len=8191, gen_len=2, concurrency=(64,))
    return lambda: estimate(CONFIG, "H100 80GB", workload=load).points[0].itl_ms.mid / 1e3


def ridgepoint() -> Question:
    import ridgepoint as peer

    def ask() -> float:
        answer = json.loads(peer.fit("llama-3-8b", "h100-80gb", ctx=8192, as_json=True))
        return 1.0 / float(answer["speed"]["decode_tok_s"]["best"])

    return ask


def vllm_sr_sim() -> Question:
    import fleet_sim as peer

    def ask() -> float:
        setup = peer.ServingConfig(tp=1, mean_ctx_tokens=8192)
        profile = peer.ProfileBuilder().build(peer.H100_SXM, peer.LLAMA_3_1_8B, setup)
        return float(profile.iter_latency(64, 8192))

    return ask


def aiconfigurator() -> Question:
    import logging

    logging.disable(logging.WARNING)
    from aiconfigurator.cli.api import cli_estimate

    def ask() -> float:
        answer = cli_estimate(
            "meta-llama/Meta-Llama-3.1-8B",
            "h100_sxm",
            mode="static_gen",
            backend_name="vllm",
            isl=8192,
            osl=2,
            batch_size=64,
        )
        return float(answer.tpot) / 1e3

    return ask


QUESTIONS = {
    "planner": ours,
    "llm-flops": llm_flops,
    "servcalc": servcalc,
    "ridgepoint": ridgepoint,
    "vllm-sr-sim": vllm_sr_sim,
    "aiconfigurator": aiconfigurator,
}


def answered(name: str) -> dict[str, float]:
    """Ask one planner in this process: its answer, and the least time of a warm call [s]."""
    ask = QUESTIONS[name]()
    start = time.perf_counter()
    tpot_s = ask()
    first = time.perf_counter() - start
    times, began = [], time.perf_counter()
    while not times or (len(times) < CALLS and time.perf_counter() - began < BUDGET_S):
        start = time.perf_counter()
        ask()
        times.append(time.perf_counter() - start)
    return {"tpot_s": tpot_s, "first_s": first, "warm_s": min(times)}


def compare(venv: Path) -> None:
    python = venv / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", str(venv)], check=True)
    install = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    for name in QUESTIONS:
        command = [sys.executable, __file__, "--ask", name]
        if name in PEERS:
            if subprocess.run([*install, PEERS[name]], check=False).returncode:
                print(f"{name}: cannot be installed here")
                continue
            command[0] = str(python)
        run = subprocess.run(command, check=False, capture_output=True, text=True)
        try:
            row = json.loads(run.stdout.splitlines()[-1])
        except (IndexError, json.JSONDecodeError):
            reason = (run.stderr.strip().splitlines() or ["no answer"])[-1]
            print(f"{name}: {reason}")
            continue
        print(
            f"{name}: {row['tpot_s'] * 1e3:.2f} ms a token, first answer {row['first_s']:.3f} s, "
            f"warm {row['warm_s'] * 1e6:.0f} µs; answers {ANSWERS[name]}"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--venv", type=Path, help="environment of the peers; default a new one")
    parser.add_argument("--ask", choices=QUESTIONS, help="ask one in this environment")
    given = parser.parse_args()
    if given.ask:
        print(json.dumps(answered(given.ask)))
    elif given.venv:
        compare(given.venv)
    else:
        with tempfile.TemporaryDirectory() as folder:
            compare(Path(folder) / "peers")


if __name__ == "__main__":
    main()
