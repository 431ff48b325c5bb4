"""From files to scenarios: which line says what, what wins, and two kinds of workers as one.

Precedence is that of docs/handover.md: the question's options, the file's arguments, what `planner
manifest` noted in it, the engine's defaults.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from planner.errors import InvalidInput
from planner.handover.notes import noted, noted_in_comment
from planner.handover.reading import Deployed, has_experts
from planner.handover.refusal import Unreadable
from planner.handover.sources import read_files
from planner.models import get_model

QWEN, DEEPSEEK = "Qwen/Qwen2.5-7B-Instruct", "deepseek-ai/DeepSeek-V3"


def read(text: str | dict[str, str], **options: Any) -> list[Deployed]:
    texts = {"f": text} if isinstance(text, str) else text
    return read_files(texts, {"gpu": "h100-sxm5", **options})


def fields(one: Deployed) -> dict[str, Any]:
    values = one.reading.scenario.model_dump(exclude_defaults=True)
    return {k: v for k, v in values.items() if k not in {"model", "gpu", "engine"}}


def sources(one: Deployed) -> dict[str, tuple[str, int | None]]:
    rows = [row for row in one.reading.origins if row.source != "default"]
    return {row.field: (row.source, row.line) for row in rows}


NOTED = (
    '# decode-planner: {"gpu":"h200-sxm","isl":500,"osl":50,"concurrency":4,"tp":8}\n'
    f"vllm serve {QWEN} \\\n  --tensor-parallel-size 2\n"
)


def test_what_was_noted_completes_and_does_not_contradict() -> None:
    """The arguments say tp = 2, whatever was noted when the file was written."""
    (one,) = read_files({"f": NOTED})
    assert fields(one) == {"tp": 2, "isl": 500, "osl": 50, "concurrency": 4}
    assert one.reading.scenario.gpu == "h200-sxm"
    origin = sources(one)
    assert origin["tp"] == ("given", 3)
    assert origin["isl"] == ("noted", 1)


def test_a_question_wins_over_the_file() -> None:
    (one,) = read_files({"f": NOTED}, {"gpu": "l4", "isl": 900, "tp": 1, "ttft_ms": None})
    assert (one.reading.scenario.gpu, fields(one)["isl"]) == ("l4", 900)
    assert sources(one)["isl"] == ("option", None)
    assert sources(one)["tp"] == ("option", None)
    assert "ttft_ms" not in fields(one)


@pytest.mark.parametrize(
    ("text", "content", "line"),
    [
        ('a\n# decode-planner: {"isl": 1}\n', {"isl": 1}, 2),
        ('\n\n\t#decode-planner:{"a":{"b":2}} \nrest', {"a": {"b": 2}}, 3),
        ('x # decode-planner: {"isl": 1}\n', {}, 1),  # no line of its own
        ("# decode-planner: [1]\n", {}, 1),
        ("", {}, 1),
    ],
)
def test_notes_in_comments(text: str, content: dict[str, Any], line: int) -> None:
    assert noted_in_comment(text) == (content, line)


@pytest.mark.parametrize("text", ["[1]", "3", "{", "null", "[" * 10_000])
def test_notes_that_are_none_name_their_line(text: str) -> None:
    with pytest.raises(Unreadable, match="line 7: what planner noted is no JSON object"):
        noted(text, 7)


def test_two_roles_are_one_deployment() -> None:
    """The decode worker's split is the scenario's, and what differs of the other is noted."""
    decode, prefill = (
        f"vllm serve {QWEN} -tp {tp} --kv-transfer-config "
        f"'{json.dumps({'kv_connector': 'NixlConnector', 'kv_role': role})}'\n"
        for tp, role in ((4, "kv_consumer"), (2, "kv_producer"))
    )
    load = {"isl": 500, "osl": 50, "concurrency": 4}
    for text in (decode + prefill, prefill + decode):
        (one,) = read(text, **load)
        assert fields(one)["tp"] == 4
        assert one.reading.scenario.disaggregated is not None
        assert one.reading.scenario.disaggregated.tp == 2
        assert one.workers[one.main].role == "decode"
    (same,) = read(decode + prefill.replace("-tp 2", "-tp 4"), **load)
    assert same.reading.scenario.disaggregated is not None
    assert same.reading.scenario.disaggregated.tp is None


def test_commands_of_one_text_are_deployments_of_their_own() -> None:
    first, second = read(f"vllm serve {QWEN}\nsglang serve --model-path {QWEN} --tp-size 2\n")
    assert (first.reading.scenario.engine, second.reading.scenario.engine) == ("vllm", "sglang")
    assert (first.reading.line, second.reading.line) == (1, 2)
    assert fields(second) == {"tp": 2}


def test_a_configuration_of_its_own_file_completes_the_others() -> None:
    texts = {
        "run.sh": f"trtllm-serve {QWEN} --extra_llm_api_options extra.yaml\n",
        "extra.yaml": "max_batch_size: 16\nkv_cache_config: {free_gpu_memory_fraction: 0.7}\n",
    }
    (one,) = read(texts)
    assert fields(one) == {"max_sequences": 16, "memory_fraction": 0.7}
    assert one.file == "run.sh"
    (alone,) = read({"run.sh": texts["run.sh"]})
    assert alone.reading.not_understood[0].why.startswith("the file it names is not at hand")
    # A configuration by itself starts nothing.
    with pytest.raises(Unreadable, match=r"^extra\.yaml: no engine is started in it; accepted"):
        read({"extra.yaml": texts["extra.yaml"]})


@pytest.mark.parametrize(
    ("text", "speculation"),
    [
        (f"vllm serve {QWEN} --speculative-config '{{\"num_speculative_tokens\": 3}}'", 3),
        (f"vllm serve {QWEN} --speculative-config '{{\"num_speculative_tokens\": true}}'", None),
        (f'vllm serve {QWEN} --speculative-config \'{{"method": "ngram"}}\'', None),
        # SGLang drafts only with an algorithm named.
        (f"sglang serve --model-path {QWEN} --speculative-num-steps 3", None),
        (
            f"sglang serve --model-path {QWEN} --speculative-num-steps 3 --speculative-algorithm X",
            3,
        ),
    ],
)
def test_drafts(text: str, speculation: int | None) -> None:
    (one,) = read(text)
    drafting = one.reading.scenario.speculation
    assert (drafting.drafts if drafting else None) == speculation
    if speculation is None and "vllm" in text:
        assert [x.why for x in one.reading.not_understood] == ["says no number of drafts"]


@pytest.mark.parametrize(
    ("line", "lora"),
    [
        ("--enable-lora", (1, 16)),  # vLLM holds one adapter of rank 16 unless told otherwise
        ("--enable-lora --max-loras 4 --max-lora-rank 64", (4, 64)),
        ("--max-loras 4", None),
        ("--no-enable-lora --max-loras 4", None),
    ],
)
def test_adapters(line: str, lora: tuple[int, int] | None) -> None:
    (one,) = read(f"vllm serve {QWEN} {line}")
    held = one.reading.scenario.lora
    assert ((held.adapters, held.rank) if held else None) == lora


@pytest.mark.parametrize(("label", "gpu"), [("NVIDIA-H200", "h200-sxm"), ("NVIDIA-X999", None)])
def test_the_accelerator_of_a_label(label: str, gpu: str | None) -> None:
    text = (
        "kind: Deployment\nspec:\n  template:\n    spec:\n"
        f"      nodeSelector: {{nvidia.com/gpu.product: {label}}}\n"
        f"      containers: [{{command: [vllm, serve, {QWEN}]}}]\n"
    )
    if gpu:
        (one,) = read_files({"f": text})
        assert one.reading.scenario.gpu == gpu
        assert sources(one)["gpu"] == ("given", 5)
        return
    with pytest.raises(Unreadable, match=r"^f: gpu: f does not say which; give --gpu"):
        read_files({"f": text})
    (known,) = read(text, gpu="l4")
    assert known.reading.scenario.gpu == "l4"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("vllm serve --port 80", "line 1: no model is named; give --model"),
        (f"vllm serve {QWEN} \\\n --gpu-memory-utilization 7", "line 2: memory_fraction"),
        (f'# decode-planner: {{"isl": -1}}\nvllm serve {QWEN}', "line 1: isl"),
        (f'# decode-planner: {{"gpu": "/etc/passwd.json"}}\nvllm serve {QWEN}', "gpu"),
    ],
)
def test_what_is_refused_says_where(text: str, message: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        read_files({"f": text}, {} if "passwd" in text else {"gpu": "l4"})
    assert message in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_path_is_looked_up_by_its_last_part_and_said_to_be() -> None:
    (one,) = read("vllm serve /models/Qwen2.5-7B-Instruct")
    (origin,) = [row for row in one.reading.origins if row.field == "model"]
    assert (origin.source, origin.value) == ("assumed", QWEN)
    (named,) = read("vllm serve /models/x", model=QWEN)
    assert sources(named)["model"] == ("option", None)


def test_which_models_have_experts() -> None:
    """Data parallelism of a dense model is copies of it."""
    assert has_experts(get_model(DEEPSEEK))
    assert not has_experts(get_model(QWEN))
    models = (QWEN.replace("7B", "72B"), DEEPSEEK)
    dense, mixture = (read(f"vllm serve {model} -tp 8 -dp 2")[0] for model in models)
    assert fields(dense) == {"tp": 8, "replicas": 2}
    assert fields(mixture) == {"tp": 8, "attention_dp": 2}


def test_arguments_that_no_figure_depends_on_are_listed_once() -> None:
    (one,) = read(f"vllm serve {QWEN} --port 80 \\\n --trust-remote-code --max-num-seqs 4")
    assert [(row.line, row.text) for row in one.reading.unused] == [
        (1, "--port 80"),
        (2, "--trust-remote-code"),
    ]
