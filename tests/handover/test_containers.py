"""Containers and pods as Kubernetes and compose define them, and what of them a plan takes up.

Meanings are those of the Kubernetes API reference (container v1 core, probe v1, resource
requirements), of the compose specification (environment, entrypoint, shm_size) and of the engines'
own images, recalled from memory on 2026-12-01.
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.handover.arguments import Fault
from planner.handover.documents import documents
from planner.handover.pods import (
    MOST_REPLICAS,
    at,
    container_worker,
    count,
    environment,
    is_pinned,
    items,
    mapping,
    note_annotation,
    pod_worker,
    requested,
    shared_bytes,
    words_of,
)
from planner.handover.refusal import Unreadable

MODEL = "Qwen/Qwen2.5-7B-Instruct"


def read(text: str) -> Any:
    (document,) = documents(text)
    return document


@pytest.mark.parametrize(
    ("value", "default", "result"),
    [
        (3, 1, 3),
        (0, 1, 0),
        ("12", 1, 12),
        ("1.5", 7, 7),
        ("", 7, 7),
        ("9" * 5000, 7, 7),
        ("¹", 7, 7),  # a digit to Unicode, and to no int
        (True, 7, 7),  # YAML's `yes`, which is no count
        (-1, 7, 7),
        (2.0, 7, 7),
        (None, 7, 7),
        ([2], 7, 7),
        (MOST_REPLICAS, 7, MOST_REPLICAS),
        (MOST_REPLICAS + 1, 7, 7),
    ],
)
def test_counts(value: Any, default: int, result: int) -> None:
    assert count(value, default) == result


@settings(max_examples=40)
@given(st.one_of(st.none(), st.integers(), st.text(), st.lists(st.integers()), st.booleans()))
def test_what_is_no_object_is_an_empty_one(value: Any) -> None:
    """A file may hold anything anywhere: a path through it never raises."""
    assert mapping(value) == {}
    assert items(value) == (value if isinstance(value, list) else [])
    assert at({"spec": value}, "spec", "template", "spec") is None
    assert 0 <= count(value) <= MOST_REPLICAS


@pytest.mark.parametrize(
    ("text", "variables"),
    [
        ("env: [{name: TP, value: '4'}, {name: B, value: x}]", {"TP": "4", "B": "x"}),
        # What a Secret or the pod's own status gives is not in the file.
        ("env: [{name: T, valueFrom: {secretKeyRef: {name: a, key: b}}}]", {}),
        ("env: [{name: N, value: null}]", {}),
        (
            "environment: {TP: 4, A: true, B: false, HF_TOKEN: null}",
            {"TP": "4", "A": "true", "B": "false"},
        ),
        ("environment: ['TP=4', 'ARGS=--a=b']", {"TP": "4", "ARGS": "--a=b"}),
        # Compose: a name alone is given the value that the host has, which is not in the file.
        ("environment: [HF_TOKEN, 'EMPTY=']", {"EMPTY": ""}),
        ("env: nothing", {}),
        ("image: x", {}),
    ],
)
def test_variables_of_a_container(text: str, variables: dict[str, str]) -> None:
    assert environment(read(text)) == variables


def test_a_name_alone_is_not_known_to_the_command() -> None:
    """Else `serve $MODEL` would be read as `serve` of nothing."""
    service = read("environment: [MODEL]\ncommand: [serve, $MODEL]\n")
    (_, model) = words_of(service, "command", environment(service), [])
    assert (model.text, model.open) == ("$MODEL", True)


def test_words_are_items_with_their_lines() -> None:
    container = read("args:\n- --tp\n- '4'\n- |\n  first\n  $SECOND\n- $(TP)\n- $UNKNOWN\n")
    faults: list[Fault] = []
    words = words_of(container, "args", {"TP": "4"}, faults)
    assert [(word.text, word.line, word.open) for word in words] == [
        ("--tp", 2, False),
        ("4", 3, False),
        # A text of several lines is a script: its variables are the shell's to put in.
        ("first\n$SECOND\n", 5, False),
        ("4", 7, False),
        ("$UNKNOWN", 8, True),
    ]
    assert faults == []


def test_words_that_are_no_text() -> None:
    """The API server takes texts alone; a number is most likely meant as one."""
    container = read("args:\n- --tp\n- 4\n- true\n- {a: 1}\n- null\n")
    faults: list[Fault] = []
    assert [word.text for word in words_of(container, "args", {}, faults)] == ["--tp", "4", "true"]
    assert [(fault.line, fault.text) for fault in faults] == [
        (3, "4"),
        (4, "true"),
        (5, "{'a': 1}"),
        (6, "None"),
    ]
    assert ["quotes" in fault.why for fault in faults] == [True, True, False, False]


def test_a_command_as_one_text_is_split() -> None:
    service = read("image: x\n\ncommand: serve --tp $TP && echo done\n")
    words = words_of(service, "command", {"TP": "2"}, [])
    assert [word.text for word in words] == ["serve", "--tp", "2", "echo", "done"]
    assert {word.line for word in words} == {3}
    assert words_of(service, "args", {}, []) == []


@pytest.mark.parametrize(
    ("image", "pinned"),
    [
        (None, False),
        ("", False),
        ("vllm/vllm-openai", False),
        ("vllm/vllm-openai:latest", False),
        ("vllm/vllm-openai:nightly", False),
        ("vllm/vllm-openai:main", False),
        ("vllm/vllm-openai:v0.11.0", True),
        ("vllm/vllm-openai:latest@sha256:0123", True),
        ("vllm/vllm-openai@sha256:0123", True),
        # The port of a registry is no tag.
        ("registry.example:5000/vllm-openai", False),
        ("registry.example:5000/vllm-openai:v1", True),
    ],
)
def test_images_that_do_not_move(image: str | None, pinned: bool) -> None:
    assert is_pinned(image) is pinned


@pytest.mark.parametrize(
    ("text", "gpus", "line"),
    [
        ("name: a\nresources:\n  limits:\n    nvidia.com/gpu: '4'\n", 4, 4),
        ("resources: {requests: {amd.com/gpu: 8}}\n", 8, 1),
        ("resources:\n  limits: {cpu: 8}\n  requests:\n    nvidia.com/gpu: 2\n", 2, 4),
        # Limits are what a container gets where both are said.
        ("resources: {limits: {nvidia.com/gpu: 2}, requests: {nvidia.com/gpu: 1}}\n", 2, 1),
        ("resources: {limits: {nvidia.com/gpu: none}}\n", 0, 1),
        ("resources: {limits: {gpu: 2}}\n", 2, 1),  # Dynamo's short name
        ("name: a\nresources: {limits: {cpu: 8, memory: 1Gi}}\n", None, 2),
        ("name: a\nimage: b\n", None, 1),
    ],
)
def test_gpus_that_a_container_requests(text: str, gpus: int | None, line: int) -> None:
    assert requested(read(text)) == (gpus, line)


def test_probes_kill_after_delay_and_failures() -> None:
    """Kubernetes: no delay, every 10 s and 3 failures where nothing else is said.

    30 + 5 · 6 = 60 s and 0 + 10 · 3 = 30 s; a readiness probe kills nothing.
    """
    worker = container_worker(
        read(
            f"command: [vllm, serve, {MODEL}]\n"
            "startupProbe: {initialDelaySeconds: 30, periodSeconds: 5, failureThreshold: 6}\n"
            "livenessProbe: {httpGet: {path: /health}}\n"
            "readinessProbe: {periodSeconds: 1}\n"
        ),
        {},
    )
    assert worker is not None
    assert [(one.kind, one.line, one.allowed_s) for one in worker.probes] == [
        ("startup", 2, 60.0),
        ("liveness", 3, 30.0),
    ]


def test_a_container_that_starts_an_engine() -> None:
    worker = container_worker(
        read(
            "name: server\n"
            "image: docker.io/vllm/vllm-openai:v0.11.0\n"
            "env: [{name: TP, value: '2'}]\n"
            f"args: [{MODEL}, --tensor-parallel-size, $(TP)]\n"
        ),
        {},
    )
    assert worker is not None
    assert (worker.engine, worker.version, worker.pinned) == ("vllm", "0.11.0", True)
    assert worker.model is not None
    assert (worker.model.text, worker.model.line) == (MODEL, 4)
    assert worker.parsed.given["tensor_parallel_size"].value == 2
    assert worker.gpus is None


@pytest.mark.parametrize(
    "text",
    [
        "image: nginx:1.27\nargs: [serve]\n",
        "image: nginx:1.27\n",
        # SGLang's image starts a shell, so arguments alone start no server.
        f"image: lmsysorg/sglang:v0.5.3\nargs: [--model-path, {MODEL}]\n",
        "command: [sleep, infinity]\nimage: busybox\n",
    ],
)
def test_a_container_that_starts_none(text: str) -> None:
    assert container_worker(read(text), {}) is None


def test_arguments_alone_go_to_the_engine_of_the_object() -> None:
    """KServe gives a container without a command that of vLLM."""
    container = read(f"image: own/build:3\nargs: [{MODEL}, --max-num-seqs, '8']\n")
    assert container_worker(container, {}) is None
    worker = container_worker(container, {}, "vllm")
    assert worker is not None
    assert (worker.engine, worker.version) == ("vllm", None)
    assert worker.parsed.given["max_num_seqs"].value == 8


def test_an_image_in_two_parts_and_arguments_in_a_variable() -> None:
    """Helm values write the image as repository and tag; llm-d passes arguments by the variable."""
    worker = container_worker(
        read(
            "image: {repository: vllm/vllm-openai, tag: v0.11.2}\n"
            "env:\n- name: VLLM_ADDITIONAL_ARGS\n  value: --max-num-seqs 32\n"
            f"args: [{MODEL}]\n"
        ),
        {},
    )
    assert worker is not None
    assert worker.version == "0.11.2"
    assert worker.parsed.given["max_num_seqs"].value == 32


def test_a_shell_in_a_container_and_the_file_it_writes() -> None:
    text = (
        "command: [bash, -lc]\n"
        "args:\n"
        "- |\n"
        "  cat > /tmp/o.yaml <<'EOF'\n"
        "  kv_cache_config:\n"
        "    free_gpu_memory_fraction: 0.8\n"
        "  EOF\n"
        f"  exec trtllm-serve {MODEL} --extra_llm_api_options /tmp/o.yaml\n"
    )
    worker = container_worker(read(text), {})
    assert worker is not None
    assert worker.engine == "trtllm"
    fraction = worker.parsed.given["kv_cache_config.free_gpu_memory_fraction"]
    assert (fraction.value, fraction.line) == (0.8, 6)
    assert worker.line == 8


POD = """nodeSelector:
  cloud.google.com/gke-accelerator: nvidia-l4
containers:
- name: proxy
  image: envoyproxy/envoy:v1.30
- name: main
  image: vllm/vllm-openai:v0.11.0
  args: [{model}]
- name: other
  image: vllm/vllm-openai:v0.10.0
  args: [{model}]
volumes:
- name: shm
  emptyDir: {{medium: Memory}}
"""


@pytest.mark.parametrize(("prefer", "version"), [(None, "0.11.0"), ("other", "0.10.0")])
def test_a_pod_runs_the_first_container_that_starts_an_engine(
    prefer: str | None, version: str
) -> None:
    worker = pod_worker(read(POD.format(model=MODEL)), {}, prefer=prefer)
    assert worker is not None
    assert worker.version == version
    assert (worker.gpu, worker.gpu_line, worker.shared_memory) == ("nvidia-l4", 2, True)


def test_the_accelerator_of_an_affinity() -> None:
    pod = read(
        f"containers: [{{command: [vllm, serve, {MODEL}]}}]\n"
        "affinity:\n"
        "  nodeAffinity:\n"
        "    requiredDuringSchedulingIgnoredDuringExecution:\n"
        "      nodeSelectorTerms:\n"
        "      - matchExpressions:\n"
        "        - {key: zone, operator: In, values: [a]}\n"
        "        - key: nvidia.com/gpu.product\n"
        "          operator: In\n"
        "          values: [NVIDIA-H200]\n"
    )
    worker = pod_worker(pod, {})
    assert worker is not None
    assert (worker.gpu, worker.gpu_line, worker.shared_memory) == ("NVIDIA-H200", 10, False)


@pytest.mark.parametrize("values", ["[NVIDIA-H200, NVIDIA-L4]", "[]", "[3]", "NVIDIA-H200"])
def test_an_affinity_of_several_names_none(values: str) -> None:
    rule = f"{{key: nvidia.com/gpu.product, operator: In, values: {values}}}"
    terms = f"{{nodeSelectorTerms: [{{matchExpressions: [{rule}]}}]}}"
    required = f"{{requiredDuringSchedulingIgnoredDuringExecution: {terms}}}"
    worker = pod_worker(
        read(
            f"containers: [{{command: [vllm, serve, {MODEL}]}}]\n"
            f"affinity: {{nodeAffinity: {required}}}\n"
        ),
        {},
    )
    assert worker is not None
    assert worker.gpu is None


@pytest.mark.parametrize("pod", [None, [], {}, {"containers": "x"}, {"containers": [None, 3]}])
def test_pods_without_an_engine(pod: Any) -> None:
    assert pod_worker(pod, {}) is None


def test_what_was_noted_is_taken_up() -> None:
    worker = pod_worker(read(f"containers: [{{command: [vllm, serve, {MODEL}]}}]"), {})
    assert worker is not None
    noted = "metadata:\n  annotations:\n    decode-planner/question: '{\"isl\": 1000}'\n"
    note_annotation(worker, None, read("metadata: {annotations: {other: x}}"))
    assert worker.question == {}
    note_annotation(worker, read(noted))
    assert (worker.question, worker.question_line) == ({"isl": 1000}, 3)
    with pytest.raises(Unreadable, match=r"line 3: what planner noted is no JSON object"):
        note_annotation(worker, read(noted.replace('{"isl": 1000}', "[1]")))


@pytest.mark.parametrize(
    ("text", "size_bytes"),
    [
        ("16Gi", 16 * 2**30),
        ("64m", 64 * 2**20),  # compose's sizes are powers of 1024 with and without the i
        ("16gb", 16 * 2**30),
        ("1.5g", 1.5 * 2**30),
        ("2 KiB", 2048),
        ("1t", 2**40),
        ("1024", 1024),
        (4096, 4096),
        ("4096b", 4096),
        ("sixteen", None),
        ("16 x", None),
        ("-1g", None),
        (None, None),
    ],
)
def test_sizes_of_shared_memory(text: Any, size_bytes: float | None) -> None:
    assert shared_bytes(text) == size_bytes
