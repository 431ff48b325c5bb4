"""The benchmark command that checks a prediction, with the load that was asked about.

Options of vLLM's, SGLang's and llama.cpp's tools are those of their documentation, of GuideLLM
0.8.1 and AIPerf 0.13.0 those of the published packages (read 2026-12-01). The results are in the
formats that `planner calibrate --add` reads.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from planner.handover.facts import engine_facts
from planner.handover.launching import joined, launch
from planner.handover.refusal import Unwritable
from planner.models import get_model
from planner.scenario import Scenario
from planner.workload.distributions import moments

REQUESTS_PER_CLIENT = 8
"""Requests each client sends, so that the first and last do not count much (assumption)."""


@dataclass(frozen=True, slots=True)
class BenchLoad:
    """The load of a benchmark."""

    model: str
    port: int
    isl: int
    osl: int
    clients: int
    scenario: Scenario

    @property
    def requests(self) -> int:
        """Requests in all."""
        return REQUESTS_PER_CLIENT * self.clients


def _vllm(load: BenchLoad) -> tuple[list[str], str]:
    words = ["vllm", "bench", "serve", "--model", load.model]
    words += ["--base-url", f"http://localhost:{load.port}", "--dataset-name", "random"]
    words += ["--random-input-len", str(load.isl), "--random-output-len", str(load.osl)]
    words += ["--ignore-eos", "--max-concurrency", str(load.clients)]
    words += ["--num-prompts", str(load.requests), "--percentile-metrics", "ttft,tpot,itl,e2el"]
    goodput = [
        f"{name}:{limit:g}"
        for name, limit in (("tpot", load.scenario.tpot_ms), ("ttft", load.scenario.ttft_ms))
        if limit is not None
    ]
    words += ["--goodput", *goodput] if goodput else []
    return [*words, "--save-result", "--result-filename", "bench.json"], "bench.json"


def _sglang(load: BenchLoad) -> tuple[list[str], str]:
    words = ["python3", "-m", "sglang.bench_serving", "--backend", "sglang", "--model", load.model]
    words += ["--host", "127.0.0.1", "--port", str(load.port), "--dataset-name", "random"]
    words += ["--random-input-len", str(load.isl), "--random-output-len", str(load.osl)]
    words += ["--random-range-ratio", "1", "--max-concurrency", str(load.clients)]
    words += ["--num-prompts", str(load.requests), "--output-file", "bench.jsonl"]
    return words, "bench.jsonl"


def _guidellm(load: BenchLoad) -> tuple[list[str], str]:
    words = ["guidellm", "run"]
    words += ["--backend", f"kind=openai_http,target=http://localhost:{load.port}/v1"]
    words += ["--profile", f"kind=concurrent,streams={load.clients}"]
    data = f"kind=synthetic_text,prompt_tokens={load.isl},output_tokens={load.osl}"
    words += ["--data", data, "--constraint", f"kind=max_requests,value={load.requests}"]
    return [*words, "--output", "kind=json,filename=bench.json"], "bench.json"


def _aiperf(load: BenchLoad) -> tuple[list[str], str]:
    words = ["aiperf", "profile", "--model", load.model, "--url", f"localhost:{load.port}"]
    words += ["--endpoint-type", "chat", "--streaming", "--isl", str(load.isl)]
    words += ["--osl", str(load.osl), "--concurrency", str(load.clients)]
    words += ["--request-count", str(load.requests), "--output-artifact-dir", "bench"]
    return words, "bench/profile_export_aiperf.json"


def _llama(load: BenchLoad) -> tuple[list[str], str]:
    words = ["llama-batched-bench", "-hf", load.model]
    words += ["-c", str((load.isl + load.osl) * load.clients), "-npp", str(load.isl)]
    words += ["-ntg", str(load.osl), "-npl", str(load.clients), "--output-format", "jsonl"]
    return words, "bench.jsonl"


TOOLS: Mapping[str, Callable[[BenchLoad], tuple[list[str], str]]] = {
    "vllm": _vllm,
    "sglang": _sglang,
    "guidellm": _guidellm,
    "aiperf": _aiperf,
    "llama.cpp": _llama,
}
"""Benchmarks by the name that `planner manifest --bench` takes."""


def benchmark(scenario: Scenario, tool: str | None = None) -> str:
    """Return the command that measures a scenario, and the one that adds the result.

    Without a tool it is the engine's own. Raises Unwritable where the scenario has no load.
    """
    if scenario.isl is None or scenario.osl is None or scenario.concurrency is None:
        raise Unwritable("concurrency, isl, osl: a benchmark needs all three")
    started = launch(scenario.model_copy(update={"disaggregated": None}))
    name = tool or engine_facts(started.facts.id).bench
    if name not in TOOLS:
        raise Unwritable(f"bench: {name[:40]!r} is not written; accepted: {', '.join(TOOLS)}")
    load = BenchLoad(
        started.model,
        started.facts.port,
        round(moments(scenario.isl).mean),
        round(moments(scenario.osl).mean),
        scenario.concurrency * scenario.replicas,
        scenario,
    )
    words, result = TOOLS[name](load)
    text = joined(words)
    if name == "llama.cpp":
        text += f" > {result}"
    gpu = scenario.gpu if isinstance(scenario.gpu, str) else "GPU"
    add = ["planner", "calibrate", "--add", result, "--model", get_model(scenario.model).id]
    add += ["--gpu", gpu, "--engine", started.facts.id, "--tp", str(scenario.tp)]
    if scenario.engine_version:
        add += ["--engine-version", scenario.engine_version]
    return f"{text}\n{' '.join(shlex.quote(word) for word in add)}\n"
