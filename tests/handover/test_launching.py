"""How a worker is started, by hand: arguments, engine files, roles, drafts, adapters, benchmarks.

Spellings are those of the engines' argument tables; what a command means is their documentation's,
as docs/engines.md names it.
"""

from __future__ import annotations

import shlex
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.deployment import deployment_of
from planner.handover.autoscaling import METRICS, autoscaler, clients_within
from planner.handover.facts import started_engines
from planner.handover.launching import CONFIG_PATH, joined, launch
from planner.handover.loadtest import REQUESTS_PER_CLIENT, benchmark
from planner.handover.naming import gpu_named, model_named
from planner.handover.refusal import Unreadable, Unwritable
from planner.handover.shell import script
from planner.handover.startup import BEYOND_READING_S, READ_BYTES_PER_S, start_s
from planner.plans.planning import plan
from planner.scenario import Scenario

QWEN, DEEPSEEK = "Qwen/Qwen2.5-7B-Instruct", "deepseek-ai/DeepSeek-V3"
LOAD = {"isl": 1000, "osl": 200, "concurrency": 8}


def of(engine: str | None = "vllm", **fields: Any) -> Scenario:
    return Scenario(**{"model": QWEN, "gpu": "h100-sxm5", "engine": engine, **fields})


def values(engine: str, role: str = "both", **fields: Any) -> dict[str, Any]:
    """The arguments beside those that every worker has."""
    one = launch(of(engine, **fields), role)
    common = {one.facts.host[0], one.facts.port_argument}
    return {name: value for name, value in one.values.items() if name not in common}


@pytest.mark.parametrize(
    ("engine", "fields", "arguments"),
    [
        ("vllm", {}, {}),
        (
            "vllm",
            {"max_sequences": 8, "max_model_len": 4096, "memory_fraction": 0.8},
            {"max_num_seqs": 8, "max_model_len": 4096, "gpu_memory_utilization": 0.8},
        ),
        # A size of the whole replica in GiB.
        (
            "vllm",
            {"tp": 2, "kv_offload_bytes": 64 * 2**30},
            {"tensor_parallel_size": 2, "kv_offloading_size": 64.0},
        ),
        # SGLang: GB of each GPU, and a switch beside it: 64e9/2.
        (
            "sglang",
            {"tp": 2, "kv_offload_bytes": 64e9},
            {"tp_size": 2, "hicache_size": 32, "enable_hierarchical_cache": True},
        ),
        # TensorRT-LLM: bytes of each GPU, as a key of its file.
        (
            "trtllm",
            {"tp": 2, "kv_offload_bytes": 64e9},
            {"tensor_parallel_size": 2, "kv_cache_config.host_cache_size": 32_000_000_000},
        ),
        (
            "vllm",
            {"graphs": "off", "prefix_caching": False},
            {"enforce_eager": True, "enable_prefix_caching": False},
        ),
        (
            "sglang",
            {"graphs": "off", "prefix_caching": False},
            {"disable_cuda_graph": True, "disable_radix_cache": True},
        ),
        ("sglang", {"chunked_prefill": False}, {"chunked_prefill_size": -1}),
        ("trtllm", {"graphs": "off"}, {"cuda_graph_config": None}),
        ("vllm", {"kv": "fp8"}, {"kv_cache_dtype": "fp8"}),
        ("sglang", {"kv": "fp8"}, {"kv_cache_dtype": "fp8_e4m3"}),
        ("lmdeploy", {"kv": "int8"}, {"quant_policy": "8"}),
        # llama.cpp names the formats of keys and values apart.
        (
            "llama.cpp",
            {"kv": "q8_0"},
            {"split_mode": "none", "cache_type_k": "q8_0", "cache_type_v": "q8_0"},
        ),
        (
            "vllm",
            {"lora": {"adapters": 4, "rank": 32}},
            {"enable_lora": True, "max_loras": 4, "max_lora_rank": 32},
        ),
        (
            "trtllm",
            {"lora": {"adapters": 4, "rank": 32}},
            {"lora_config.max_loras": 4, "lora_config.max_lora_rank": 32},
        ),
    ],
)
def test_arguments_of_a_scenario(
    engine: str, fields: dict[str, Any], arguments: dict[str, Any]
) -> None:
    assert values(engine, **fields) == arguments


@pytest.mark.parametrize(
    ("engine", "model", "arguments"),
    [
        ("vllm", DEEPSEEK, {"speculative_config": {"method": "mtp", "num_speculative_tokens": 2}}),
        (
            "vllm",
            QWEN,
            {
                "speculative_config": {
                    "method": "ngram",
                    "num_speculative_tokens": 2,
                    "prompt_lookup_max": 4,
                }
            },
        ),
        # SGLang verifies the drafts and the token before them: 2 + 1.
        (
            "sglang",
            DEEPSEEK,
            {
                "speculative_algorithm": "NEXTN",
                "speculative_num_steps": 2,
                "speculative_eagle_topk": 1,
                "speculative_num_draft_tokens": 3,
            },
        ),
        ("sglang", QWEN, {"speculative_algorithm": "NGRAM", "speculative_num_draft_tokens": 3}),
        (
            "trtllm",
            DEEPSEEK,
            {"speculative_config.decoding_type": "MTP", "speculative_config.max_draft_len": 2},
        ),
    ],
)
def test_drafts(engine: str, model: str, arguments: dict[str, Any]) -> None:
    one = launch(of(engine, model=model, tp=8, speculation={"drafts": 2, "accepted": 1.5}))
    assert {name: one.values[name] for name in arguments} == arguments
    assert bool(one.notes) is (model == QWEN)  # n-grams are a choice that is said


def test_a_prefill_worker_drafts_nothing() -> None:
    fields = {"model": DEEPSEEK, "tp": 8, "speculation": {"drafts": 1}, "disaggregated": {}, **LOAD}
    assert "speculative_config" not in values("vllm", "prefill", **fields)
    assert "speculative_config" in values("vllm", "decode", **fields)


@pytest.mark.parametrize(
    ("engine", "decode", "prefill"),
    [
        (
            "vllm",
            {"kv_transfer_config": {"kv_connector": "NixlConnector", "kv_role": "kv_consumer"}},
            {"kv_transfer_config": {"kv_connector": "NixlConnector", "kv_role": "kv_producer"}},
        ),
        (
            "sglang",
            {"disaggregation_mode": "decode", "disaggregation_transfer_backend": "nixl"},
            {"disaggregation_mode": "prefill", "disaggregation_transfer_backend": "nixl"},
        ),
        (
            "lmdeploy",
            {"role": "Decode", "migration_backend": "DLSlime"},
            {"role": "Prefill", "migration_backend": "DLSlime"},
        ),
    ],
)
def test_roles(engine: str, decode: dict[str, Any], prefill: dict[str, Any]) -> None:
    assert values(engine, "decode", disaggregated={}, **LOAD) == decode
    assert values(engine, "prefill", disaggregated={}, **LOAD) == prefill


def test_prefill_workers_have_a_split_of_their_own() -> None:
    scenario = of(tp=4, nodes=2, pp=2, disaggregated={"tp": 2, "pp": 1}, **LOAD)
    decode, prefill = launch(scenario, "decode"), launch(scenario, "prefill")
    assert (decode.gpus, prefill.gpus) == (8, 2)
    assert "nnodes" not in prefill.values


@pytest.mark.parametrize(
    ("engine", "role", "fields", "message"),
    [
        (None, "both", {}, "engine: none is named; accepted: vllm"),
        ("mlc", "both", {}, "engine: mlc is not started here; accepted: vllm"),
        ("llama.cpp", "both", {"nodes": 2, "pp": 2}, "nodes: 2 with llama.cpp; accepted: 1"),
        ("llama.cpp", "prefill", {}, "disaggregated: not of llama.cpp; accepted: null"),
        ("llama.cpp", "both", {"lora": {"adapters": 1, "rank": 8}}, "lora: not of llama.cpp here"),
        (
            "lmdeploy",
            "both",
            {"speculation": {"drafts": 1}},
            "speculation: lmdeploy needs a draft model that no field names",
        ),
    ],
)
def test_what_an_engine_does_not_have(
    engine: str | None, role: str, fields: dict[str, Any], message: str
) -> None:
    with pytest.raises(Unwritable, match=f"^{message}"):
        launch(of(engine, **fields), role)


@pytest.mark.parametrize(
    ("engine", "command"),
    [
        ("vllm", ["vllm", "serve", QWEN]),
        ("sglang", ["python3", "-m", "sglang.launch_server", "--model-path", QWEN]),
        ("trtllm", ["trtllm-serve", QWEN]),
        ("llama.cpp", ["llama-server", "--hf-repo", f"{QWEN}-GGUF"]),
        ("lmdeploy", ["lmdeploy", "serve", "api_server", QWEN]),
    ],
)
def test_programs_and_their_model(engine: str, command: list[str]) -> None:
    one = launch(of(engine))
    assert one.command() == command
    assert one.command(("run",), "--model") == ["run", "--model", one.model]


def test_a_format_of_gguf_is_a_tag_of_the_repository() -> None:
    assert launch(of("llama.cpp", weights="q4_k_m")).model == f"{QWEN}-GGUF:Q4_K_M"


def test_words_of_arguments() -> None:
    """A switch alone, or negated; an object as JSON; those of `more` last."""
    one = launch(of(graphs="off", prefix_caching=False, speculation={"drafts": 1}))
    words = one.words({"node_rank": 1})
    assert "--enforce-eager" in words
    assert "--no-enable-prefix-caching" in words
    config = words[words.index("--speculative-config") + 1]
    assert config == '{"method":"ngram","num_speculative_tokens":1,"prompt_lookup_max":4}'
    assert words[-2:] == ["--node-rank", "1"]


def test_a_file_of_the_engine_holds_what_no_flag_says() -> None:
    one = launch(of("trtllm", block_size=64, kv="fp8", graphs="off", max_sequences=8))
    assert one.config["kv_cache_config"]["tokens_per_block"] == 64
    assert one.config["cuda_graph_config"] is None
    words = one.words()
    assert words[-1] == CONFIG_PATH
    assert words[words.index("--max_batch_size") + 1] == "8"
    assert "tokens_per_block" not in " ".join(words)
    assert launch(of("vllm", block_size=64)).config == {}


@settings(max_examples=50)
@given(st.lists(st.text("ab -$'\"\\={}", min_size=1, max_size=8), min_size=1, max_size=8))
def test_a_shell_reads_joined_words_as_they_were(words: list[str]) -> None:
    """Each option on a line of its own; a word that begins with $ is the shell's to put in."""
    words = ["run", *(word.lstrip("$") or "x" for word in words)]
    assert shlex.split(joined(words).replace("\\\n", " ")) == words
    (command,) = script(joined(words)).commands
    assert [word.text for word in command] == words


def test_one_option_a_line() -> None:
    assert (
        joined(["a", "b", "--c", "1", "-d", "-1", "--e"]) == "a b \\\n  --c 1 \\\n  -d -1 \\\n  --e"
    )


@pytest.mark.parametrize(
    ("text", "model", "weights", "exact"),
    [
        (QWEN, QWEN, None, True),
        (f"hf://{QWEN}", QWEN, None, True),
        (f"/models/{QWEN}/", QWEN, None, False),
        ("/mnt/Qwen2.5-7B-Instruct", QWEN, None, False),
        ("/mnt/Qwen2.5-7B-Instruct-Q8_0.gguf", QWEN, "q8_0", False),
        ("Qwen2.5-7B-Instruct-IQ4_XS-00001-of-00002.gguf", QWEN, "iq4_xs", True),
        ("Qwen/Qwen2.5-7B-Instruct-GGUF:Q4_K_M", QWEN, "q4_k_m", True),
        ("Qwen/Qwen2.5-7B-Instruct-GGUF", QWEN, None, True),
    ],
)
def test_names_of_models(text: str, model: str, weights: str | None, exact: bool) -> None:
    assert model_named(text, 1) == (model, weights, exact)


@pytest.mark.parametrize("text", ["nobody/nothing", "/etc/passwd.json", "x" * 500, "a.gguf", "///"])
def test_names_of_no_model(text: str) -> None:
    with pytest.raises(Unreadable, match=r"^line 7: "):
        model_named(text, 7)


@pytest.mark.parametrize(
    ("label", "gpu"),
    [
        ("NVIDIA-H100-80GB-HBM3", "h100-sxm5"),
        ("nvidia-h100-80gb", "h100-sxm5"),
        ("NVIDIA-L4", "l4"),
        ("NVIDIA-GeForce-RTX-9999", None),
        ("../secret.toml", None),
    ],
)
def test_labels_of_nodes(label: str, gpu: str | None) -> None:
    assert gpu_named(label) == gpu


def test_the_time_until_a_server_answers() -> None:
    """15.2 GB of 7.6e9 parameters in bf16 at 1 GB/s, and two minutes; the split changes nothing."""
    one, two = (deployment_of(of(tp=tp)) for tp in (1, 2))
    assert (READ_BYTES_PER_S, BEYOND_READING_S) == (1e9, 120.0)
    assert start_s(one) == pytest.approx(120 + 2 * one.spec.total_params / 1e9, rel=0.01)
    assert start_s(one) == pytest.approx(135.2, rel=0.01)
    assert start_s(two) == pytest.approx(start_s(one), rel=0.01)


def test_a_benchmark_has_the_clients_of_all_replicas() -> None:
    """8 clients of each of 3 replicas; 8 requests of each client; limits as goodput."""
    run, add = (
        benchmark(of(replicas=3, tp=2, tpot_ms=20, engine_version="0.33.0", **LOAD))
        .replace("\\\n", " ")
        .strip()
        .splitlines()
    )
    words = shlex.split(run)
    assert words[words.index("--max-concurrency") + 1] == "24"
    assert words[words.index("--num-prompts") + 1] == str(24 * REQUESTS_PER_CLIENT) == "192"
    assert words[words.index("--goodput") + 1] == "tpot:20"
    assert add.endswith("--engine vllm --tp 2 --engine-version 0.33.0")


def test_the_context_of_a_benchmark_of_llama_cpp_holds_all_clients() -> None:
    """(1,000 + 200) · 8 tokens."""
    text = benchmark(of("llama.cpp", gpu="rtx-4090", **LOAD)).replace("\\\n", " ")
    words = shlex.split(text.splitlines()[0])
    assert words[words.index("-c") + 1] == "9600"
    assert words[-2:] == [">", "bench.jsonl"]


def test_a_benchmark_needs_a_load() -> None:
    with pytest.raises(Unwritable, match=r"^concurrency, isl, osl: a benchmark needs all three"):
        benchmark(of(batch=8, context=1000))
    with pytest.raises(Unwritable, match=r"^bench: 'wrk' is not written; accepted: vllm, sglang"):
        benchmark(of(**LOAD), "wrk")


def test_the_most_clients_within_a_limit_are_the_most() -> None:
    scenario = of(tpot_ms=12, **LOAD)
    most = clients_within(scenario, deployment_of(scenario))
    assert most > 8

    def tpot_ms(clients: int) -> float:
        serving = plan(of(**{**LOAD, "concurrency": clients})).serving
        assert serving is not None
        return serving.tpot_s.p50 * 1e3

    assert tpot_ms(most) <= 12 < tpot_ms(most + 1)
    strict = scenario.model_copy(update={"percentile": 90})
    assert clients_within(strict, deployment_of(strict)) < most


def test_without_limits_the_most_clients_are_those_without_a_queue() -> None:
    scenario = of(max_sequences=24, **LOAD)
    assert clients_within(scenario, deployment_of(scenario)) == pytest.approx(24, abs=1)


@pytest.mark.parametrize("engine", started_engines())
def test_autoscalers_of_keda_sum_running_and_waiting(engine: str) -> None:
    scenario = of(engine, replicas=2, max_sequences=16, **LOAD)
    content, note = autoscaler(scenario, "keda", "llm")
    trigger = content["spec"]["triggers"][0]["metadata"]
    running, waiting = METRICS[engine]
    assert trigger["query"] == f'sum({running}{{pod=~"llm-.*"}}) + sum({waiting}{{pod=~"llm-.*"}})'
    assert int(trigger["threshold"]) == clients_within(scenario, deployment_of(scenario))
    assert (content["spec"]["minReplicaCount"], content["spec"]["maxReplicaCount"]) == (2, 4)
    assert "twice the replicas" in note


@pytest.mark.parametrize(
    ("fields", "form", "most", "message"),
    [
        (LOAD, "vpa", None, "autoscale: 'vpa' is not written; accepted: hpa, keda"),
        ({}, "hpa", None, "concurrency, isl, osl, engine: an autoscaler needs the load"),
        ({**LOAD, "tpot_ms": 0.1}, "hpa", None, "tpot_ms, ttft_ms: one client of a replica misses"),
        ({**LOAD, "replicas": 4}, "hpa", 3, "max_replicas: 3 is below replicas = 4"),
    ],
)
def test_autoscalers_that_cannot_be(
    fields: dict[str, Any], form: str, most: int | None, message: str
) -> None:
    with pytest.raises(Unwritable, match=f"^{message}"):
        autoscaler(of(**fields), form, "llm", most)
