"""Command lines read: every engine, every split, and what is not understood."""

from __future__ import annotations

from typing import Any

import pytest

from planner.engines.versions import numbers
from planner.errors import InvalidInput
from planner.handover.arguments import parser_of, parser_versions
from planner.handover.facts import engine_facts, image_of, started_engines
from planner.handover.reading import Reading
from planner.handover.shell import Word, script
from planner.handover.sources import read_files

LLAMA = "meta-llama/Llama-3.1-70B-Instruct"
DEEPSEEK = "deepseek-ai/DeepSeek-V3"
QWEN = "Qwen/Qwen2.5-7B-Instruct"


def read(text: str, **options: Any) -> Reading:
    (one,) = read_files({"run.sh": text}, {"gpu": "h100-sxm5", **options})
    return one.reading


def fields(reading: Reading) -> dict[str, Any]:
    values = reading.scenario.model_dump(exclude_defaults=True)
    return {k: v for k, v in values.items() if k not in {"model", "gpu", "engine"}}


@pytest.mark.parametrize(
    ("command", "engine", "expected"),
    [
        (f"vllm serve {LLAMA} -tp 4 -pp 2", "vllm", {"tp": 4, "pp": 2}),
        (f"vllm serve {LLAMA} --tensor_parallel_size=4", "vllm", {"tp": 4}),
        # data parallelism of a dense model is whole replicas, of one with experts it is attention's
        (f"vllm serve {LLAMA} -tp 4 -dp 2", "vllm", {"tp": 4, "replicas": 2}),
        (
            f"vllm serve {DEEPSEEK} -dp 16 --enable-expert-parallel",
            "vllm",
            {"attention_dp": 16, "ep": 16},
        ),
        (f"vllm serve {LLAMA} --max-model-len 32k", "vllm", {"max_model_len": 32_000}),
        (f"vllm serve {LLAMA} --max-model-len 32K", "vllm", {"max_model_len": 32_768}),
        (f"vllm serve {LLAMA} --max-model-len auto", "vllm", {}),
        (f"vllm serve {LLAMA} --no-enable-prefix-caching", "vllm", {"prefix_caching": False}),
        (f"vllm serve {LLAMA} --enforce-eager", "vllm", {"graphs": "off"}),
        # GiB over all ranks of tensor parallelism
        (
            f"vllm serve {LLAMA} -tp 4 --kv-offloading-size 64",
            "vllm",
            {"tp": 4, "kv_offload_bytes": 64 * 2**30},
        ),
        (
            (
                f"vllm serve {LLAMA} --speculative-config.method ngram "
                "--speculative-config.num_speculative_tokens 3"
            ),
            "vllm",
            {"speculation": {"drafts": 3}},
        ),
        (
            f"sglang serve --model-path {DEEPSEEK} --tp-size 16 --attn-dp-size 4 --ep-size 16",
            "sglang",
            {"tp": 4, "attention_dp": 4, "ep": 16},
        ),
        # argparse takes a flag shortened as long as it is unique
        (
            (
                f"python3 -m sglang.launch_server --model {DEEPSEEK} --tp 8 --dp 8 "
                "--enable-dp-attention"
            ),
            "sglang",
            {"attention_dp": 8},
        ),
        (
            f"python -m sglang.launch_server --model-path {LLAMA} --tp-size 4 --dp-size 2",
            "sglang",
            {"tp": 4, "replicas": 2},
        ),
        # a tree of one branch: as many drafts as steps, one token more to verify
        (
            (
                f"sglang serve --model-path {DEEPSEEK} --tp-size 8 --speculative-algorithm EAGLE "
                "--speculative-num-steps 3 --speculative-num-draft-tokens 4"
            ),
            "sglang",
            {"tp": 8, "speculation": {"drafts": 3}},
        ),
        (
            f"sglang serve --model-path {LLAMA} --chunked-prefill-size -1",
            "sglang",
            {"chunked_prefill": False},
        ),
        (
            f"trtllm-serve {DEEPSEEK} --tp_size 8 --ep_size 4 --enable_attention_dp",
            "trtllm",
            {"attention_dp": 8, "ep": 4},
        ),
        (
            f"llama-server -hf x/{QWEN.partition('/')[2]}-GGUF:Q4_K_M -c 32768 -np 4 -ngl 99",
            "llama.cpp",
            {"weights": "q4_k_m", "max_model_len": 32_768, "max_sequences": 4},
        ),
        (
            f"llama-server -m /models/{QWEN.partition('/')[2]}-Q8_0.gguf -sm row -ts 1,1 -ngl 10",
            "llama.cpp",
            {"weights": "q8_0", "tp": 2, "layers_on_gpu": 10},
        ),
        (
            f"lmdeploy serve api_server {QWEN} --tp 2 --quant-policy 8 --session-len 8192",
            "lmdeploy",
            {"tp": 2, "kv": "int8", "max_model_len": 8192},
        ),
        (
            f"docker run --gpus all -p 8000:8000 vllm/vllm-openai:v0.24.0 --model {QWEN} -tp 2",
            "vllm",
            {"tp": 2, "engine_version": "0.24.0"},
        ),
        (f"TP=4 && exec vllm serve {LLAMA} -tp ${{TP}}", "vllm", {"tp": 4}),
    ],
)
def test_a_command_line_is_read(command: str, engine: str, expected: dict[str, Any]) -> None:
    reading = read(command)
    assert reading.scenario.engine == engine
    assert fields(reading) == expected
    assert reading.not_understood == []


def test_an_engines_own_yaml_completes_its_command_line() -> None:
    reading = read(
        "cat > extra.yaml <<'EOF'\n"
        "kv_cache_config:\n"
        "  free_gpu_memory_fraction: 0.8\n"
        "  enable_block_reuse: false\n"
        "cuda_graph_config: null\n"
        "speculative_config: {decoding_type: MTP, max_draft_len: 2}\n"
        "EOF\n"
        f"trtllm-serve {DEEPSEEK} --tp_size 8 --config extra.yaml\n"
    )
    assert fields(reading) == {
        "tp": 8,
        "memory_fraction": 0.8,
        "prefix_caching": False,
        "graphs": "off",
        "speculation": {"drafts": 2},
    }
    (fraction,) = [o for o in reading.origins if o.field == "memory_fraction"]
    assert (fraction.line, fraction.source) == (3, "given")


def test_what_is_not_understood_is_listed_with_its_line() -> None:
    reading = read(
        f"vllm serve {LLAMA} \\\n  --no-such-flag 3 \\\n  --tensor-parallel-size $TP \\\n"
        "  --trust-remote-code \\\n  --max-num-seqs many\n"
    )
    assert [(x.line, x.text) for x in reading.not_understood] == [
        (2, "--no-such-flag 3"),
        (3, "--tensor-parallel-size $TP"),
        (5, "--max-num-seqs many"),
    ]
    assert [(x.line, x.text) for x in reading.unused] == [(4, "--trust-remote-code")]


def test_every_field_says_where_it_comes_from() -> None:
    reading = read(f"# start\nvllm serve {LLAMA} -tp 4", tpot_ms=30)
    origins = {o.field: (o.source, o.line) for o in reading.origins if o.source != "default"}
    assert origins == {
        "gpu": ("option", None),
        "tpot_ms": ("option", None),
        "model": ("given", 2),
        "engine": ("given", 2),
        "tp": ("given", 2),
    }


@pytest.mark.parametrize(("version", "fraction"), [("0.19.1", 0.9), ("0.33.0", 0.92)])
def test_defaults_are_those_of_the_version(version: str, fraction: float) -> None:
    """vLLM's packages: 0.9 to 0.19.1, 0.92 from 0.20.0 on (docs/engines.md)."""
    reading = read(f"vllm serve {LLAMA} -tp 4", engine_version=version)
    defaults = {o.field: o for o in reading.origins if o.source == "default"}
    assert defaults["memory_fraction"].value == fraction
    assert version in defaults["memory_fraction"].text


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("echo hello", "no engine is started"),
        ("vllm serve 'never closed", "line 1: a quote"),
        ("vllm serve --port 8000", "no model is named"),
        ("vllm serve nobody/has-this-model", "line 1: model 'nobody/has-this-model'"),
        ("", "nothing in it"),
        ("vllm serve x\0", "not text"),
        (f"vllm serve {LLAMA} --gpu-memory-utilization 1.5", "line 1: memory_fraction"),
    ],
)
def test_what_cannot_be_read_is_refused_in_one_line(text: str, message: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        read(text)
    assert message in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_shell_text_is_split_and_never_run() -> None:
    result = script("A=1\nexport B='two words'\nrun \"$A\" $B $(rm -rf /) `id` \\\n last # no\n")
    (command,) = result.commands
    assert [(w.text, w.line, w.open) for w in command] == [
        ("run", 3, False),
        ("1", 3, False),
        ("two words", 3, False),
        ("$(rm -rf /)", 3, True),
        ("`id`", 3, True),
        ("last", 4, False),
    ]


@pytest.mark.parametrize(
    ("image", "expected"),
    [
        ("vllm/vllm-openai:v0.33.0", ("vllm", "0.33.0")),
        ("docker.io/lmsysorg/sglang:v0.5.23-cu129", ("sglang", "0.5.23")),
        ("nvcr.io/nvidia/tensorrt-llm/release:1.2.0", ("trtllm", "1.2.0")),
        ("ghcr.io/ggml-org/llama.cpp:server-cuda-b9445", ("llama.cpp", "9445")),
        ("vllm/vllm-openai:latest", ("vllm", None)),
        ("registry.local:5000/vllm-openai@sha256:0", ("vllm", None)),
        ("nginx:1.27", (None, None)),
    ],
)
def test_an_image_names_engine_and_version(image: str, expected: tuple[str, str]) -> None:
    assert image_of(image) == expected


@pytest.mark.parametrize("engine", started_engines())
def test_every_argument_named_in_the_data_is_one_of_the_newest_release(engine: str) -> None:
    facts, parser = engine_facts(engine), parser_of(engine)
    named = {row["arguments"][0] for row in facts.fields}
    named |= {value for key, value in facts.split.items() if key != "rule"}
    named |= {facts.host[0], facts.port_argument}
    keys = {name for name in named if name.partition(".")[0] in facts.config.get("known", ())}
    assert named - keys <= set(parser.arguments)
    assert parser_versions(engine) == tuple(sorted(parser_versions(engine), key=numbers))


def test_a_flag_of_another_release_is_not_understood() -> None:
    words = [Word("--attn-dp-size", 1), Word("8", 1)]
    assert parser_of("sglang", "0.5.23").parse(words).given["attn_dp_size"].value == 8
    old = parser_of("sglang", "0.5.14").parse(words)
    assert old.given == {}
    assert old.faults[0].why == "not an argument of sglang 0.5.14"
