"""What is written is read back as the same scenario, for every engine and object."""

from __future__ import annotations

import contextlib
import json
import shlex
from typing import Any

import pytest
import yaml

from planner.benchmarks.read import ACCEPTED
from planner.deployment import deployment_of
from planner.handover.arguments import parser_of, parser_versions
from planner.handover.autoscaling import clients_within
from planner.handover.facts import started_engines
from planner.handover.loadtest import TOOLS, benchmark
from planner.handover.refusal import Unwritable
from planner.handover.shell import script
from planner.handover.sources import read_files
from planner.handover.workers import engine_started
from planner.handover.writing import WRITTEN, label, with_autoscaler, write
from planner.scenario import Scenario

LLAMA, DEEPSEEK = "meta-llama/Llama-3.1-70B-Instruct", "deepseek-ai/DeepSeek-V3"
QWEN = "Qwen/Qwen2.5-7B-Instruct"
LOAD: dict[str, Any] = {
    "concurrency": 32,
    "isl": {"lognormal": {"mean": 1024, "cv": 0.5}},
    "osl": 256,
    "tpot_ms": 40,
    "percentile": 90,
}
SCENARIOS: dict[str, dict[str, Any]] = {
    "dense": {
        "model": LLAMA,
        "gpu": "h100-sxm5",
        "tp": 4,
        "replicas": 2,
        "max_sequences": 128,
        "max_batched_tokens": 4096,
        "max_model_len": 32768,
        "kv": "fp8",
        "prefix_caching": False,
        "graphs": "off",
        **LOAD,
    },
    "experts": {
        "model": DEEPSEEK,
        "gpu": "h200-sxm",
        "attention_dp": 8,
        "ep": 8,
        "memory_fraction": 0.85,
        "speculation": {"drafts": 1, "accepted": 1.8},
        **LOAD,
    },
    "hosts": {"model": DEEPSEEK, "gpu": "h100-sxm5", "attention_dp": 16, "ep": 16, "nodes": 2},
    "apart": {
        "model": LLAMA,
        "gpu": "h100-sxm5",
        "tp": 4,
        "disaggregated": {"tp": 2, "busy": 0.7},
        **LOAD,
    },
    "gguf": {"model": QWEN, "gpu": "rtx-4090", "weights": "q4_k_m", "max_sequences": 4},
    "bare": {"model": QWEN, "gpu": "l4"},
}
REFUSED = {"engine", "ep", "nodes", "replicas", "disaggregated"}
"""Fields by which an object or an engine may refuse one of these."""


def scenario(name: str, engine: str) -> Scenario:
    fields = dict(SCENARIOS[name])
    if engine == "llama.cpp":
        fields.pop("memory_fraction", None)
    return Scenario(engine=engine, **fields)


@pytest.mark.parametrize("kind", WRITTEN)
@pytest.mark.parametrize("engine", started_engines())
@pytest.mark.parametrize("name", SCENARIOS)
def test_what_is_written_is_read_back(name: str, engine: str, kind: str) -> None:
    asked = scenario(name, engine)
    try:
        written = write(asked, kind)
    except Unwritable as error:
        refused = str(error)
    else:
        refused = ""
    if refused:
        assert refused.partition(":")[0] in REFUSED
        assert "accepted:" in refused
        return
    (read,) = read_files({"written": written.text})
    assert read.reading.scenario == written.scenario
    assert read.reading.not_understood == []
    pinned = {"engine_version": written.scenario.engine_version}
    assert written.scenario == asked.model_copy(update=pinned)


def test_which_engines_and_objects_go_together() -> None:
    held: dict[str, int] = {}
    for engine in started_engines():
        for kind in WRITTEN:
            with contextlib.suppress(Unwritable):
                write(scenario("bare", engine), kind)
                held[engine] = held.get(engine, 0) + 1
    assert held == {"vllm": 8, "sglang": 7, "trtllm": 6, "llama.cpp": 5, "lmdeploy": 5}


RELEASES = [
    (engine, version) for engine in started_engines() for version in parser_versions(engine)
]


@pytest.mark.parametrize(("engine", "version"), RELEASES)
@pytest.mark.parametrize("name", ["dense", "experts"])
def test_a_command_is_taken_by_the_parser_of_its_version(
    name: str, engine: str, version: str
) -> None:
    try:
        asked = scenario(name, engine).model_copy(update={"engine_version": version})
        text = write(asked).text
    except Unwritable as refusal:
        assert engine in str(refusal)  # noqa: PT017 - what it does not take is named
        return
    *_, command = script(text).commands  # a configuration is written before it
    started = engine_started(command)
    assert started is not None
    parser = parser_of(engine, version)
    assert parser.version == version
    assert parser.parse(started[1]).faults == []


def test_trtllm_serve_on_two_hosts_is_started_by_slurm_one_task_a_gpu() -> None:
    asked = scenario("hosts", "trtllm")
    written = write(asked)
    assert "srun \\\n  --nodes 2 \\\n  --ntasks 16 \\\n  --ntasks-per-node 8 \\\n" in written.text
    assert "trtllm-llmapi-launch trtllm-serve deepseek-ai/DeepSeek-V3" in written.text
    (read,) = read_files({"written": written.text})
    assert read.reading.scenario == written.scenario
    assert read.reading.scenario.nodes == 2
    assert "srun" not in write(scenario("dense", "trtllm").model_copy(update={"replicas": 1})).text


def test_hosts_of_trtllm_are_joined_by_slurm_or_dynamo_alone() -> None:
    asked = scenario("hosts", "trtllm")
    (read,) = read_files({"written": write(asked, "dynamo").text})
    assert (read.reading.scenario.nodes, read.reading.scenario.attention_dp) == (2, 16)
    message = "nodes: 2 of trtllm as leaderworkerset; accepted: 1, or as command, dynamo"
    with pytest.raises(Unwritable, match=message):
        write(asked, "leaderworkerset")


def test_two_releases_of_each_engine_are_on_record() -> None:
    assert all(len(parser_versions(engine)) >= 2 for engine in started_engines())


@pytest.mark.parametrize(
    ("version", "flag", "taken"),
    # trtllm-serve: a flag for the cache's format came after 1.2, one for the generation config
    # with 1.4, which took the TensorRT backend and renamed the workers of inputs
    [
        ("1.2.0", "--kv_cache_dtype fp8", False),
        ("1.3.0", "--kv_cache_dtype fp8", True),
        ("1.3.0", "--generation-config auto", False),
        ("1.4.0", "--generation-config auto", True),
        ("1.2.0", "--backend trt", True),
        ("1.3.0", "--backend tensorrt", True),
        ("1.4.0", "--backend tensorrt", False),
        ("1.3.0", "--input-processor-workers 4", True),
        ("1.4.0", "--input-processor-workers 4", False),
        ("1.4.0", "--num_input_processor_workers 4", True),
    ],
)
def test_trtllm_serve_takes_what_its_version_takes(version: str, flag: str, taken: bool) -> None:
    (command,) = script(f"trtllm-serve Qwen/Qwen2.5-7B-Instruct {flag}\n").commands
    started = engine_started(command)
    assert started is not None
    assert (parser_of("trtllm", version).parse(started[1]).faults == []) is taken


def test_the_caches_format_is_said_as_the_version_takes_it() -> None:
    asked = scenario("bare", "trtllm").model_copy(update={"kv": "fp8"})
    old = write(asked.model_copy(update={"engine_version": "1.2.1"})).text
    new = write(asked.model_copy(update={"engine_version": "1.4.0"})).text
    assert "kv_cache_config:\n  dtype: fp8" in old
    assert "--kv_cache_dtype fp8" in new


def test_attention_dp_is_said_as_the_version_takes_it() -> None:
    asked = scenario("experts", "sglang")
    new = write(asked.model_copy(update={"engine_version": "0.5.23"})).text
    old = write(asked.model_copy(update={"engine_version": "0.5.14"})).text
    assert "--attn-dp-size 8" in new
    assert "--dp-size 8" in old
    assert "--enable-dp-attention" in old


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"engine": None}, "engine"),
        ({"tp": 2, "attention_dp": 4, "engine": "trtllm"}, "tp"),
        ({"ep": 4}, "ep"),
        ({"engine": "llama.cpp", "disaggregated": {}, **LOAD}, "disaggregated"),
    ],
)
def test_what_a_command_cannot_say_is_refused_by_field(changes: dict[str, Any], field: str) -> None:
    asked = Scenario(model=DEEPSEEK, gpu="h200-sxm", **{"engine": "vllm", "tp": 8, **changes})
    with pytest.raises(Unwritable, match=f"^{field}"):
        write(asked)


def test_a_pod_is_complete() -> None:
    text = write(scenario("dense", "vllm"), "deployment").text
    deployment, service = yaml.safe_load_all(text)
    pod = deployment["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    assert container["resources"]["limits"] == {"nvidia.com/gpu": "4"}
    assert pod["nodeSelector"] == {"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3"}
    assert pod["volumes"][0]["emptyDir"]["medium"] == "Memory"
    # 141 GB of weights at 1 GB/s and two minutes, twice over
    probe = container["startupProbe"]
    assert 500 < probe["periodSeconds"] * probe["failureThreshold"] < 560
    assert all(isinstance(word, str) for word in container["args"])
    assert service["spec"]["selector"] == deployment["spec"]["selector"]["matchLabels"]


def test_hosts_of_a_replica_are_a_group() -> None:
    group = yaml.safe_load(write(scenario("hosts", "sglang"), "leaderworkerset").text)
    inner = group["spec"]["leaderWorkerTemplate"]
    assert inner["size"] == 2
    worker = inner["workerTemplate"]["spec"]["containers"][0]
    assert worker["resources"]["limits"]["nvidia.com/gpu"] == "8"
    assert "$(LWS_WORKER_INDEX)" in worker["args"]
    assert "livenessProbe" not in worker


def test_the_prefill_workers_of_a_plan_are_written() -> None:
    graph = yaml.safe_load(write(scenario("apart", "vllm"), "dynamo").text)
    kinds = {one["type"]: one for one in graph["spec"]["components"]}
    assert set(kinds) == {"frontend", "decode", "prefill"}
    assert kinds["prefill"]["replicas"] >= 1
    roles = [
        json.loads(word)["kv_role"]
        for kind in ("decode", "prefill")
        for word in kinds[kind]["podTemplate"]["spec"]["containers"][0]["args"]
        if word.startswith("{")
    ]
    assert roles == ["kv_consumer", "kv_producer"]


@pytest.mark.parametrize("tool", TOOLS)
def test_a_benchmark_asks_for_the_load(tool: str) -> None:
    engine = "llama.cpp" if tool == "llama.cpp" else "vllm"
    asked = Scenario(
        model=QWEN, gpu="rtx-4090", engine=engine, isl=512, osl=128, concurrency=8, tpot_ms=50
    )
    run, add = benchmark(asked, tool).replace("\\\n", " ").strip().splitlines()
    assert {"512", "128"} <= set(run.replace("=", " ").replace(",", " ").split())
    assert "8" in run.replace("=", " ").split()
    words = shlex.split(add)
    assert words[:3] == ["planner", "calibrate", "--add"]
    assert words[words.index("--gpu") + 1] == "rtx-4090"
    name = {"vllm": "vLLM", "sglang": "SGLang", "guidellm": "GuideLLM", "aiperf": "AIPerf"}
    assert name.get(tool, "llama-batched-bench") in ACCEPTED


def test_an_autoscaler_has_the_bounds_of_the_plan() -> None:
    asked = Scenario(
        model=QWEN, gpu="l4", engine="vllm", isl=512, osl=128, concurrency=8, tpot_ms=90, replicas=3
    )
    target = clients_within(asked, deployment_of(asked))
    written = with_autoscaler(write(asked, "deployment"), "hpa", 9)
    scaler = list(yaml.safe_load_all(written.text))[-1]["spec"]
    assert (scaler["minReplicas"], scaler["maxReplicas"]) == (3, 9)
    assert scaler["metrics"][0]["pods"]["target"]["averageValue"] == str(target)
    assert scaler["scaleTargetRef"]["name"] == label(QWEN)
    over = asked.model_copy(update={"concurrency": target + 1})
    assert clients_within(over, deployment_of(over)) == target
    with pytest.raises(Unwritable, match=r"^autoscale"):
        with_autoscaler(write(asked, "compose"), "hpa")


@pytest.mark.parametrize(
    "load",
    [
        {"users": 300, "think_time_s": 10.0, "isl": 1024, "osl": 256, "e2e_ms": 9000.0},
        {"requests_per_s": 4.5, "arrival_cv": 1.5, "isl": 512, "osl": 128},
        {"users": 20, "think_time_s": 5.0, "isl": 600, "osl": 90, "turns": 4, "prefix_tokens": 200},
    ],
)
@pytest.mark.parametrize("kind", ["command", "deployment"])
def test_every_load_is_noted_beside_it(load: dict[str, Any], kind: str) -> None:
    """A recommendation's scenario has users or a rate: it is written and read back, too."""
    scenario = Scenario(model=QWEN, gpu="h100-sxm5", engine="vllm", **load)
    written = write(scenario, kind)
    (one,) = read_files({kind: written.text}, {})
    assert one.reading.scenario == written.scenario
    for name in load:
        assert getattr(one.reading.scenario, name) == getattr(scenario, name)
