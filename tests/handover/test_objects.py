"""Objects that hold workers: what of each is replicas, pods, split, role, model and GPUs.

Fields are those of the published types (LeaderWorkerSet v1, KServe, llm-d-modelservice 0.4.12,
Dynamo v1alpha1 and v1beta1, the compose specification); each text is the least that starts.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from planner.handover.documents import documents
from planner.handover.objects import PARALLELISM, READERS, workers_in
from planner.handover.workers import Worker

MODEL = "Qwen/Qwen2.5-7B-Instruct"
SERVE = f"{{name: main, image: 'vllm/vllm-openai:v0.11.0', args: [{MODEL}]}}"


def workers(text: str) -> list[Worker]:
    return workers_in(documents(text), {})


def worker(text: str) -> Worker:
    (one,) = workers(text)
    return one


def outside(one: Worker) -> dict[str, Any]:
    return {name: given.value for name, given in one.outside.items()}


@pytest.mark.parametrize(
    ("replicas", "count"), [("3", 3), ("'2'", 2), ("0", 1), ("none", 1), ("true", 1), ("-1", 1)]
)
@pytest.mark.parametrize("kind", ["Deployment", "StatefulSet"])
def test_a_deployment(kind: str, replicas: str, count: int) -> None:
    one = worker(
        f"kind: {kind}\nspec:\n  replicas: {replicas}\n"
        f"  template: {{spec: {{containers: [{SERVE}]}}}}\n"
    )
    assert (one.kind, one.replicas, one.replicas_line, one.pods) == (kind, count, 3, 1)
    assert (one.line, one.role) == (4, "both")


@pytest.mark.parametrize(
    "text",
    [
        "kind: Deployment\nspec: []\n",
        "kind: Deployment\n",
        "kind: Deployment\nspec: {template: {spec: {containers: [{image: nginx}]}}}\n",
        "kind: Service\nspec: {ports: [{port: 80}]}\n",
        "kind: 3\n",
        "a: 1\n",
        "- 1\n- two\n",
        "services: []\n",
    ],
)
def test_objects_that_start_nothing(text: str) -> None:
    assert workers(text) == []


@pytest.mark.parametrize(
    "form",
    [
        "kind: List\nitems:\n- {}\n- 3\n",
        "kind: DeploymentList\nitems:\n- {}\n",
        "- {}\n- nothing\n",
        "{}\n---\nkind: Service\n",
    ],
)
def test_objects_in_lists_and_documents(form: str) -> None:
    inner = f"{{kind: Deployment, spec: {{template: {{spec: {{containers: [{SERVE}]}}}}}}}}"
    assert worker(form.format(inner).replace("{}", inner)).engine == "vllm"


def test_a_file_of_a_config_map_completes_a_command() -> None:
    """The text of a block begins on the line below its key."""
    one = worker(
        "kind: ConfigMap\ndata:\n  o.yaml: |\n    max_batch_size: 8\n---\n"
        "kind: Deployment\nspec: {template: {spec: {containers: [{command: [trtllm-serve, "
        f"{MODEL}, --extra_llm_api_options, /etc/engine/o.yaml]}}]}}}}}}\n"
    )
    given = one.parsed.given["max_batch_size"]
    assert (given.value, given.line) == (8, 4)
    assert one.parsed.faults == []


GROUP = """kind: LeaderWorkerSet
spec:
  replicas: 2
  leaderWorkerTemplate:
    size: 4
    {template}: {{spec: {{containers: [{serve}]}}}}
"""


@pytest.mark.parametrize("template", ["leaderTemplate", "workerTemplate"])
def test_a_leader_worker_set(template: str) -> None:
    """`size` counts the pods of one group, the leader's among them."""
    one = worker(GROUP.format(template=template, serve=SERVE))
    assert (one.replicas, one.pods) == (2, 4)
    without = GROUP.replace("    size: 4\n", "").format(template=template, serve=SERVE)
    assert worker(without).pods == 1


SERVICE = """kind: LLMInferenceService
spec:
  model: {{uri: 'hf://{model}'}}
  replicas: 2
  parallelism: {split}
"""


def service(split: str, more: str = "") -> list[Worker]:
    return workers(SERVICE.format(model=MODEL, split=split) + more)


def test_a_service_on_one_host_drops_its_parallelism() -> None:
    """KServe 0.20 passes it on only across hosts: the server starts without it."""
    (one,) = service("{tensor: 4, expert: true, data: yes, pipeline: 0}")
    assert one.outside == {}
    assert {name: given.value for name, given in one.dropped.items()} == {
        "tensor_parallel_size": 4,
        "enable_expert_parallel": True,
    }
    assert one.dropped["tensor_parallel_size"].text == "parallelism.tensor: 4"
    assert one.model is not None
    assert (one.model.text, one.model.line) == (f"hf://{MODEL}", 3)
    assert (one.role, one.replicas) == ("both", 2)


@pytest.mark.parametrize(
    ("split", "pods"),
    [
        ("{data: 16, dataLocal: 8, tensor: 1}", 2),
        ("{data: 4, tensor: 8}", 4),  # one rank a pod where nothing else is said
        ("{pipeline: 3, tensor: 8}", 3),
        ("{tensor: 8}", 1),
    ],
)
def test_a_service_across_hosts(split: str, pods: int) -> None:
    (one,) = service(split, "  worker: {}\n")
    assert one.pods == pods
    assert one.dropped == {}
    assert "tensor_parallel_size" in outside(one)
    assert set(outside(one)) <= set(PARALLELISM.values())


def test_a_split_in_the_arguments_is_not_dropped() -> None:
    more = (
        "  template:\n    containers:\n    - name: main\n"
        "      args: [--tensor-parallel-size, '4']\n"
    )
    (one,) = service("{tensor: 4}", more)
    assert one.dropped == {}
    assert one.given["tensor_parallel_size"].line == 9


def test_prefill_of_a_service_is_a_worker_of_its_own() -> None:
    decode, prefill = service("{tensor: 4}", "  prefill: {replicas: 3, parallelism: {tensor: 2}}\n")
    assert (decode.role, decode.replicas) == ("decode", 2)
    assert (prefill.role, prefill.replicas) == ("prefill", 3)
    assert prefill.dropped["tensor_parallel_size"].value == 2
    assert prefill.model == decode.model


def test_an_inference_service_with_a_model() -> None:
    one = worker(
        "kind: InferenceService\nspec:\n  predictor:\n    minReplicas: 2\n"
        "    nodeSelector: {nvidia.com/gpu.product: NVIDIA-L4}\n"
        "    model:\n      modelFormat: {name: huggingface}\n"
        f"      storageUri: hf://{MODEL}\n"
        "      args: [--max-num-seqs, '8']\n"
        "      resources: {limits: {nvidia.com/gpu: '2'}}\n"
    )
    assert one.model is not None
    assert (one.model.text, one.model.line) == (f"hf://{MODEL}", 8)
    assert (one.replicas, one.gpus, one.gpu) == (2, 2, "NVIDIA-L4")
    assert one.parsed.given["max_num_seqs"].value == 8
    assert one.pods == 1


@pytest.mark.parametrize(
    ("spec", "pods", "split"),
    [
        ("{}", 1, {}),
        (
            "{pipelineParallelSize: 2, tensorParallelSize: 8}",
            2,
            {"tensor_parallel_size": 8, "pipeline_parallel_size": 2},
        ),
        # KServe starts a head and one worker unless told otherwise.
        ("{tensorParallelSize: 4}", 2, {"tensor_parallel_size": 4}),
        ("{pipelineParallelSize: true, tensorParallelSize: 1}", 2, {}),
    ],
)
def test_an_inference_service_across_hosts(spec: str, pods: int, split: dict[str, int]) -> None:
    one = worker(
        f"kind: InferenceService\nspec: {{predictor: {{containers: [{SERVE}], "
        f"workerSpec: {spec}}}}}\n"
    )
    assert (one.pods, outside(one)) == (pods, split)
    assert one.model is not None
    assert one.model.text == MODEL


CHART = """modelArtifacts: {{uri: 'hf://{model}', name: {model}}}
multinode: {multinode}
decode:
  replicas: 2
  parallelism: {{tensor: 4, workers: 3}}
  containers:
  - name: vllm
    image: ghcr.io/llm-d/llm-d-cuda:v0.4.0
    modelCommand: {command}
    args: [--max-num-seqs, '8']
{prefill}"""


def chart(command: str = "vllmServe", multinode: str = "false", prefill: str = "") -> list[Worker]:
    return workers(CHART.format(model=MODEL, command=command, multinode=multinode, prefill=prefill))


@pytest.mark.parametrize(("command", "passed"), [("vllmServe", True), ("custom", False)])
def test_the_chart_of_llm_d_passes_a_split_with_its_own_command(command: str, passed: bool) -> None:
    (one,) = chart(command)
    assert outside(one) == ({"tensor_parallel_size": 4} if passed else {})
    assert set(one.dropped) == (set() if passed else {"tensor_parallel_size"})
    assert (one.engine, one.replicas, one.pods, one.role) == ("vllm", 2, 1, "both")
    assert one.model is not None
    assert one.model.text == f"hf://{MODEL}"


def test_the_chart_across_hosts_and_with_prefill() -> None:
    prefill = f"prefill: {{replicas: 3, containers: [{SERVE}]}}\n"
    decode, other = chart(multinode="true", prefill=prefill)
    assert (decode.role, decode.pods, decode.replicas) == ("decode", 3, 2)
    assert (other.role, other.pods, other.replicas) == ("prefill", 1, 3)
    (alone,) = chart(prefill="prefill: {create: false}\n")
    assert alone.role == "both"


def test_the_chart_names_what_is_no_download_by_its_name() -> None:
    text = CHART.format(model=MODEL, command="vllmServe", multinode="false", prefill="")
    (one,) = workers(text.replace("uri: 'hf://", "uri: 'pvc://models/"))
    assert one.model is not None
    assert one.model.text == MODEL


DYNAMO_OLD = f"""kind: DynamoGraphDeployment
spec:
  services:
    Frontend: {{componentType: frontend, replicas: 1}}
    Decode:
      subComponentType: decode
      replicas: 2
      resources: {{limits: {{gpu: '4'}}}}
      multinode: {{nodeCount: 2}}
      extraPodSpec:
        nodeSelector: {{nvidia.com/gpu.product: NVIDIA-H200}}
        mainContainer:
          command: [python3, -m, dynamo.vllm]
          args: [--model, {MODEL}, -tp, '8']
    Prefill:
      subComponentType: prefill
      extraPodSpec:
        mainContainer:
          command: [python3, -m, dynamo.vllm]
          args: [--model, {MODEL}, --is-prefill-worker]
    Other: {{replicas: 1}}
"""
DYNAMO_NEW = f"""kind: DynamoGraphDeployment
spec:
  components:
  - {{name: F, type: frontend, podTemplate: {{spec: {{containers: [{SERVE}]}}}}}}
  - name: W
    type: prefill
    replicas: 5
    podTemplate:
      spec:
        containers:
        - {{name: sidecar, command: [vllm, serve, other]}}
        - {{name: main, command: [python3, -m, dynamo.sglang], args: [--model-path, {MODEL}]}}
"""


def test_a_graph_of_services() -> None:
    decode, prefill = workers(DYNAMO_OLD)
    assert (decode.role, decode.replicas, decode.pods) == ("decode", 2, 2)
    assert (decode.gpus, decode.gpus_line, decode.gpu) == (4, 8, "NVIDIA-H200")
    assert decode.parsed.given["tensor_parallel_size"].value == 8
    assert (prefill.role, prefill.replicas, prefill.pods, prefill.gpus) == ("prefill", 1, 1, None)
    assert decode.shared_memory is None  # the operator sees to it


def test_a_graph_of_components() -> None:
    """The frontend is none of them, and the container called main is the worker's."""
    one = worker(DYNAMO_NEW)
    assert (one.engine, one.role, one.replicas) == ("sglang", "prefill", 5)


COMPOSE = """services:
  proxy: {{image: nginx}}
  llm:
    image: vllm/vllm-openai:v0.11.0
    command: --model {model} --max-num-seqs 8
{more}"""


def composed(*more: str) -> Worker:
    text = "".join(f"    {line}\n" for line in more)
    return worker(COMPOSE.format(model=MODEL, more=text))


@pytest.mark.parametrize(
    ("line", "replicas"),
    [
        ("restart: always", 1),
        ("deploy: {replicas: 3}", 3),
        ("scale: 2", 2),
        ("deploy: {replicas: 0}", 1),
    ],
)
def test_replicas_of_a_service_of_compose(line: str, replicas: int) -> None:
    one = composed(line)
    assert (one.replicas, one.engine, one.pinned) == (replicas, "vllm", True)
    assert one.parsed.given["max_num_seqs"].value == 8


@pytest.mark.parametrize(
    ("device", "gpus"),
    [
        ("{capabilities: [gpu], count: 4}", 4),
        ("{capabilities: [gpu], device_ids: ['0', '3']}", 2),
        ("{capabilities: [gpu], count: all}", None),
        ("{capabilities: [tpu], count: 4}", None),
        ("nothing", None),
    ],
)
def test_gpus_of_a_service_of_compose(device: str, gpus: int | None) -> None:
    one = composed(f"deploy: {{resources: {{reservations: {{devices: [{device}]}}}}}}")
    assert one.gpus == gpus


@pytest.mark.parametrize(
    ("line", "enlarged"),
    [
        ("restart: always", False),
        ("shm_size: 64m", False),  # what it has anyway
        ("shm_size: 65m", True),
        ("shm_size: '16gb'", True),
        ("ipc: host", True),
        ("ipc: private", False),
    ],
)
def test_shared_memory_of_a_service_of_compose(line: str, enlarged: bool) -> None:
    assert composed(line).shared_memory is enlarged


def test_labels_of_a_service_hold_what_was_noted() -> None:
    one = composed("labels: {decode-planner/question: '{\"osl\": 64}'}")
    assert (one.question, one.question_line) == ({"osl": 64}, 6)


def test_an_entrypoint_takes_the_place_of_the_image_s_own() -> None:
    assert composed("entrypoint: [vllm, serve]").engine == "vllm"
    assert workers(COMPOSE.format(model=MODEL, more="    entrypoint: [sleep]\n")) == []


def test_every_kind_reads_an_empty_object() -> None:
    """A file is judged, never a traceback."""
    for kind, reader in READERS.items():
        nothing: list[Mapping[str, Any]] = [{"kind": kind}, {"kind": kind, "spec": None}]
        nothing.append({"kind": kind, "spec": {"template": [], "predictor": 3, "components": 1}})
        for one in nothing:
            for result in reader(one, {}):
                assert result.engine == "vllm"  # a service whose controller starts vLLM anyway
